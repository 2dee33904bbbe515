"""Plans: listeners and their chains as small frozen values, between selecting what matters and building messages.

Two proxies with an equal plan (and equal settings) share the built message. Nothing here knows the model or protobuf.
"""

import msgspec

from mizzen.compile.addresses import Bind
from mizzen.compile.filters.network import DnsCache, TcpRoute


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Which connections a chain takes; empty fields take all."""

    server_names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    """Addresses and CIDR ranges of the destination."""
    transport: str = ""
    alpn: tuple[str, ...] = ()
    port: int = 0

    @property
    def takes_all(self) -> bool:
        """Whether every connection matches."""
        return not (self.server_names or self.prefixes or self.transport or self.alpn or self.port)


class TcpChain(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that passes bytes on."""

    route: TcpRoute
    match: Match = Match()
    origin: str = ""
    """The object that asked for it, as a config path."""


class HttpChain(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that serves HTTP by a route configuration of that name."""

    route_name: str
    match: Match = Match()
    dynamic_dns: DnsCache | None = None
    grpc_web: bool = False


Chain = TcpChain | HttpChain


class OutboundPlan(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A per-port outbound listener of a sidecar."""

    bind: Bind
    port: int
    chains: tuple[Chain, ...]
    bound: bool = False
    """Whether it really listens, instead of being handed connections by `virtualOutbound`."""

    @property
    def name(self) -> str:
        """The listener's name."""
        return f"{self.bind.address}_{self.port}"

    @property
    def serves_http(self) -> bool:
        """Whether any chain serves HTTP."""
        return any(isinstance(chain, HttpChain) for chain in self.chains)
