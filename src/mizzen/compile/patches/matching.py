"""Matching: what a patch means among clusters, listeners, chains, filters, route configurations, hosts and routes.

In: a patch and the message it may mean. Out: yes or no. A match that is left out means everything. Names are compared
as they are; the port of `virtualInbound` and `virtualOutbound` stands in their chains, so a port number picks chains
there. Golden cases: networking/ef-listeners, networking/ef-filters, networking/ef-routes, networking/ef-clusters,
gateway/cors-and-ratelimit.
"""

from collections.abc import Collection, Mapping
from typing import Any

from mizzen.api.networking.envoy_filter import (
    FilterChainMatch,
    FilterMatch,
    ListenerMatch,
    RouteConfigurationMatch,
    VirtualHostMatch,
)
from mizzen.compile.patches.values import ReadyPatch
from mizzen.model import names

VIRTUAL_LISTENERS = ("virtualInbound", "virtualOutbound")

_ACTIONS = {"route": "ROUTE", "redirect": "REDIRECT", "direct_response": "DIRECT_RESPONSE"}

ServedPorts = Mapping[int, Collection[int]]
"""The port in the name of a gateway's route configuration, and the ports of the Gateway servers behind it."""


# -- clusters -------------------------------------------------------------------------------------------------------


def is_cluster(patch: ReadyPatch, name: str, hosts: Collection[str]) -> bool:
    """Whether the patch means the cluster; `hosts` are those of the services behind an inbound one."""
    match = patch.match.cluster
    if match is None:
        return True
    if match.name:
        return match.name == name
    parts = names.parse_subset_key(name) or names.SubsetKey("", 0, "", "")
    if match.subset and match.subset != parts.subset:
        return False
    if match.service and match.service not in (hosts if parts.direction == names.INBOUND and hosts else (parts.host,)):
        return False
    return not match.port_number or match.port_number == parts.port


# -- listeners, chains and filters ----------------------------------------------------------------------------------


def is_listener(patch: ReadyPatch, name: str, port: int | None) -> bool:
    """Whether the patch means the listener, or something in it; `port` is None where it listens on no TCP port."""
    match = patch.match.listener
    if match is None:
        return True
    if match.name and match.name != name:
        return False
    if patch.apply_to != "LISTENER" and name in VIRTUAL_LISTENERS:
        return True
    return not match.port_number or match.port_number == port


def is_chain(patch: ReadyPatch, listener: str, chain: Any) -> bool:
    """Whether the patch means the filter chain, or something in it."""
    match = patch.match.listener
    if match is None:
        return True
    port = chain.filter_chain_match.destination_port.value if chain.HasField("filter_chain_match") else 0
    if listener in VIRTUAL_LISTENERS and match.port_number and match.port_number != port:
        return False
    return match.filter_chain is None or _is_chain(match.filter_chain, chain, port)


def _is_chain(match: FilterChainMatch, chain: Any, port: int) -> bool:
    criteria = chain.filter_chain_match
    return (
        (not match.name or match.name == chain.name)
        and (not match.sni or match.sni in criteria.server_names)
        and (not match.transport_protocol or match.transport_protocol == criteria.transport_protocol)
        and (
            not match.application_protocols
            or set(match.application_protocols.split(",")) <= set(criteria.application_protocols)
        )
        and (not match.destination_port or match.destination_port == port)
    )


def listener_filter(patch: ReadyPatch) -> str | None:
    """The listener filter that the patch looks for; None for none in particular."""
    return (patch.match.listener or ListenerMatch()).listener_filter or None


def network_filter(patch: ReadyPatch) -> str | None:
    """The network filter that the patch looks for; None for none in particular."""
    match = _filter(patch)
    return match.name if match is not None else None


def http_filter(patch: ReadyPatch) -> str | None:
    """The HTTP filter that the patch looks for; None for none in particular."""
    match = _filter(patch)
    return match.sub_filter.name if match is not None and match.sub_filter is not None else None


def _filter(patch: ReadyPatch) -> FilterMatch | None:
    chain = (patch.match.listener or ListenerMatch()).filter_chain
    return chain.filter if chain is not None else None


# -- routes ---------------------------------------------------------------------------------------------------------


def is_configuration(patch: ReadyPatch, name: str, served: ServedPorts | None) -> bool:
    """Whether the patch means the route configuration, or something in it; `served` is None but on gateways."""
    match = patch.match.route_configuration
    if match is None:
        return True
    if match.name and match.name != name:
        return False
    if served is not None:
        return _is_gateway_configuration(match, name, served)
    return not match.port_number or match.port_number == _sidecar_port(name)


def _sidecar_port(name: str) -> int:
    """The port of a sidecar's route configuration; 0 where its name is no bare number."""
    if name.startswith(names.INBOUND):
        parts = names.parse_subset_key(name)
        return parts.port if parts is not None else 0
    return _number(name)


def _number(text: str) -> int:
    """A port's digits as a number; 0 for any other text."""
    return int(text) if len(text) <= 5 and text.isascii() and text.isdigit() else 0


def _is_gateway_configuration(match: RouteConfigurationMatch, name: str, served: ServedPorts) -> bool:
    port, port_name, gateway = parse_gateway_name(name)
    if match.port_number and match.port_number not in served.get(port, (port,)):
        return False
    return (not match.port_name or match.port_name == port_name) and (not match.gateway or match.gateway == gateway)


def parse_gateway_name(name: str) -> tuple[int, str, str]:
    """Port, port name and `namespace/gateway` of a gateway's route configuration; what its name lacks is empty."""
    parts = name.split(".")
    number = _number(parts[1]) if len(parts) > 1 else 0
    if parts[0] == "https" and len(parts) >= 5:
        return number, parts[2], f"{parts[4]}/{parts[3]}"
    return (number, "", "") if parts[0] == "http" else (0, "", "")


def is_virtual_host(patch: ReadyPatch, host: Any) -> bool:
    """Whether the patch means the virtual host, or something in it: by its name, else by one of its domains."""
    match = _virtual_host(patch)
    if match is None:
        return True
    if match.name:
        return bool(match.name == host.name)
    return not match.domain_name or match.domain_name in host.domains


def names_route(patch: ReadyPatch) -> bool:
    """Whether the patch looks for a route in particular."""
    match = _virtual_host(patch)
    return match is not None and match.route is not None


def is_route(patch: ReadyPatch, route: Any) -> bool:
    """Whether the patch means the route."""
    match = _virtual_host(patch)
    if match is None or match.route is None:
        return True
    if match.route.name and match.route.name != route.name:
        return False
    action = _ACTIONS.get(route.WhichOneof("action"), match.route.action)
    return match.route.action in ("ANY", action)


def _virtual_host(patch: ReadyPatch) -> VirtualHostMatch | None:
    match = patch.match.route_configuration
    return match.vhost if match is not None else None
