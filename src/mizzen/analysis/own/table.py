"""The table of Mizzen's own rules."""

from collections.abc import Callable
from typing import NamedTuple

from mizzen.analysis.findings import Finding
from mizzen.analysis.own import (
    authorization,
    endpoints,
    envoy_filters,
    gateways,
    mutual_tls,
    protocols,
    routed_hosts,
    routes,
    schema,
    service_entries,
)
from mizzen.api.meta import Key
from mizzen.incremental import Engine


class OwnRule(NamedTuple):
    """A rule under a name, with what it asks of which kinds."""

    name: str
    description: str
    checks: tuple[tuple[str, Callable[[Engine, Key], tuple[Finding, ...]]], ...]


_SCHEMAS = (
    "AuthorizationPolicy DestinationRule EnvoyFilter Gateway PeerAuthentication ProxyConfig RequestAuthentication "
    "ServiceEntry Sidecar Telemetry TrafficExtension VirtualService WasmPlugin WorkloadEntry WorkloadGroup"
)

OWN_RULES: tuple[OwnRule, ...] = (
    OwnRule("mizzen.Schema", "Objects that only the API server refuses", ((_SCHEMAS, schema.check_schema),)),
    OwnRule("mizzen.RoutedHosts", "Hosts that no proxy routes", (("VirtualService", routed_hosts.check_hosts),)),
    OwnRule(
        "mizzen.Endpoints",
        "Subsets without endpoints, locality without outlier detection and the reverse",
        (("DestinationRule", endpoints.check_subsets), ("DestinationRule", endpoints.check_locality)),
    ),
    OwnRule(
        "mizzen.Protocols",
        "Ports and routes whose protocols contradict each other",
        (("Service", protocols.check_ports), ("VirtualService", protocols.check_routes)),
    ),
    OwnRule(
        "mizzen.MutualTLS",
        "Clients and servers that do not agree on mutual TLS",
        (("PeerAuthentication", mutual_tls.check_strict), ("DestinationRule", mutual_tls.check_rule)),
    ),
    OwnRule(
        "mizzen.Authorization",
        "Policies that deny or allow everything by accident",
        (("AuthorizationPolicy", authorization.check_policy),),
    ),
    OwnRule(
        "mizzen.Tokens",
        "Tokens that nobody has to show",
        (("RequestAuthentication", authorization.check_tokens),),
    ),
    OwnRule(
        "mizzen.Routes",
        "Routes that are never reached, and wrong regular expressions",
        (
            ("VirtualService", routes.check_matches),
            ("VirtualService", routes.check_virtual_service),
            ("HTTPRoute", routes.check_http_route),
            ("GRPCRoute", routes.check_grpc_route),
        ),
    ),
    OwnRule(
        "mizzen.Gateways",
        "Gateways without routes",
        (("Gateway", gateways.check_gateway), ("KubernetesGateway", gateways.check_kubernetes_gateway)),
    ),
    OwnRule("mizzen.ServiceEntries", "ServiceEntries that overlap", (("ServiceEntry", service_entries.check_entry),)),
    OwnRule("mizzen.EnvoyFilters", "EnvoyFilters that change nothing", (("EnvoyFilter", envoy_filters.check_filter),)),
)
