"""Conflicts: several services on one address and port of a sidecar.

In: entries in the order of their services' age. Out: one entry for each address and port, with the chains of all whose
protocols go together. An HTTP entry on the wildcard address counts as sniffed, for its chain takes only what looks like
HTTP. Golden cases: networking/protocol-conflicts, networking/se-overlap, networking/se-wildcards.
"""

import ipaddress
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from mizzen.compile.addresses import Bind
from mizzen.compile.listeners.plans import Chain, HttpChain, TcpChain
from mizzen.model.protocols import Protocol

Kind = Literal["http", "tcp", "auto"]
_SERVER_FIRST = frozenset({Protocol.MONGO, Protocol.MYSQL})


class Place(NamedTuple):
    """What entries may collide on."""

    address: str
    port: int


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The chains that one service asks for at one place."""

    bind: Bind
    port: int
    kind: Kind
    protocol: Protocol
    chains: tuple[Chain, ...]
    bound: bool = False
    overwrites: bool = False
    """An HTTP proxy's port: it takes the place whoever was there."""

    @property
    def place(self) -> Place:
        """Where it listens."""
        return Place(self.bind.address, self.port)


def merge_entries(current: Entry, incoming: Entry) -> Entry:
    """What stands at a place after another service, younger than those before, asks for it too."""
    if incoming.overwrites:
        return incoming
    server_first = current.protocol in _SERVER_FIRST or incoming.protocol in _SERVER_FIRST
    if server_first and current.protocol is not incoming.protocol:
        return current
    match current.kind, incoming.kind:
        case ("http" | "auto", "http"):
            return current
        case ("http", "tcp"):
            return _with(current, "auto", (*current.chains, *_tcp(incoming)))
        case ("http", "auto"):
            return incoming
        case ("tcp", "http"):
            return _with(current, "auto", (*current.chains, *incoming.chains))
        case ("tcp", "tcp"):
            return _with(current, "tcp", _merge_tcp(current.chains, incoming.chains))
        case ("tcp", "auto"):
            http = tuple(c for c in incoming.chains if isinstance(c, HttpChain))
            return _with(current, "auto", (*_merge_tcp(current.chains, _tcp(incoming)), *http))
        case _:
            return _with(current, "auto", _merge_tcp(current.chains, _tcp(incoming)))


def loses_chains(current: Entry, incoming: Entry) -> bool:
    """Whether a TCP chain of the younger service gives way to one of those before that matches the same."""
    chains = () if incoming.overwrites else _tcp(incoming)
    if not chains or current.kind == "http":
        return False
    taken = {_signature(c) for c in current.chains}
    return any(_signature(c) in taken for c in chains)


def _with(entry: Entry, kind: Kind, chains: tuple[Chain, ...]) -> Entry:
    return msgspec.structs.replace(entry, kind=kind, chains=chains)


def _tcp(entry: Entry) -> tuple[TcpChain, ...]:
    return tuple(c for c in entry.chains if isinstance(c, TcpChain))


def _merge_tcp(current: tuple[Chain, ...], incoming: Iterable[Chain]) -> tuple[Chain, ...]:
    """The chains of both, without those of the younger service that match what an older chain does."""
    taken = {_signature(c) for c in current}
    merged = list(current)
    for chain in incoming:
        signature = _signature(chain)
        if signature not in taken:
            taken.add(signature)
            merged.append(chain)
    return tuple(merged)


def _signature(chain: Chain) -> tuple[object, ...]:
    match = chain.match
    names = frozenset(match.server_names) - {"*"}
    return (match.transport, match.alpn, names, frozenset(_networks(match.prefixes)), match.port)


def _networks(prefixes: Iterable[str]) -> Iterable[str]:
    for prefix in prefixes:
        if prefix not in ("0.0.0.0", "::"):
            try:
                yield str(ipaddress.ip_network(prefix, strict=False))
            except ValueError:
                yield prefix
