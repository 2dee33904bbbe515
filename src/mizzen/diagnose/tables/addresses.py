"""Envoy's address messages as istioctl writes them.

In: `envoy.config.core.v3.Address` as JSON. Out: text, or host and port.
"""

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json


def host(address: Json) -> str:
    """The IP address or the path of a socket; empty for an internal listener."""
    return dump.text(address, "socket_address", "address") or dump.text(address, "pipe", "path")


def port(address: Json) -> int:
    """The port; 0 where the address has none."""
    return dump.number(address, "socket_address", "port_value")


def internal(address: Json) -> str:
    """`envoy://LISTENER/ENDPOINT` of an internal address, else empty."""
    inner = dump.message(address, "envoy_internal_address")
    listener = dump.text(inner, "server_listener_name")
    return f"envoy://{listener}/{dump.text(inner, 'endpoint_id')}" if listener else ""
