"""Istio's own programs: its agent, and its control plane over the API server of a test.

`scripts/test-interop-parts` builds them. Envoy is always the one that Mizzen uses: upstream's, which has no filters of
Istio, so whoever wants traffic through it says so to either control plane.
"""

import os
import pathlib
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import NamedTuple

from pod_net import Process

PARTS = pathlib.Path(os.environ.get("ISTIO_PARTS", pathlib.Path(__file__).parents[2] / ".venv" / "istio"))
AGENT, DISCOVERY, TEMPLATE = (PARTS / name for name in ("pilot-agent", "pilot-discovery", "envoy_bootstrap_tmpl.json"))
HOST = "istiod.istio-system.svc"
PORTS = ("grpcAddr", "secureGRPCAddr", "httpAddr", "monitoringAddr")

UPSTREAM_ONLY = {"PILOT_ENABLE_ALPN_FILTER": "false", "PILOT_ENABLE_METADATA_EXCHANGE": "false"}
"""What makes istiod send nothing that only Istio's proxy image has."""


def are_built() -> bool:
    return all(path.exists() for path in (AGENT, DISCOVERY, TEMPLATE))


class Plane(NamedTuple):
    """A control plane that runs on this machine, Istio's or Mizzen's."""

    process: Process
    ports: Mapping[str, int]

    @property
    def secure(self) -> tuple[str, int]:
        """Where agents are served."""
        return "127.0.0.1", self.ports["secureGRPCAddr"]

    def get(self, path: str, port: str = "httpAddr") -> tuple[int, str]:
        """Status and body; (0, reason) where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[port]}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    @property
    def is_ready(self) -> bool:
        assert self.process.is_running, self.process.log
        return self.get("/ready")[0] == 200


def start_discovery(
    folder: pathlib.Path, kubeconfig: pathlib.Path, ports: Mapping[str, int], **variables: str
) -> Plane:
    """Istio's control plane; `folder/etc/cacerts` holds its authority."""
    addresses = [f"--{flag}=127.0.0.1:{port}" for flag, port in ports.items()]
    command = [str(DISCOVERY), "discovery", "--kubeconfig", str(kubeconfig), *addresses]
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "POD_NAME": "istiod-1",
        "POD_NAMESPACE": "istio-system",
        "INJECTION_WEBHOOK_CONFIG_NAME": "",
        "VALIDATION_WEBHOOK_CONFIG_NAME": "",
        **variables,
    }
    command += ["--ctrlz_port=0", "--httpsAddr=127.0.0.1:0"]
    return Plane(Process(command, folder / "pilot-discovery.log", environ, folder), ports)
