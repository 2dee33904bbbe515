"""Shape: what makes Envoy refuse a message whose every field is well-formed.

In: a finished listener, cluster or route configuration. Out: the first fault, or None. Known here: which filters end a
chain and must stand last, chains that nobody could tell apart, domains of two virtual hosts, discovery types without
what they need, and extensions that only Istio's own Envoy has. Each was seen to be refused by a real Envoy.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mizzen import protos
from mizzen.errors import DecodeError

_NETWORK = "envoy.extensions.filters.network."
_CONNECTION_MANAGER = _NETWORK + "http_connection_manager.v3.HttpConnectionManager"
_LAST_NETWORK = frozenset(
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
)
_LAST_HTTP = frozenset(("envoy.extensions.filters.http.router.v3.Router",))
_TYPED_STRUCTS = ("udpa.type.v1.TypedStruct", "xds.type.v3.TypedStruct")
_ISTIO_ONLY = ("istio.", "io.istio.", "stats.", "envoy.tcp.metadataexchange.")


def fault(message: Any) -> str | None:
    """The first fault of a message; None where there is none, or nothing is known of its type."""
    look = _FAULTS.get(message.DESCRIPTOR.full_name)
    return next(look(message), None) if look is not None else None


# -- listeners ------------------------------------------------------------------------------------------------------


def _listener_faults(listener: Any) -> Iterator[str]:
    if not listener.HasField("address"):
        yield "a listener needs an address"
    chains = [*listener.filter_chains]
    seen: set[bytes] = set()
    for chain in chains:
        match = protos.encode(chain.filter_chain_match)
        if match in seen:
            yield f"two filter chains match the same connections ({chain.name or 'unnamed'})"
        seen.add(match)
    if listener.HasField("default_filter_chain"):
        chains.append(listener.default_filter_chain)
    if not chains and not listener.HasField("udp_listener_config"):
        yield "a listener needs a filter chain"
    for chain in chains:
        yield from _chain_faults(chain.filters, _LAST_NETWORK)
        for network_filter in chain.filters:
            if _config_type(network_filter) == _CONNECTION_MANAGER:
                manager: Any = protos.unpack(network_filter.typed_config)
                yield from _chain_faults(manager.http_filters, _LAST_HTTP)
    for listener_filter in listener.listener_filters:
        yield from _foreign(listener_filter)


def _chain_faults(filters: Any, last_types: frozenset[str]) -> Iterator[str]:
    """Filters that end a chain stand last, and only they do; one of unknown kind may be either."""
    for index, each in enumerate(filters):
        yield from _foreign(each)
        kind, is_last = _config_type(each), index == len(filters) - 1
        if kind in last_types and not is_last:
            yield f"{each.name} must be the last filter of its chain"
        if is_last and kind not in last_types and _is_known(kind):
            yield f"{each.name} must not be the last filter of its chain"


def _config_type(each: Any) -> str:
    """The type of a filter's configuration; empty where it is fetched or absent."""
    if each.WhichOneof("config_type") != "typed_config":
        return ""
    name: str = each.typed_config.type_url.rpartition("/")[2]
    if name in _TYPED_STRUCTS:
        inside: Any = protos.unpack(each.typed_config)
        name = inside.type_url.rpartition("/")[2]
    return name


def _is_known(name: str) -> bool:
    try:
        protos.message_class(name)
    except DecodeError:
        return False
    return True


def _foreign(each: Any) -> Iterator[str]:
    name = _config_type(each)
    if name.startswith(_ISTIO_ONLY):
        yield f"{each.name} is of a type that only Istio's proxy has ({name})"


# -- clusters -------------------------------------------------------------------------------------------------------


def _cluster_faults(cluster: Any) -> Iterator[str]:
    kinds = type(cluster).DiscoveryType
    discovery = kinds.Name(cluster.type) if cluster.WhichOneof("cluster_discovery_type") == "type" else ""
    if discovery == "EDS" and not cluster.HasField("eds_cluster_config"):
        yield "an EDS cluster needs eds_cluster_config"
    if discovery != "EDS" and cluster.HasField("eds_cluster_config"):
        yield "eds_cluster_config is for EDS clusters"
    provided = type(cluster).LbPolicy.Name(cluster.lb_policy) == "CLUSTER_PROVIDED"
    if discovery == "ORIGINAL_DST" and not provided and not cluster.HasField("load_balancing_policy"):
        yield "an ORIGINAL_DST cluster needs lb_policy CLUSTER_PROVIDED"
    if discovery not in ("", "ORIGINAL_DST") and provided:
        yield f"a {discovery} cluster cannot have lb_policy CLUSTER_PROVIDED"
    if discovery == "LOGICAL_DNS" and _endpoints(cluster) != 1:
        yield "a LOGICAL_DNS cluster needs exactly one endpoint"
    for each in cluster.filters:
        name: str = each.typed_config.type_url.rpartition("/")[2]
        if name.startswith(_ISTIO_ONLY):
            yield f"{each.name} is of a type that only Istio's proxy has ({name})"


def _endpoints(cluster: Any) -> int:
    return sum(len(locality.lb_endpoints) for locality in cluster.load_assignment.endpoints)


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
