"""A machine outside Kubernetes, here a network namespace: onboarded by `mizzen x workload entry configure`, then run."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping

import pod_net

_PLACES = {
    "root-cert.pem": "etc/certs/root-cert.pem",
    "istio-token": "var/run/secrets/tokens/istio-token",
    "mesh.yaml": "etc/istio/config/mesh",
    "cluster.env": "var/lib/istio/envoy/cluster.env",
}
"""Where the files belong."""


def configure(*arguments: object, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "mizzen", "experimental", "workload", "entry", "configure", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **(environ or {})}, check=False
    )


class Machine:
    """One machine and its agent, which may be run several times."""

    def __init__(self, pod: pod_net.Pod) -> None:
        self.pod = pod
        self.address = pod.address
        self.agent: pod_net.Process | None = None

    @property
    def folder(self) -> pathlib.Path:
        return self.pod.folder

    @property
    def token(self) -> pathlib.Path:
        return self.folder / _PLACES["istio-token"]

    @property
    def chain(self) -> pathlib.Path:
        """Where its certificate is."""
        return self.folder / "etc/certs/cert-chain.pem"

    def take(self, files: pathlib.Path) -> None:
        """Put the files where they belong, the names into the machine's own hosts."""
        for name, place in _PLACES.items():
            path = self.folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(files / name, path)
        lines = (line.split() for line in (files / "hosts").read_text().splitlines())
        self.pod.name_hosts({name: address for address, name in lines})

    def capture(self) -> None:
        """Capture traffic as the docs say."""
        told = (
            '. var/lib/istio/envoy/cluster.env && exec "$@" -b "$ISTIO_INBOUND_PORTS" -d "$ISTIO_LOCAL_EXCLUDE_PORTS"'
        )
        uid = str(pod_net.PROXY_UID)
        flags = ("-p", "15001", "-z", "15006", "-u", uid, "-g", uid, "-m", "REDIRECT", "-i", "*", "--redirect-dns")
        self.pod.run("sh", "-c", told, "sh", sys.executable, "-m", "mizzen", "iptables", *flags)

    def start(self, **variables: str) -> None:
        """Start the agent, with nothing but what the files say."""
        self.agent = self.pod.start(
            # Of the proxy's group, whose traffic is not captured; the interpreter of the tests may be root's alone.
            *("setpriv", "--regid", pod_net.PROXY_UID, "--clear-groups"),
            *(sys.executable, "-m", "mizzen", "agent", "proxy"),
            environ={"POD_NAME": self.pod.name, **variables},
            log="agent",
        )

    def serve(self, program: str) -> None:
        """Start an application, which is no user of the proxy's."""
        self.pod.start(sys.executable, "-I", "-c", program, log="application")

    def stop(self) -> None:
        """Let it drain and end."""
        assert self.agent is not None
        self.agent.end(signal.SIGTERM)

    @property
    def is_ready(self) -> bool:
        assert self.agent is not None
        assert self.agent.is_running, self.agent.log
        return self.pod.get(15021, "/healthz/ready")[0] == 200

    def envoy(self, path: str) -> str:
        """An answer of Envoy's admin port."""
        return self.pod.get(15000, path)[1]
