"""Conflicts: several services on one address and port of a sidecar.

In: entries in the order of their services' age. Out: one entry for each address and port, with the chains of all whose
protocols go together. An HTTP entry on the wildcard address counts as sniffed, for its chain takes only what looks like
HTTP. Golden cases: networking/protocol-conflicts, networking/se-overlap, networking/se-wildcards.
"""

import functools
import ipaddress
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from mizzen.compile.addresses import Bind
from mizzen.compile.listeners.plans import Chain, HttpChain, Match, TcpChain
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


class Standing:
    """What stands at a place, service after service, each younger than those before."""

    def __init__(self, first: Entry) -> None:
        self._stand(first)

    def _stand(self, entry: Entry) -> None:
        self.entry = entry
        """The first one, or what took its place; its chains are not all of them."""
        self.kind = entry.kind
        self.chains = list(entry.chains)
        self._taken: set[tuple[object, ...]] | None = None

    def add(self, incoming: Entry) -> bool:
        """Another service asks for the place; whether a TCP chain of it gives way to one that matches the same."""
        if incoming.overwrites:
            self._stand(incoming)
            return False
        chains = _tcp(incoming)
        gives_way = bool(chains) and self.kind != "http" and any(_signature(c) in self._signatures() for c in chains)
        server_first = self.entry.protocol in _SERVER_FIRST or incoming.protocol in _SERVER_FIRST
        if not (server_first and self.entry.protocol is not incoming.protocol):
            self._merge(incoming, chains)
        return gives_way

    def _merge(self, incoming: Entry, chains: tuple[TcpChain, ...]) -> None:
        match self.kind, incoming.kind:
            case ("http" | "auto", "http"):
                pass
            case ("http", "tcp"):
                self._extend("auto", chains)
            case ("http", "auto"):
                self._stand(incoming)
            case ("tcp", "http"):
                self._extend("auto", incoming.chains)
            case ("tcp", "tcp"):
                self._extend("tcp", self._new(chains))
            case ("tcp", "auto"):
                http = tuple(c for c in incoming.chains if isinstance(c, HttpChain))
                self._extend("auto", (*self._new(chains), *http))
            case _:
                self._extend("auto", self._new(chains))

    def _extend(self, kind: Kind, chains: Iterable[Chain]) -> None:
        added = tuple(chains)
        self.kind = kind
        self.chains += added
        if self._taken is not None:
            self._taken.update(map(_signature, added))

    def _new(self, chains: tuple[TcpChain, ...]) -> Iterator[TcpChain]:
        """Those that match nothing that an older chain does, nor one of themselves before."""
        seen: set[tuple[object, ...]] = set()
        for chain in chains:
            signature = _signature(chain)
            if signature not in self._signatures() and signature not in seen:
                seen.add(signature)
                yield chain

    def _signatures(self) -> set[tuple[object, ...]]:
        """Of all chains; worked out once, for hundreds of services may ask for one place."""
        if self._taken is None:
            self._taken = set(map(_signature, self.chains))
        return self._taken


def _tcp(entry: Entry) -> tuple[TcpChain, ...]:
    return tuple(c for c in entry.chains if isinstance(c, TcpChain))


def _signature(chain: Chain) -> tuple[object, ...]:
    return _match_signature(chain.match)


@functools.lru_cache(maxsize=4096)
def _match_signature(match: Match) -> tuple[object, ...]:
    names = frozenset(match.server_names) - {"*"}
    return (match.transport, match.alpn, names, frozenset(_networks(match.prefixes)), match.port)


def _networks(prefixes: Iterable[str]) -> Iterable[str]:
    for prefix in prefixes:
        if prefix not in ("0.0.0.0", "::"):
            try:
                yield str(ipaddress.ip_network(prefix, strict=False))
            except ValueError:
                yield prefix
