"""What the user asked of `mizzen up`, as one value that crosses from the process they started to the mesh's own."""

import msgspec

from mizzen.errors import UsageError

EXPLAINED = 70
"""The exit code of a mesh's process that has said itself why it cannot run."""


class PortRequest(msgspec.Struct, frozen=True):
    """A port of the host for a port of a Service."""

    host_port: int
    service: str
    namespace: str
    """Empty means any."""
    port: int
    """0 means the Service's first."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of one run."""

    name: str
    root: str
    """The mesh's folder."""
    manifests: tuple[str, ...]
    isolation: str
    ports: tuple[PortRequest, ...] = ()
    outer: int = 0
    """The process that the user started."""
    terminal: bool = False
    started: float = 0.0
    """When that was, by the system's monotonic clock."""
    verbose: bool = False


def parse_port(text: str) -> PortRequest:
    """`HOSTPORT:SERVICE[.NAMESPACE][:PORT]`, such as `8080:istio-ingressgateway.istio-system:80`."""
    parts = text.split(":")
    if (
        len(parts) not in (2, 3)
        or not parts[1]
        or not _is_port(parts[0])
        or (len(parts) == 3 and not _is_port(parts[2]))
    ):
        raise UsageError(f"--port {text}: expected HOSTPORT:SERVICE[.NAMESPACE][:PORT]")
    service, _, namespace = parts[1].partition(".")
    return PortRequest(int(parts[0]), service, namespace, int(parts[2]) if len(parts) == 3 else 0)


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) < 65536
