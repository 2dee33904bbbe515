"""Shape: what makes Envoy refuse a message whose every field is well-formed.

In: a finished listener, cluster or route configuration. Out: the first fault, or None. Known here: filters that are of
another layer, without configuration, or not where they must stand; chains that the same connection would match;
addresses that are none; domains of two virtual hosts; discovery types without what they need; extensions that upstream
Envoy lacks. Each of these was seen to be refused by a real Envoy.
"""

import ipaddress
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from mizzen import protos
from mizzen.compile.patches.opaque import TYPED_STRUCTS, is_contrib, known_class

Layer = Literal["listener", "network", "http"]

_FILTERS = "envoy.extensions.filters."
_NETWORK = _FILTERS + "network."
_CONNECTION_MANAGER = _NETWORK + "http_connection_manager.v3.HttpConnectionManager"
_LAST: Mapping[Layer, frozenset[str]] = {
    "network": frozenset(
        (
            _CONNECTION_MANAGER,
            _NETWORK + "tcp_proxy.v3.TcpProxy",
            _NETWORK + "echo.v3.Echo",
            _NETWORK + "direct_response.v3.Config",
            _NETWORK + "redis_proxy.v3.RedisProxy",
            _NETWORK + "thrift_proxy.v3.ThriftProxy",
            _NETWORK + "dubbo_proxy.v3.DubboProxy",
            _NETWORK + "generic_proxy.v3.GenericProxy",
        )
    ),
    "http": frozenset((_FILTERS + "http.router.v3.Router",)),
}
_EITHER = ("dynamic_modules", "reverse_tunnel", "mcp_router")
"""Filters that may or may not end a chain."""
_ISTIO_ONLY = ("istio.", "io.istio.", "stats.", "envoy.tcp.metadataexchange.")


def fault(message: Any) -> str | None:
    """The first fault of a message; None where there is none, or nothing is known of its type."""
    look = _FAULTS.get(message.DESCRIPTOR.full_name)
    return next(look(message), None) if look is not None else None


# -- listeners ------------------------------------------------------------------------------------------------------


def _listener_faults(listener: Any) -> Iterator[str]:
    if not listener.HasField("address"):
        yield "a listener needs an address"
    yield from _address_faults(listener.address)
    if not len(listener.filter_chains) and not _has_other_chains(listener):
        yield "a listener needs a filter chain"
    yield from _match_faults(listener.filter_chains)
    for each in listener.listener_filters:
        yield from _filter_faults(each, "listener")
    chains = [*listener.filter_chains]
    if listener.HasField("default_filter_chain"):
        chains.append(listener.default_filter_chain)
    for chain in chains:
        yield from _chain_faults(chain.filters, "network")
        for network_filter in chain.filters:
            if _config_type(network_filter) == _CONNECTION_MANAGER:
                yield from _manager_faults(network_filter)


def _has_other_chains(listener: Any) -> bool:
    return bool(listener.HasField("default_filter_chain") or listener.HasField("udp_listener_config"))


def _address_faults(address: Any) -> Iterator[str]:
    if address.HasField("socket_address") and not address.socket_address.resolver_name:
        try:
            ipaddress.ip_address(address.socket_address.address)
        except ValueError:
            yield f"{address.socket_address.address!r} is no IP address"


def _match_faults(chains: Iterable[Any]) -> Iterator[str]:
    """No connection may match two chains equally well: Envoy files a chain under each combination of its criteria."""
    taken: set[tuple[Any, ...]] = set()
    for chain in chains:
        match = chain.filter_chain_match
        if any("*" in name.removeprefix("*") for name in match.server_names):
            yield "a server name may be a wildcard only as a whole label at its beginning"
        combinations = set(itertools.product(*_criteria(match)))
        if not taken.isdisjoint(combinations):
            yield f"two filter chains match the same connections ({chain.name or 'unnamed'})"
        taken |= combinations


def _criteria(match: Any) -> Iterator[Iterable[Any]]:
    yield (match.destination_port.value,)
    for ranges in (match.prefix_ranges, match.direct_source_prefix_ranges, match.source_prefix_ranges):
        yield [(r.address_prefix, r.prefix_len.value) for r in ranges] or [None]
    yield (match.transport_protocol,)
    yield (match.source_type,)
    for names in (match.server_names, match.application_protocols, match.source_ports):
        yield names or [None]


def _manager_faults(network_filter: Any) -> Iterator[str]:
    manager: Any = _unpacked(network_filter.typed_config)
    if manager is None:
        return
    yield from _chain_faults(manager.http_filters, "http")
    if type(manager).CodecType.Name(manager.codec_type) == "HTTP3":
        yield "HTTP/3 needs a QUIC listener"
    upgrades = [upgrade.upgrade_type.lower() for upgrade in manager.upgrade_configs]
    if len(set(upgrades)) < len(upgrades):
        yield "an upgrade type is configured twice"
    if manager.HasField("route_config"):
        yield from _route_faults(manager.route_config)


