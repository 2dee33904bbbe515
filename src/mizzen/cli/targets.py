"""Who is asked: the proxies and the control plane of a local mesh, or addresses named on the command line.

In: a pod reference (`POD[.NAMESPACE]`, `deployment/NAME[.NAMESPACE]`) or addresses. Out: targets that answer HTTP
requests with bytes. What a mesh says about itself is read by `mizzen.local.runtime`; an Envoy's admin interface is
inside its pod's network and is reached through a Unix socket that the mesh keeps for it.
"""

import http.client
import json
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.local import runtime

_TIMEOUT_SECONDS = 30.0
_WORKLOADS = frozenset(
    ("deployment", "deploy", "deployments", "statefulset", "sts", "statefulsets", "replicaset", "rs", "replicasets")
)
_PODS = frozenset(("", "pod", "pods", "po"))


class NotConnected(MizzenError):
    """The control plane does not serve the proxy that it was asked about."""


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy that can be asked."""

    name: str
    """`POD.NAMESPACE`."""
    admin: str
    """Unix socket that leads to its Envoy's admin interface."""

    def get(self, query: str, method: str = "GET") -> bytes:
        """The answer of Envoy's admin interface."""
        try:
            return _request(_UnixConnection(self.admin), method, query)
        except MizzenError as failed:
            raise MizzenError(f"failed to execute command on {self.name} sidecar: {failed}") from failed


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """One control plane that can be asked."""

    name: str
    address: str
    """HOST:PORT of its monitoring interface."""

    def get(self, path: str) -> bytes:
        """The answer of its monitoring interface; NotConnected where it does not know what was asked for."""
        return self._request("GET", path)

    def put_json(self, path: str, value: Any) -> None:
        """Replaces what stands at a path."""
        self._request("PUT", path, json.dumps(value).encode())

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        host, _, port = self.address.rpartition(":")
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=_TIMEOUT_SECONDS)
        try:
            return _request(connection, method, path, body)
        except UnexpectedStatus as refused:
            if refused.status == http.client.NOT_FOUND:
                raise NotConnected(str(refused)) from refused
            raise
        except MizzenError as failed:
            raise MizzenError(f"cannot reach the control plane at {self.address}: {failed}") from failed

    def get_json(self, path: str) -> Any:
        """The answer as JSON."""
        try:
            return json.loads(self.get(path))
        except ValueError as bad:
            raise MizzenError(f"the control plane at {self.address} did not answer with JSON: {bad}") from bad


class UnexpectedStatus(MizzenError):
    """An HTTP answer that is no success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"unexpected status code: {status}: {body.decode(errors='replace').strip()}")
        self.status = status
        self.body = body


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        from mizzen.local.net import unix

        self.sock = unix.connect(self._path, _TIMEOUT_SECONDS)


def _request(connection: http.client.HTTPConnection, method: str, path: str, json_body: bytes | None = None) -> bytes:
    headers = {"Content-Type": "application/json"} if json_body is not None else {}
    try:
        connection.request(method, f"/{path}", json_body, headers)
        response = connection.getresponse()
        answer = response.read()
    except (OSError, http.client.HTTPException) as failed:
        raise MizzenError(str(failed) or type(failed).__name__) from failed
    finally:
        connection.close()
    if not http.client.OK <= response.status < http.client.MULTIPLE_CHOICES:
        raise UnexpectedStatus(response.status, answer)
    return answer


def find_layout(mesh: str) -> "runtime.Layout":
    """The folder of the local mesh: of that name or that folder itself, or of the only one when `mesh` is empty."""
    from mizzen.local import runtime

    if os.sep in mesh:
        return runtime.Layout(pathlib.Path(mesh))
    return runtime.select_mesh(runtime.find_base(os.getuid(), os.environ), mesh or None)


def read_state(mesh: str) -> "runtime.State":
    """What the local mesh says about itself."""
    from mizzen.local import runtime

    return runtime.read_state(find_layout(mesh))


def split_type(reference: str) -> tuple[bool, str]:
    """Whether `[TYPE/]NAME[.NAMESPACE]` means the pods of a workload, and the reference without its type."""
    kind, _, name = reference.rpartition("/")
    if kind not in _WORKLOADS | _PODS:
        raise MizzenError(f'"{reference}" does not refer to a pod: unknown resource type "{kind}"')
    return kind in _WORKLOADS, name


def find_running(state: "runtime.State", reference: str, namespace: str) -> "runtime.Pod":
    """The pod of `[TYPE/]NAME[.NAMESPACE]` in a local mesh; of a workload the first by name."""
    from mizzen.local import runtime

    is_workload, name = split_type(reference)
    find = runtime.first_pod if is_workload else runtime.find_pod
    return find(state, qualify(name, namespace))


def find_proxy(reference: str, *, namespace: str, mesh: str) -> Proxy:
    """The proxy of a pod of the local mesh; raises for a pod without a sidecar."""
    pod = find_running(read_state(mesh), reference, namespace)
    if not pod.admin:
        raise MizzenError(f"pod {pod.name}.{pod.namespace} has no sidecar")
    return proxy_of(pod)


def proxy_of(pod: "runtime.Pod") -> Proxy:
    """The proxy of a pod that has one."""
    return Proxy(name=f"{pod.name}.{pod.namespace}", admin=pod.admin)


def qualify(name: str, namespace: str) -> str:
    """`NAME.NAMESPACE` where the name has no namespace and one is known."""
    return f"{name}.{namespace}" if namespace and "." not in name else name


def find_control_planes(*, mesh: str, addresses: Sequence[str]) -> list[ControlPlane]:
    """The control planes at the addresses, or the local mesh's own when there are none."""
    if addresses:
        return [ControlPlane(name=address, address=_checked(address)) for address in addresses]
    state = read_state(mesh)
    require_up(state, state.control_plane.monitoring)
    return planes_of(state)


def require_up(state: "runtime.State", address: str) -> str:
    """An address of the control plane of a local mesh; it has none while it is not up."""
    if not address:
        raise MizzenError(f"the control plane of mesh {state.mesh} is not up yet")
    return address


def planes_of(state: "runtime.State") -> list[ControlPlane]:
    """The control plane of a local mesh; none while it is not up."""
    address = state.control_plane.monitoring
    return [ControlPlane(name=plane_name(state), address=address)] if address else []


def plane_name(state: "runtime.State") -> str:
    """How the control plane of a local mesh is called."""
    return f"mizzen-{state.mesh}"


def read_file(path: str) -> bytes:
    """The bytes of a file, or of stdin for `-`."""
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            return file.read()
    except OSError as unreadable:
        raise MizzenError(f"cannot read {path}: {unreadable.strerror}") from unreadable


def _checked(address: str) -> str:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise MizzenError(f"{address!r} is not HOST:PORT")
    return address
