"""The listeners of one gateway.

In: a proxy of kind router. Out: its listeners, which follow from Gateway objects alone. Nothing is built here: what
matters for the proxy is selected, and the shared queries are asked. Golden cases: gateway/* .
"""

from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.compile import addresses
from mizzen.compile.listeners import gateway_building, servers, settings, telemetry
from mizzen.compile.listeners.destinations import Client
from mizzen.compile.listeners.gateway_building import GatewaySettings
from mizzen.compile.listeners.profiles import Profile, profile
from mizzen.compile.listeners.servers import HttpServer, Router
from mizzen.compile.resource import Resource
from mizzen.compile.security import applied
from mizzen.compile.security.applied import Applied
from mizzen.incremental import Engine, attempt, query
from mizzen.model import destination_rules, gateways, mesh, workloads
from mizzen.model.policies import Targets
from mizzen.model.proxy import Labels, Proxy
from mizzen.model.scope import ScopeId

_GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"


@query
def listeners(db: Engine, proxy: Proxy) -> tuple[Resource, ...]:
    """All listeners of a gateway."""
    if mesh.mesh_config(db).proxy_listen_port <= 0:
        return ()
    labels = workloads.proxy_workload(db, proxy).labels
    applying = applied.applied_policies(db, proxy.namespace, labels, _targets(labels))
    shared = gateway_settings(db, profile(db, proxy), applying, proxy.outbound_exact_balance)
    planned = servers.gateway_plans(db, _router(db, proxy))
    built = (attempt(gateway_building.gateway_listener, db, plan, shared) for plan in planned)
    return tuple(listener for listener in built if listener is not None)


@query
def route_names(db: Engine, proxy: Proxy) -> tuple[str, ...]:
    """The names of the route configurations that its listeners ask for, sorted."""
    planned = servers.gateway_plans(db, _router(db, proxy))
    found = {chain.route_name for plan in planned for chain in plan.chains if isinstance(chain, HttpServer)}
    return tuple(sorted(found))


@query
def gateway_settings(db: Engine, own: Profile, policies: Applied, exact_balance: bool) -> GatewaySettings:
    """What the listeners of all gateways of a profile share."""
    return GatewaySettings(
        http=settings.http_settings(db, own, "gateway", ""),
        tcp=settings.tcp_settings(db, own, "gateway"),
        http_policies=applied.http_policies(db, policies, own.dialect, True),
        tcp_policies=applied.network_policies(db, policies, own.dialect),
        listener_logs=telemetry.signals(db, own, "gateway").listener_logs,
        buffer_limit=settings.buffer_limit(db, own),
        proxy_protocol=settings.reads_proxy_protocol(db, own),
        exact_balance=exact_balance,
    )


def _router(db: Engine, proxy: Proxy) -> Router:
    labels = workloads.proxy_workload(db, proxy).labels
    return Router(
        dialect=proxy.dialect,
        client=Client(
            scope=ScopeId(proxy.namespace),
            rule_labels=destination_rules.selector_labels(db, proxy.namespace, labels),
        ),
        workload=gateways.gateway_workload(db, proxy),
        network=addresses.network(proxy, dual_stack=mesh.control_plane(db).dual_stack),
        external_sds=proxy.credential_socket,
        file_credential=proxy.file_credential,
    )


def _targets(labels: Labels) -> Targets:
    """What policies with target references may name: the Gateway that a managed gateway stands for."""
    name = dict(labels).get(_GATEWAY_NAME)
    return ((GATEWAY_GROUP, "Gateway", name),) if name else ()
