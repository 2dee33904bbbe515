"""Applications: pods that run as the sidecar's user, and Deployments behind Services that contradict each other.

In: Pods, Deployments, Services. Out: IST0144, IST0116, IST0137.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from mizzen.analysis import catalogue, membership, objects
from mizzen.analysis.findings import Finding, full_name, report
from mizzen.api.kube.services import Service
from mizzen.api.kube.workloads import Deployment
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.workloads import freeze, selects

_PROXY_UID = 1337
_OWN_CONTAINERS = ("istio-proxy", "istio-operator")
_MANAGED = "gateway.istio.io/managed"
_WAYPOINT = "istio.io-mesh-controller"


@query
def check_user(db: Engine, key: Key) -> tuple[Finding, ...]:
    """An application that runs as user 1337, whose traffic the sidecar takes for its own."""
    found: Any = db.input(key)
    if found is None or membership.is_control_plane(found.metadata):
        return ()
    is_pod = key.kind == "Pod"
    spec = found.spec if is_pod else found.spec.template.spec
    prefix = "spec" if is_pod else "spec.template.spec"
    if spec.security_context is not None and spec.security_context.run_as_user == _PROXY_UID:
        return (report(catalogue.INVALID_APPLICATION_UID, key, path=f"{prefix}.securityContext.runAsUser"),)
    for index, container in enumerate(spec.containers):
        context = container.security_context
        if container.name not in _OWN_CONTAINERS and context is not None and context.run_as_user == _PROXY_UID:
            path = f"{prefix}.containers[{index}].securityContext.runAsUser"
            return (report(catalogue.INVALID_APPLICATION_UID, key, path=path),)
    return ()


@query
def check_services(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Services of one Deployment that use a port differently."""
    found: Deployment | None = db.input(key)
    if found is None:
        return ()
    template = found.spec.template
    if found.metadata.labels.get(_MANAGED) == _WAYPOINT:
        return ()
    if not membership.is_meshed(db, key.namespace, template.metadata, template.spec):
        return ()
    services = list(_selecting(db, key.namespace, template.metadata.labels.items()))
    return (*_protocol_conflicts(key, services), *_port_conflicts(key, services))


def _selecting(db: Engine, namespace: str, labels: Any) -> Iterator[tuple[str, Service]]:
    for key in objects.keys_in(db, "Service", namespace):
        service: Service = db.input(key)
        if service.spec.selector and selects(freeze(service.spec.selector), tuple(labels)):
            yield full_name(key), service


def _protocol_conflicts(key: Key, services: list[tuple[str, Service]]) -> Iterator[Finding]:
    protocols: dict[int, set[str]] = defaultdict(set)
    users: dict[int, set[str]] = defaultdict(set)
    for name, service in services:
        for port in service.spec.ports:
            protocols[port.port].add(port.protocol)
            users[port.port].add(name)
    for number in sorted(protocols):
        if len(protocols[number]) > 1:
            names = sorted(users[number])
            yield report(catalogue.DEPLOYMENT_ASSOCIATED_TO_MULTIPLE_SERVICES, key, full_name(key), number, names)


def _port_conflicts(key: Key, services: list[tuple[str, Service]]) -> Iterator[Finding]:
    numbers: dict[str, set[int]] = defaultdict(set)
    users: dict[str, set[str]] = defaultdict(set)
    for name, service in services:
        for port in service.spec.ports:
            target = str(port.target_port or port.port)
            numbers[target].add(port.port)
            users[target].add(name)
    for target in sorted(numbers):
        if len(numbers[target]) > 1:
            names, ports = sorted(users[target]), sorted(numbers[target])
            yield report(catalogue.DEPLOYMENT_CONFLICTING_PORTS, key, full_name(key), names, target, ports)
