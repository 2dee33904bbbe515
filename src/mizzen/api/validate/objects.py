"""Objects: the verdict on one object of any kind.

In: an object and its key. Out: Problems; an error is what admission refuses, a warning what it warns of. Codes tell
which rules found them, so that who wants only the webhook's, as analysis does, leaves the others out: see `faults`.
The Gateway API's kinds have their CRDs' rules alone, and what these refuse exists nowhere: `is_refused`. Other kinds
without rules of their own have none.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mizzen.api.gateway_api.grpc_route import GRPCRoute
from mizzen.api.gateway_api.http_route import HTTPRoute
from mizzen.api.gateway_api.listeners import Gateway as KubernetesGateway
from mizzen.api.gateway_api.listeners import GatewayClass, ListenerSet
from mizzen.api.gateway_api.policies import BackendTLSPolicy, ReferenceGrant
from mizzen.api.gateway_api.stream_routes import TCPRoute, TLSRoute
from mizzen.api.meta import Key, Object
from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.api.networking.envoy_filter import EnvoyFilter
from mizzen.api.networking.gateway import Gateway
from mizzen.api.networking.proxy_config import ProxyConfig
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.api.networking.sidecar import Sidecar
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.api.networking.workload_entry import WorkloadEntry
from mizzen.api.networking.workload_group import WorkloadGroup
from mizzen.api.policy import (
    AuthorizationPolicy,
    PeerAuthentication,
    RequestAuthentication,
    Telemetry,
    TrafficExtension,
    WasmPlugin,
)
from mizzen.api.problems import Problem
from mizzen.api.validate.crd.schema import check_schema
from mizzen.api.validate.destination_rule.rule import check_destination_rule
from mizzen.api.validate.envoy_filter.patches import check_envoy_filter
from mizzen.api.validate.extensions import check_traffic_extension, check_wasm_plugin
from mizzen.api.validate.faults import Fault, Faults
from mizzen.api.validate.gateway import check_gateway
from mizzen.api.validate.metadata import check_metadata
from mizzen.api.validate.proxy_config import check_proxy_config
from mizzen.api.validate.security.authorization import check_authorization_policy
from mizzen.api.validate.security.peer_authentication import check_peer_authentication
from mizzen.api.validate.security.request_authentication import check_request_authentication
from mizzen.api.validate.service_entry import check_service_entry
from mizzen.api.validate.sidecar import check_sidecar
from mizzen.api.validate.telemetry import check_telemetry
from mizzen.api.validate.virtual_service.service import check_virtual_service
from mizzen.api.validate.workload import check_workload_entry, check_workload_group

_MOST_OF_A_LEVEL = 100
"""Errors, and warnings, of one object; a list of a thousand wrong entries is told by its first."""

_RULES: Mapping[type[Object], Callable[[Any, str], Faults]] = {
    AuthorizationPolicy: check_authorization_policy,
    DestinationRule: check_destination_rule,
    EnvoyFilter: check_envoy_filter,
    Gateway: check_gateway,
    PeerAuthentication: check_peer_authentication,
    ProxyConfig: check_proxy_config,
    RequestAuthentication: check_request_authentication,
    ServiceEntry: check_service_entry,
    Sidecar: check_sidecar,
    Telemetry: check_telemetry,
    TrafficExtension: check_traffic_extension,
    VirtualService: check_virtual_service,
    WasmPlugin: check_wasm_plugin,
    WorkloadEntry: check_workload_entry,
    WorkloadGroup: check_workload_group,
}


_BY_SCHEMA_ALONE: tuple[type[Object], ...] = (
    BackendTLSPolicy,
    GRPCRoute,
    GatewayClass,
    HTTPRoute,
    KubernetesGateway,
    ListenerSet,
    ReferenceGrant,
    TCPRoute,
    TLSRoute,
)


def is_refused(found: Object, problems: Iterable[Problem]) -> bool:
    """Whether no API server would have the object, so that it counts as absent: one of the Gateway API with errors."""
    return isinstance(found, _BY_SCHEMA_ALONE) and any(problem.level == "error" for problem in problems)


def validate_object(key: Key, found: Object) -> tuple[Problem, ...]:
    """All that is wrong with an object beyond its types; of very many Problems only the first.

    Where the webhook's rules and the CRD's schema refuse the same, the webhook's words are told. Rules that read labels
    or annotations see those of `found`: who validates without metadata passes an object without.
    """
    rules = _RULES.get(type(found))
    if isinstance(found, _BY_SCHEMA_ALONE):
        return tuple(_problem(key, fault) for fault in _first(check_schema(found)))
    if rules is None:
        return ()
    faults = list(_first(rules(found, "spec")))
    refused = {fault.path for fault in faults if fault.level == "error"}
    faults.extend(_first(fault for fault in check_schema(found) if fault.path not in refused))
    faults.extend(check_metadata(key, found))
    return tuple(_problem(key, fault) for fault in faults)


def _first(faults: Iterable[Fault]) -> Faults:
    """The first errors and the first warnings, so that neither keeps the other from being told."""
    told = {"error": 0, "warning": 0}
    for fault in faults:
        told[fault.level] += 1
        if told[fault.level] <= _MOST_OF_A_LEVEL:
            yield fault
        elif min(told.values()) > _MOST_OF_A_LEVEL:
            return


def _problem(key: Key, fault: Fault) -> Problem:
    return Problem(key=key, path=fault.path, message=fault.message, code=fault.code, level=fault.level)
