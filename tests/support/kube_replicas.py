"""Control planes as processes of their own over one API server: replicas that can be stopped, frozen and killed."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping

from eventually import eventually_blocking
from kube_accounts import installed
from kube_bed import Answer, Bed

from mizzen.control.election import lease_name
from mizzen.control.writers import ADDRESS_ELECTION, DEPLOYMENT_ELECTION, ROOTS_ELECTION, STATUS_ELECTION

LEASES = "/apis/coordination.k8s.io/v1/namespaces/istio-system/leases"
_ADDRESSES = ("grpcAddr", "secureGRPCAddr", "mutualGRPCAddr", "monitoringAddr", "httpAddr")


def leases_of(revision: str) -> tuple[str, ...]:
    """The Leases of all who write for a revision."""
    own = (lease_name(STATUS_ELECTION, revision), lease_name(DEPLOYMENT_ELECTION, revision))
    return (*own, ADDRESS_ELECTION, ROOTS_ELECTION)


class Replica:
    """One process."""

    def __init__(
        self,
        bed: Bed,
        folder: pathlib.Path,
        name: str,
        variables: Mapping[str, str],
        *,
        kubeconfig: pathlib.Path | None = None,
        keeps_files: bool = True,
    ) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        addresses = [part for flag in _ADDRESSES for part in (f"--{flag}", "127.0.0.1:0")]
        command = [sys.executable, "-m", "mizzen", "discovery", "--kubeconfig"]
        command += [str(kubeconfig or installed(bed)), *addresses, "--httpsAddr", "", "--ctrlz_port", "0"]
        command += ["--caDir", str(folder / "ca")] if keeps_files else []
        environment = {**os.environ, "POD_NAME": name, **variables}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)

    def address(self, flag: str) -> str:
        """Where it listens, once it says so."""
        said = re.compile(rf"{flag} listens on (\S+)\n")
        found = eventually_blocking(lambda: said.search(self.log.read_text()), 120, every=0.1)
        return str(found[1])

    def read(self, flag: str, path: str) -> str:
        """What it answers there; raises OSError when it does not, or says that something is wrong."""
        with urllib.request.urlopen(f"http://{self.address(flag)}{path}", timeout=60) as answer:
            return str(answer.read().decode())

    def is_ready(self) -> bool:
        """Whether it serves proxies: what it listens on refuses them until it has read what it serves."""
        with contextlib.suppress(OSError):
            self.read("--httpAddr", "/ready")
            return True
        return False

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)


class Replicas:
    """Several, and what the Lease says of them."""

    def __init__(self, bed: Bed, folder: pathlib.Path, lease: str, **variables: str) -> None:
        self._bed, self._folder, self._variables = bed, folder, variables
        self.lease = lease
        self.all: dict[str, Replica] = {}

    def start(self, *names: str) -> None:
        for name in names:
            self.all[name] = Replica(self._bed, self._folder, name, self._variables)

    def stop(self) -> None:
        for replica in self.all.values():
            if replica.process.poll() is None:
                replica.send(signal.SIGCONT)
            replica.end(signal.SIGKILL)

    @property
    def spec(self) -> dict:
        try:
            return self._bed.call("GET", f"{LEASES}/{self.lease}")["spec"]
        except Answer as answer:
            if answer.status != 404:
                raise
            return {}

    @property
    def leader(self) -> str:
        """The name of the replica that holds the Lease; empty for none."""
        return self.spec.get("holderIdentity", "").partition("_")[0]

    def until_led(self, *, by_another_than: str = "") -> Replica:
        name = eventually_blocking(
            lambda: name if (name := self.leader) not in ("", by_another_than) else "", 180, every=0.1
        )
        return self.all[name]
