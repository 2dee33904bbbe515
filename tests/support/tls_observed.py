"""What real connections show of TLS: one connection of the port's protocol, and what its receiver saw.

In: a running mesh of `tls_mesh`, a client's pod, a host and a port. Out: a verdict in the words of `tls-check`. Requests
carry the certificate of their client in a header when a sidecar has ended mutual TLS; of other connections the server's
access log tells the server name, which is the mesh's own or the program's. Without a sidecar the program tells.
"""

import shlex

from eventually import eventually_blocking
from tls_mesh import GATEWAY, SERVERS, door
from traffic_certificates import ROOT
from traffic_mesh import TrafficMesh
from traffic_programs import Answer

_SECONDS = 5.0
_MESH_SNI = "outbound_."
_REFUSED_NAMES = ("gaierror", "Name or service not known")


def observe(mesh: TrafficMesh, client: str, host: str, port: int, protocol: str, server: str) -> str:
    """How one connection fared."""
    if protocol == "tcp":
        return _tcp(mesh, client, host, port, server)
    if protocol == "grpc":
        return _grpc(mesh, client, host, port, server)
    if client == GATEWAY:
        return _through_gateway(mesh, host, server, protocol)
    scheme = "https" if protocol == "https" else "http"
    options = {"tls": {"ca": ROOT.pem, "sni": "program.example.com"}} if protocol == "https" else {}
    seen = _logged(mesh, server)
    answer = mesh[client].get(f"{scheme}://{host}:{port}/", timeout=_SECONDS, **options)
    if any(text in answer.error for text in _REFUSED_NAMES):
        return "UNREACHABLE"
    if answer.status != 200:
        return "CONFLICT"
    return _answered(mesh, answer, server, seen, protocol)


def _through_gateway(mesh: TrafficMesh, host: str, server: str, protocol: str) -> str:
    """What the gateway spoke: a program without a sidecar asks it for the Service."""
    address = f"{mesh.pod(GATEWAY).address}:8080"
    answer = mesh["naked"].get(f"http://{door(host)}/", address=address, timeout=_SECONDS)
    return _answered(mesh, answer, server, [], protocol) if answer.status == 200 else "CONFLICT"


def _answered(mesh: TrafficMesh, answer: Answer, server: str, seen: list[str], protocol: str) -> str:
    if protocol == "https":
        return _by_log(mesh, server, seen, "TLS")
    if answer.seen.caller:
        return "OK"
    return "TLS" if answer.seen.kind == "https" else "PLAINTEXT"


def _tcp(mesh: TrafficMesh, client: str, host: str, port: int, server: str) -> str:
    seen = _logged(mesh, server)
    (line,) = mesh[client].connect(f"{host}:{port}", timeout=_SECONDS)
    if any(text in line.error for text in _REFUSED_NAMES):
        return "UNREACHABLE"
    if not line.lines:
        return "CONFLICT"
    return _by_log(mesh, server, seen, "PLAINTEXT")


def _grpc(mesh: TrafficMesh, client: str, host: str, port: int, server: str) -> str:
    seen = _logged(mesh, server)
    (call,) = mesh[client].grpc(f"{host}:{port}", seconds=_SECONDS)
    return _by_log(mesh, server, seen, "PLAINTEXT") if call.code == "OK" else "CONFLICT"


def _by_log(mesh: TrafficMesh, server: str, seen: list[str], otherwise: str) -> str:
    """Mutual TLS of the mesh by the server name in the server's newest line, or what it is otherwise."""
    if SERVERS[server] == "bare":
        return otherwise
    new = eventually_blocking(lambda: _logged(mesh, server)[len(seen) :])
    return "OK" if shlex.split(new[-1].partition("] ")[2])[-2].startswith(_MESH_SNI) else otherwise


def _logged(mesh: TrafficMesh, server: str) -> list[str]:
    """The lines of connections that arrived at a server and were let in."""
    pod = mesh.pod(server)
    if not pod.sidecar:
        return []
    lines = mesh.local.layout.log(pod.namespace, pod.name, "istio-proxy").read_text(errors="replace").splitlines()
    return [line for line in lines if " inbound|" in line]
