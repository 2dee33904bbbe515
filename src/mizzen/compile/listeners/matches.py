"""Matches and addresses as protobuf: the parts that chains of every kind of listener share."""

import ipaddress
from collections.abc import Iterable
from typing import Any

from mizzen import protos
from mizzen.compile.addresses import UNIX, Bind
from mizzen.compile.listeners.plans import Match

_core_v3 = protos.package("envoy.config.core.v3")

CONNECT_TIMEOUT = {"seconds": 15}
"""How long a chain waits for TLS, as Istio's default has it."""


def build_match(match: Match) -> dict[str, Any] | None:
    """The fields of a `FilterChainMatch`; None where it takes everything."""
    fields: dict[str, Any] = {}
    if names := sorted(set(match.server_names) - {"*"}):
        fields["server_names"] = names
    if ranges := _ranges(match.prefixes):
        fields["prefix_ranges"] = ranges
    if match.transport:
        fields["transport_protocol"] = match.transport
    if match.alpn:
        fields["application_protocols"] = match.alpn
    if match.port:
        fields["destination_port"] = {"value": match.port}
    return fields or None


def _ranges(prefixes: Iterable[str]) -> list[dict[str, Any]]:
    found = set()
    for prefix in prefixes:
        try:
            network = ipaddress.ip_network(prefix, strict=False)
        except ValueError:
            continue
        address = str(ipaddress.ip_address(prefix.partition("/")[0]))
        if address not in ("0.0.0.0", "::"):
            found.add((address, network.prefixlen))
    return [{"address_prefix": address, "prefix_len": {"value": length}} for address, length in sorted(found)]


def build_address(address: str, port: int) -> dict[str, Any]:
    """The fields of an `Address`: a socket address, or a pipe for a Unix socket."""
    if address.startswith(UNIX):
        return {"pipe": {"path": address.removeprefix(UNIX)}}
    return {"socket_address": {"address": address, "port_value": port}}


def bind_fields(bind: Bind, port: int) -> dict[str, Any]:
    """The listener's fields that say where it listens."""
    fields: dict[str, Any] = {"address": build_address(bind.address, port)}
    if bind.extra:
        fields["additional_addresses"] = [{"address": build_address(a, port)} for a in bind.extra]
    return fields


def build_origin(path: str) -> Any:
    """The metadata that says which object asked for a chain."""
    return _core_v3.Metadata(filter_metadata={"istio": protos.struct({"config": path})})