def _unpacked(packed: Any) -> Any | None:
    return protos.unpack(packed) if packed.type_url.rpartition("/")[2] not in TYPED_STRUCTS else None


# -- filters --------------------------------------------------------------------------------------------------------


def _chain_faults(filters: Any, layer: Layer) -> Iterator[str]:
    """Filters that end a chain stand last, and only they do."""
    for index, each in enumerate(filters):
        yield from _filter_faults(each, layer)
        kind, is_last = _config_type(each), index == len(filters) - 1
        if kind in _LAST[layer] and not is_last:
            yield f"{each.name} must be the last filter of its chain"
        if (
            is_last
            and kind not in _LAST[layer]
            and known_class(kind) is not None
            and not any(word in kind for word in _EITHER)
        ):
            yield f"{each.name} must not be the last filter of its chain"


def _filter_faults(each: Any, layer: Layer) -> Iterator[str]:
    kind = _config_type(each)
    if each.WhichOneof("config_type") is None and not (layer == "http" and each.is_optional):
        yield f"{each.name} has neither a typed configuration nor a source of one"
    if _is_lacking(kind):
        yield f"{each.name} is of a type that upstream Envoy lacks ({kind})"
    elif known_class(kind) is not None and not kind.startswith(f"{_FILTERS}{layer}."):
        yield f"{each.name} is no {layer} filter ({kind})"


def _config_type(each: Any) -> str:
    """The type of a filter's configuration; empty where it is fetched or absent."""
    if each.WhichOneof("config_type") != "typed_config":
        return ""
    return _type_of(each.typed_config)


def _type_of(packed: Any) -> str:
    name: str = packed.type_url.rpartition("/")[2]
    if name in TYPED_STRUCTS:
        inside: Any = protos.unpack(packed)
        name = inside.type_url.rpartition("/")[2]
    return name


def _is_lacking(name: str) -> bool:
    return name.startswith(_ISTIO_ONLY) or is_contrib(name)


# -- clusters -------------------------------------------------------------------------------------------------------


def _cluster_faults(cluster: Any) -> Iterator[str]:
    discovery, policy = _discovery(cluster)
    if discovery == "EDS" and not cluster.HasField("eds_cluster_config"):
        yield "an EDS cluster needs eds_cluster_config"
    if discovery != "EDS" and cluster.HasField("eds_cluster_config"):
        yield "eds_cluster_config is for EDS clusters"
    if discovery == "ORIGINAL_DST" and policy not in ("CLUSTER_PROVIDED", "LOAD_BALANCING_POLICY_CONFIG"):
        yield "an ORIGINAL_DST cluster needs lb_policy CLUSTER_PROVIDED"
    if discovery not in ("", "ORIGINAL_DST") and policy == "CLUSTER_PROVIDED":
        yield f"a {discovery} cluster cannot have lb_policy CLUSTER_PROVIDED"
    endpoints = [e.endpoint for locality in cluster.load_assignment.endpoints for e in locality.lb_endpoints]
    if discovery == "LOGICAL_DNS" and len(endpoints) != 1:
        yield "a LOGICAL_DNS cluster needs exactly one endpoint"
    for endpoint in endpoints if discovery == "STATIC" else ():
        yield from _address_faults(endpoint.address)
    for each in cluster.filters:
        kind = _type_of(each.typed_config)
        if _is_lacking(kind):
            yield f"{each.name} is of a type that upstream Envoy lacks ({kind})"


def _discovery(cluster: Any) -> tuple[str, str]:
    """Discovery type, empty for one of an extension, and load balancing policy."""
    message = type(cluster)
    is_typed = cluster.WhichOneof("cluster_discovery_type") != "cluster_type"
    policy = message.LbPolicy.Name(cluster.lb_policy)
    if cluster.HasField("load_balancing_policy"):
        policy = "LOAD_BALANCING_POLICY_CONFIG"
    return message.DiscoveryType.Name(cluster.type) if is_typed else "", policy


# -- route configurations -------------------------------------------------------------------------------------------


def _route_faults(configuration: Any) -> Iterator[str]:
    owners: dict[str, str] = {}
    for host in configuration.virtual_hosts:
        for domain in host.domains:
            lowered = domain.lower()
            if lowered in owners:
                yield f"the domain {domain} is in {owners[lowered]} and in {host.name}"
            owners[lowered] = host.name


_FAULTS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "envoy.config.listener.v3.Listener": _listener_faults,
    "envoy.config.cluster.v3.Cluster": _cluster_faults,
    "envoy.config.route.v3.RouteConfiguration": _route_faults,
}
