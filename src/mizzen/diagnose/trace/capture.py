"""Is a connection captured: what a pod's rules hand to its proxy, and what goes past it.

In: a pod as injected, its init container's arguments or, where there is none (CNI), its annotations. Out: `Capture`,
which says yes or no with the reason for one address and port.
"""

import ipaddress
from collections.abc import Iterator

import msgspec

from mizzen.api.kube.pods import Pod

OUTBOUND_PORT, INBOUND_PORT, TUNNEL_PORT = 15001, 15006, 15008
LOOPBACK = ("127.0.0.1", "::1")
"""What is never captured, whoever sends it."""
_ALWAYS_EXCLUDED_INBOUND = ("15020", "15021", "15090")
_TRAFFIC = "traffic.sidecar.istio.io/"
_INIT = "istio-init"
_FLAGS = {
    "-m": "mode",
    "--istio-inbound-interception-mode": "mode",
    "-b": "include_inbound_ports",
    "--istio-inbound-ports": "include_inbound_ports",
    "-d": "exclude_inbound_ports",
    "--istio-local-exclude-ports": "exclude_inbound_ports",
    "-i": "include_outbound_ranges",
    "--istio-service-cidr": "include_outbound_ranges",
    "-x": "exclude_outbound_ranges",
    "--istio-service-exclude-cidr": "exclude_outbound_ranges",
    "-q": "include_outbound_ports",
    "--istio-outbound-ports": "include_outbound_ports",
    "-o": "exclude_outbound_ports",
    "--istio-local-outbound-ports-exclude": "exclude_outbound_ports",
}
_ANNOTATIONS = {
    "include_inbound_ports": "includeInboundPorts",
    "exclude_inbound_ports": "excludeInboundPorts",
    "include_outbound_ranges": "includeOutboundIPRanges",
    "exclude_outbound_ranges": "excludeOutboundIPRanges",
    "include_outbound_ports": "includeOutboundPorts",
    "exclude_outbound_ports": "excludeOutboundPorts",
}


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """One pod's rules, as the texts of istio-iptables' flags."""

    mode: str = "REDIRECT"
    include_inbound_ports: str = "*"
    exclude_inbound_ports: str = ",".join(_ALWAYS_EXCLUDED_INBOUND)
    include_outbound_ranges: str = "*"
    exclude_outbound_ranges: str = ""
    include_outbound_ports: str = ""
    exclude_outbound_ports: str = ""

    def past_outbound(self, address: str, port: int, own: tuple[str, ...] = ()) -> str:
        """Why a connection of the pod's program goes past the proxy; empty where it is captured."""
        if self.mode == "NONE":
            return "interceptionMode is NONE"
        if _holds_port(self.exclude_outbound_ports, port):
            return f"port {port} is in excludeOutboundPorts"
        if address in LOOPBACK or ((address in own or is_loopback(address)) and not self._includes_loopback()):
            return "the pod calls itself"
        if _holds_address(self.exclude_outbound_ranges, address):
            return f"{address} is in excludeOutboundIPRanges"
        if _holds_port(self.include_outbound_ports, port):
            return ""
        if self.include_outbound_ranges == "*" or _holds_address(self.include_outbound_ranges, address):
            return ""
        return f"{address or 'the address'} is not in includeOutboundIPRanges"

    def _includes_loopback(self) -> bool:
        """Whether what stays on the interface `lo` is taken like anything else, as far as ranges include it."""
        ranges = self.include_outbound_ranges
        return any(is_loopback(text.strip().partition("/")[0]) for text in ranges.split(","))

    def past_inbound(self, port: int, *, by_own_proxy: bool = False) -> str:
        """Why a connection to the pod goes past its proxy; empty where it is captured.

        A program's connection to its own pod is none of these: it never passes the inbound rules. That of the pod's
        own proxy (`by_own_proxy`) is redirected as it leaves, before anybody looks at its port.
        """
        if self.mode == "NONE":
            return "interceptionMode is NONE"
        if port == TUNNEL_PORT:
            return f"port {port} is the tunnel's"
        if by_own_proxy:
            return ""
        if self.include_inbound_ports == "*":
            return f"port {port} is in excludeInboundPorts" if _holds_port(self.exclude_inbound_ports, port) else ""
        return "" if _holds_port(self.include_inbound_ports, port) else f"port {port} is not in includeInboundPorts"


def is_loopback(address: str) -> bool:
    """Whether it is an address of the interface `lo`."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def read_capture(pod: Pod, mode: str = "REDIRECT") -> Capture:
    """The rules of a pod."""
    init = next((c for c in pod.spec.init_containers if c.name == _INIT), None)
    if init is not None:
        return Capture(**{"mode": mode, **dict(_arguments(init.args))})
    annotations = pod.metadata.annotations
    stated = {
        field: annotations[_TRAFFIC + name] for field, name in _ANNOTATIONS.items() if _TRAFFIC + name in annotations
    }
    if "exclude_inbound_ports" in stated:
        stated["exclude_inbound_ports"] = ",".join((*_ALWAYS_EXCLUDED_INBOUND, stated["exclude_inbound_ports"]))
    return Capture(mode=annotations.get("sidecar.istio.io/interceptionMode", mode), **stated)


def _arguments(arguments: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            yield _FLAGS[flag], value if equals else next(words, "")


def _holds_port(texts: str, port: int) -> bool:
    return str(port) in [text.strip() for text in texts.split(",")]


def _holds_address(ranges: str, address: str) -> bool:
    for text in ranges.split(","):
        if text.strip() and address:
            try:
                if ipaddress.ip_address(address) in ipaddress.ip_network(text.strip(), strict=False):
                    return True
            except ValueError:
                continue
    return False
