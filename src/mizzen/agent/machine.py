"""What a machine outside Kubernetes brings along for its agent: the files of `workload entry configure`.

In: `cluster.env`, and `sidecar.env` for what an operator adds, below `var/lib/istio/envoy`. Out: the environment of
the agent, in which the process' own variables win. Where the first of these files stands the agent is on such a
machine: its token lives for an hour and is renewed by nobody, so it keeps its certificate in `etc/certs` and proves
itself by that once the token has ended.
"""

import shlex
import socket
from collections.abc import Mapping
from pathlib import Path

from mizzen.agent.files import read_file
from mizzen.errors import DecodeError

_FOLDER = Path("./var/lib/istio/envoy")
CLUSTER, SIDECAR = _FOLDER / "cluster.env", _FOLDER / "sidecar.env"
_CERTIFICATES = "./etc/certs"


def read_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with what the files say; raises DecodeError for a file that is none of variables."""
    if read_file(CLUSTER) is None:
        return environ
    merged = {**_parse(SIDECAR), **_parse(CLUSTER), **environ}
    defaults = {
        "POD_NAME": socket.gethostname().partition(".")[0],
        "INSTANCE_IP": merged.get("ISTIO_SVC_IP", ""),
        "PROV_CERT": _CERTIFICATES,
        "OUTPUT_CERTS": _CERTIFICATES,
    }
    return {**{name: value for name, value in defaults.items() if value}, **merged}


def _parse(path: Path) -> dict[str, str]:
    """Lines `NAME=value`, quoted as for a shell."""
    found: dict[str, str] = {}
    for number, line in enumerate((read_file(path) or b"").decode(errors="replace").splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as bad:
            raise DecodeError(f"line {number}: {bad}", str(path)) from bad
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                found[name] = value
    return found
