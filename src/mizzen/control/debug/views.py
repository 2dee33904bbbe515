"""What the mesh is to one proxy: the services that it serves, its scope, its telemetry.

In: connections and the model. Out: istiod's documents instancesz, sidecarz and telemetryz.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.control.debug.clients import find
from mizzen.control.debug.console import Page, Pages, Query, Write
from mizzen.control.debug.objects import by_namespace, plain
from mizzen.control.debug.registry import describe_port, describe_service
from mizzen.incremental import Engine, attempt
from mizzen.model import destination_rules, mesh, scope, targets, telemetry, workloads
from mizzen.model.attachments import Audience
from mizzen.model.proxy import Proxy
from mizzen.xds.status import Connections, proxy_id

_SIDES: tuple[telemetry.Mode, ...] = ("CLIENT", "SERVER")


def pages(engine: Engine, connections: Connections) -> Pages:
    """The pages about single proxies."""

    def read_instances(_: Query) -> Write:
        held = {
            proxy_id(each.proxy): attempt(targets.service_targets, engine, each.proxy) or () for each in connections
        }
        cluster = mesh.control_plane(engine).cluster_id
        return lambda: {name: [_describe_target(target, cluster) for target in found] for name, found in held.items()}

    def read_scope(query: Query) -> Write:
        return _read_scope(engine, find(connections, query).proxy)

    def read_telemetry(query: Query) -> Write:
        if not query["proxyID"]:
            return by_namespace(engine, "Telemetry", "telemetries", "namespace_to_telemetries")
        document = _telemetry(engine, find(connections, query).proxy)
        return lambda: document

    return {
        "instancesz": Page("The services that each connected proxy serves.", read_instances),
        "sidecarz": Page("What the proxy proxyID may reach.", read_scope),
        "telemetryz": Page("Telemetries by namespace; with proxyID what holds for one proxy.", read_telemetry),
    }


def _describe_target(target: targets.ServiceTarget, cluster: str) -> dict[str, Any]:
    port = {**describe_port(target.port), "TargetPort": target.target_port}
    return {"Service": describe_service(target.service, cluster), "Port": port}


# -- scope ------------------------------------------------------------------------------------------------------------


def _read_scope(engine: Engine, proxy: Proxy) -> Write:
    labels = workloads.proxy_workload(engine, proxy).labels
    found = scope.select_scope(engine, proxy.namespace, labels)
    held = scope.scope_services(engine, found)
    listeners = scope.egress_listeners(engine, found)
    by_host = scope.services_by_host(engine, found)
    sidecar = scope.sidecar(engine, found)
    policy = scope.outbound_policy(engine, found)
    rules = _rules(engine, proxy, labels, {s.host: s.namespace for s in held})
    cluster = mesh.control_plane(engine).cluster_id

    def write() -> dict[str, Any]:
        return {
            "name": found.sidecar.name if found.sidecar is not None else "default-sidecar",
            "namespace": found.namespace,
            "outboundTrafficPolicy": {"mode": policy.mode},
            "services": [describe_service(service, cluster) for service in held],
            "egressListenerServices": [
                {"port": listener.port, "bind": listener.bind, "services": [s.host for s in listener.services]}
                for listener in listeners
            ],
            "servicesByHostname": {host: describe_service(s, cluster) for host, s in sorted(by_host.items())},
            "sidecar": plain(sidecar.spec) if sidecar is not None else None,
            "destinationRules": rules,
        }

    return write


def _rules(engine: Engine, proxy: Proxy, labels: Any, namespaces: Mapping[str, str]) -> dict[str, list[dict[str, str]]]:
    """The DestinationRules that the proxy applies, by host; several merged into one are all named."""
    selected_by = destination_rules.selector_labels(engine, proxy.namespace, labels)
    found: dict[str, list[dict[str, str]]] = {}
    for host, namespace in sorted(namespaces.items()):
        rule = attempt(destination_rules.destination_rule, engine, proxy.namespace, host, namespace, selected_by)
        if rule is not None:
            found[host] = [{"namespace": key.namespace, "name": key.name} for key in rule.keys]
    return found


# -- telemetry --------------------------------------------------------------------------------------------------------


def _telemetry(engine: Engine, proxy: Proxy) -> dict[str, Any]:
    """The Telemetries that hold for a proxy, and what they come to on either side of a connection."""
    labels = workloads.proxy_workload(engine, proxy).labels
    keys = telemetry.telemetries(engine, Audience(proxy.kind, proxy.namespace, labels))
    return {
        "telemetries": [{"namespace": key.namespace, "name": key.name} for key in keys],
        "sides": {
            side: {
                "accessLogs": plain(telemetry.access_logs(engine, keys, side)),
                "metrics": plain(telemetry.metrics(engine, keys, side)),
                "traces": plain(telemetry.traces(engine, keys, side)),
            }
            for side in _SIDES
        },
    }
