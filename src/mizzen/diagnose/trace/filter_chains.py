"""Which filter chain of a listener a connection meets, as Envoy finds it.

In: a listener, and what is known of the connection. Out: the chain, or the condition at which the search ended.
The order of conditions is fixed: destination port, destination address, server name, transport protocol, application
protocols, direct source, source type, source address, source port. At each the most specific value that some chain has
is taken and the search goes on among its chains only: it never turns back. What ends nowhere meets the default chain.
"""

import ipaddress
from collections.abc import Callable, Iterable

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What listener filters have found out about a connection."""

    address: str
    """The destination, as restored from before capture."""
    port: int
    server_name: str = ""
    transport: str = "raw_buffer"
    protocols: tuple[str, ...] = ()
    """ALPN of a TLS hello, or what the HTTP inspector reports."""
    source: str = ""
    source_port: int = 0

    @property
    def is_local(self) -> bool:
        """Whether the connection comes from the pod itself."""
        return self.source == self.address or self.source.startswith("127.")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a search."""

    chain: Json | None
    is_default: bool = False
    failed: str = ""
    """The condition at which no chain was left."""


def find(listener: Json, seen: Seen) -> Found:
    """The chain for a connection."""
    left = list(dump.items(listener, "filter_chains"))
    default = dump.message(listener, "default_filter_chain")
    for title, narrow in _STAGES:
        left = narrow(left, seen)
        if not left:
            failed = f"no filter chain for {title(seen)}"
            return Found(chain=default or None, is_default=bool(default), failed=failed)
    return Found(chain=left[0])


def _match(chain: Json) -> Json:
    return dump.message(chain, "filter_chain_match")


def by_port(chains: list[Json], seen: Seen) -> list[Json]:
    """The chains for the connection's port; without any those for all ports."""
    ports = [dump.number(_match(chain), "destination_port") for chain in chains]
    own = [chain for chain, port in zip(chains, ports, strict=True) if port == seen.port]
    return own or [chain for chain, port in zip(chains, ports, strict=True) if not port]


def _by_address(chains: list[Json], seen: Seen) -> list[Json]:
    return _longest_range(chains, "prefix_ranges", seen.address)


def _longest_range(chains: list[Json], field: str, address: str) -> list[Json]:
    """The chains whose ranges hold the address in the longest prefix; those without ranges hold every address."""
    best, found = -1, []
    for chain in chains:
        length = _range_length(list(dump.items(_match(chain), field)), address)
        if length > best:
            best, found = length, [chain]
        elif length == best and length >= 0:
            found.append(chain)
    return found


def _range_length(ranges: list[Json], address: str) -> int:
    if not ranges:
        return 0
    if not address:
        return -1
    own = ipaddress.ip_address(address)
    lengths = [-1]
    for entry in ranges:
        length = dump.number(entry, "prefix_len")
        network = ipaddress.ip_network(f"{dump.text(entry, 'address_prefix')}/{length}", strict=False)
        if own in network:
            lengths.append(length)
    return max(lengths)


def _by_server_name(chains: list[Json], seen: Seen) -> list[Json]:
    for wanted in _name_forms(seen.server_name.lower()):
        found = [c for c in chains if wanted in [n.lower() for n in dump.texts(_match(c), "server_names")]]
        if found:
            return found
    return [c for c in chains if not dump.texts(_match(c), "server_names")]


def _name_forms(name: str) -> Iterable[str]:
    """The name, then each wildcard above it, the longest first."""
    if not name:
        return
    yield name
    position = name.find(".", 1)
    while position != -1:
        yield f"*{name[position:]}"
        position = name.find(".", position + 1)


def _word(seen: Seen) -> str:
    return "TLS" if seen.transport == "tls" else "plain text"


def _by_transport(chains: list[Json], seen: Seen) -> list[Json]:
    own = [c for c in chains if dump.text(_match(c), "transport_protocol") == seen.transport]
    return own or [c for c in chains if not dump.text(_match(c), "transport_protocol")]


def _by_protocols(chains: list[Json], seen: Seen) -> list[Json]:
    for protocol in seen.protocols:
        found = [c for c in chains if protocol in dump.texts(_match(c), "application_protocols")]
        if found:
            return found
    return [c for c in chains if not dump.texts(_match(c), "application_protocols")]


def _by_direct_source(chains: list[Json], seen: Seen) -> list[Json]:
    return _longest_range(chains, "direct_source_prefix_ranges", seen.source)


def _by_source_type(chains: list[Json], seen: Seen) -> list[Json]:
    """A chain for local or for outside sources comes before one for any."""
    wanted = "SAME_IP_OR_LOOPBACK" if seen.is_local else "EXTERNAL"
    own = [c for c in chains if dump.text(_match(c), "source_type") == wanted]
    return own or [c for c in chains if dump.text(_match(c), "source_type") in ("", "ANY")]


def _by_source(chains: list[Json], seen: Seen) -> list[Json]:
    return _longest_range(chains, "source_prefix_ranges", seen.source)


def _by_source_port(chains: list[Json], seen: Seen) -> list[Json]:
    def ports(chain: Json) -> list[int]:
        found = dump.field(_match(chain), "source_ports")
        return [int(port) for port in found] if isinstance(found, list) else []

    own = [c for c in chains if seen.source_port in ports(c)]
    return own or [c for c in chains if not ports(c)]


_STAGES: tuple[tuple[Callable[[Seen], str], Callable[[list[Json], Seen], list[Json]]], ...] = (
    (lambda s: f"destination port {s.port}", by_port),
    (lambda s: f"destination {s.address}", _by_address),
    (lambda s: f"server name {s.server_name or '(none)'}", _by_server_name),
    (_word, _by_transport),
    (lambda s: f"application protocols {', '.join(s.protocols) or '(none)'} in {_word(s)}", _by_protocols),
    (lambda s: f"direct source {s.source}", _by_direct_source),
    (lambda _: "sources of this type", _by_source_type),
    (lambda s: f"source {s.source}", _by_source),
    (lambda s: f"source port {s.source_port}", _by_source_port),
)


def describe(chain: Json) -> str:
    """The conditions of a chain in few words."""
    match = _match(chain)
    names, words = dump.texts(match, "server_names"), dump.texts(match, "application_protocols")
    ranges = dump.items(match, "prefix_ranges")
    parts = [
        f"port {dump.number(match, 'destination_port')}" if dump.number(match, "destination_port") else "",
        ", ".join(f"{dump.text(r, 'address_prefix')}/{dump.number(r, 'prefix_len')}" for r in ranges),
        f"SNI {', '.join(names)}" if names else "",
        dump.text(match, "transport_protocol"),
        f"ALPN {', '.join(words)}" if words else "",
    ]
    return "; ".join(part for part in parts if part) or "everything"
