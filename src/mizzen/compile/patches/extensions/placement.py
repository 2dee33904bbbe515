"""Placement: the filters of extensions in finished listeners.

In: the pristine listeners of a proxy and its extensions in order. Out: the listeners with the filters in their places;
one that no extension is for stays the same resource. A place is found by the filters that stand around it, for their
order is Istio's: peers, external authorization, AUTHN, tokens, AUTHZ, authorization, STATS and the rest, then what
every chain has. Chains that lead nowhere, and those for connections that nobody knows, take no network filters.
Golden case: networking/wasm-plugins.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.filters import wasm
from mizzen.compile.filters.wasm import PhasedFilters
from mizzen.compile.patches import sequences
from mizzen.compile.patches.filters import CONNECTION_MANAGER, open_connection_manager
from mizzen.compile.resource import Resource, ResourceSet, encode_resource
from mizzen.incremental import Engine, attempt, query
from mizzen.model.proxy import Kind
from mizzen.model.wasm import Extension, Side

_listener_v3 = protos.package("envoy.config.listener.v3")
_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")

_EXTERNAL = ("envoy.filters.http.ext_authz", "envoy.filters.network.ext_authz")
_TOKENS = "envoy.filters.http.jwt_authn"
_AUTHORIZATION = ("envoy.filters.http.rbac", "envoy.filters.network.rbac")
_EVERYWHERE = ("envoy.filters.http.ext_proc", "envoy.filters.http.grpc_web", "envoy.filters.http.grpc_stats")
"""The first of what every connection manager has."""
_PEERS = ("istio.metadata_exchange",)
_ALL_PORTS = "virtualInbound"
_CLOSED = ("virtualInbound-blackhole", "PassthroughFilterChain")
_CLOSED_LISTENERS = ("virtualOutbound", "connect_originate")
_MESH_SNI = "outbound_."
"""How the names begin by which gateways pass mesh TLS through."""


class Places(msgspec.Struct, frozen=True):
    """Where filters of each phase go, as indexes into the list without them."""

    authn: int
    authz: int
    stats: int


@query
def listeners(db: Engine, pristine: ResourceSet, extensions: tuple[Extension, ...], kind: Kind) -> ResourceSet:
    """The listeners with the filters of these extensions."""
    found = (attempt(extended, db, each, extensions, kind) or each for each in pristine)
    return ResourceSet(resource.LISTENER, found)


@query
def extended(db: Engine, pristine: Resource, extensions: tuple[Extension, ...], kind: Kind) -> Resource:
    """One listener with the filters of the extensions that are for its chains."""
    del db  # Nothing but the arguments counts.
    message: Any = pristine.message()
    changed = _place_http(message, extensions, _side(message, kind))
    changed = _place_network(message, extensions, _side(message, kind)) or changed
    return encode_resource(pristine.name, message) if changed else pristine


def _side(listener: Any, kind: Kind) -> Side:
    if kind != "sidecar":
        return "gateway"
    direction = listener.DESCRIPTOR.fields_by_name["traffic_direction"].enum_type.values_by_name
    return "inbound" if listener.traffic_direction == direction["INBOUND"].number else "outbound"


def _port(listener: Any, chain: Any) -> int:
    """The port that a chain is for: its listener's, or its own where one listener serves all ports; 0 for none."""
    port = chain.filter_chain_match.destination_port if listener.name == _ALL_PORTS else None
    number: int = port.value if port is not None else listener.address.socket_address.port_value
    return number


def _chains(listener: Any) -> list[Any]:
    default = [listener.default_filter_chain] if listener.HasField("default_filter_chain") else []
    return [*listener.filter_chains, *default]


# -- HTTP filters ---------------------------------------------------------------------------------------------------


def _place_http(listener: Any, extensions: Sequence[Extension], side: Side) -> bool:
    changed = False
    for chain in _chains(listener):
        phased = wasm.http_filters(extensions, side, _port(listener, chain))
        for network_filter in chain.filters if any(phased) else ():
            manager = open_connection_manager(network_filter) if network_filter.name == CONNECTION_MANAGER else None
            if manager is not None:
                places = find_http_places([each.name for each in manager.http_filters])
                _insert(manager.http_filters, places, phased, _hcm_v3.HttpFilter)
                network_filter.typed_config.value = protos.encode(manager)
                changed = True
    return changed


def find_http_places(names: Sequence[str]) -> Places:
    """The places among a connection manager's filters."""
    stats = _first(names, _EVERYWHERE, 0)
    external = _behind(names[:stats], _EXTERNAL)
    tokens = _first(names[:stats], (_TOKENS,), external)
    authn = tokens if tokens < stats else external or _first(names[:stats], _AUTHORIZATION, 0)
    return Places(authn, _first(names[:stats], _AUTHORIZATION, authn), stats)


def _first(names: Sequence[str], wanted: Iterable[str], start: int) -> int:
    """The index of the first of the wanted filters; the end where there is none."""
    return next((i for i in range(start, len(names)) if names[i] in wanted), len(names))


def _behind(names: Sequence[str], wanted: Iterable[str]) -> int:
    """The index behind the last of the wanted filters; 0 where there is none."""
    return max((i + 1 for i, name in enumerate(names) if name in wanted), default=0)


def _insert(field: Any, places: Places, phased: PhasedFilters, kind: Any) -> None:
    elements = list(field)
    for index, filters in ((places.stats, phased.stats), (places.authz, phased.authz), (places.authn, phased.authn)):
        elements[index:index] = [kind.FromString(data) for data in filters]
    sequences.store(field, elements)


# -- network filters ------------------------------------------------------------------------------------------------


def _place_network(listener: Any, extensions: Sequence[Extension], side: Side) -> bool:
    changed = False
    for chain in _open_chains(listener, side):
        phased = wasm.network_filters(extensions, side, _port(listener, chain))
        if any(phased):
            places = find_network_places([each.name for each in chain.filters])
            _insert(chain.filters, places, phased, _listener_v3.Filter)
            changed = True
    return changed


def _open_chains(listener: Any, side: Side) -> Iterator[Any]:
    """The chains that take network filters. Of HTTP chains all inbound ones do, none of a gateway's, and towards
    services the first of a listener."""
    if listener.name in _CLOSED_LISTENERS:
        return
    met_http = False
    for chain in _chains(listener):
        is_http = any(each.name == CONNECTION_MANAGER for each in chain.filters)
        is_closed = chain.name in _CLOSED or any(n.startswith(_MESH_SNI) for n in chain.filter_chain_match.server_names)
        takes = side == "inbound" or not is_http or (side == "outbound" and not met_http)
        if takes and not is_closed:
            yield chain
        met_http = met_http or is_http


def find_network_places(names: Sequence[str]) -> Places:
    """The places among a chain's filters."""
    external = _behind(names, _EXTERNAL) or _behind(names, _PEERS)
    return Places(external, external, max(_behind(names, _AUTHORIZATION), external))
