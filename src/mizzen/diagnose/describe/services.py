"""A Service: its ports, and for each what clients' and the pods' proxies were told about it.

In: the objects in an engine, the Service, the pods that are looked at, and the dump of one of their proxies. Out:
lines. A DestinationRule or VirtualService that the dump names and the engine lacks means a proxy that lags behind.
"""

from collections.abc import Iterator, Sequence

from mizzen.api.kube.pods import Pod
from mizzen.api.kube.services import Service, ServicePort
from mizzen.api.meta import Key
from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.diagnose.describe import destination_rules, ignored, told, virtual_services
from mizzen.diagnose.describe.subject import Subject
from mizzen.diagnose.describe.text import INDENT, indent, name_in, quote
from mizzen.diagnose.dump import Dump
from mizzen.incremental import Engine
from mizzen.model import mesh, objects, protocols
from mizzen.model import virtual_services as model_virtual_services


def find_services(db: Engine, pod: Pod) -> tuple[Service, ...]:
    """The Services that select a pod, by name."""
    found: list[Service] = [db.input(key) for key in objects.in_namespace(db, "Service", pod.metadata.namespace)]
    return tuple(each for each in found if selects(each, pod))


def selects(service: Service, pod: Pod) -> bool:
    """Whether the Service has a selector that takes the pod."""
    selector = service.spec.selector
    same = service.metadata.namespace == pod.metadata.namespace
    return bool(selector) and same and selector.items() <= pod.metadata.labels.items()


def tcp_ports(service: Service) -> tuple[ServicePort, ...]:
    """The ports that the mesh handles."""
    return tuple(port for port in service.spec.ports if port.protocol == "TCP")


def describe_service(db: Engine, subject: Subject, source: Dump | None) -> Iterator[str]:
    """The Service's ports, then each port's rules; without a dump only the ports."""
    service = subject.service
    key = Key("Service", service.metadata.namespace, service.metadata.name)
    yield f"Service: {name_in(key, subject.namespace)}"
    for port in tcp_ports(service):
        yield from indent(_describe_port(port, subject.pods[0] if subject.pods else None))
    if source is None:
        return
    several = len(service.spec.ports) > 1
    for port in tcp_ports(service):
        lines = list(_describe_rules(db, subject, port, source))
        if lines and several:
            yield f"{port.port}:"
            lines = indent(lines)
        yield from lines


def _describe_port(port: ServicePort, pod: Pod | None) -> Iterator[str]:
    protocol = protocols.protocol_of(port)
    unnamed = not port.name and not port.app_protocol
    shown = "auto-detect" if unnamed else "UnsupportedProtocol" if protocol.is_auto else protocol.value
    target = target_port(port, pod) if pod is not None else None
    if target is None and pod is not None:
        yield f"no suitable port for manifest: {pod.metadata.uid or pod.metadata.name}"
    else:
        yield f"Port: {port.name} {port.port}/{shown}" + (f" targets pod port {target}" if target else "")
    if protocol.is_auto and not unnamed:
        says = f"appProtocol {quote(port.app_protocol)}" if port.app_protocol else f"name {quote(port.name)}"
        yield f"{INDENT}Note: the {says} is no protocol: it is found by looking at each connection"


def target_port(port: ServicePort, pod: Pod) -> int | None:
    """The number of the pod's port behind a Service's port; None where the pod has no port of that name."""
    if port.target_port is None:
        return port.port
    if isinstance(port.target_port, int):
        return port.target_port
    named = (
        each.container_port
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for each in container.ports
        if each.name == port.target_port and each.protocol in ("", port.protocol)
    )
    return next(named, None)


def _describe_rules(db: Engine, subject: Subject, port: ServicePort, source: Dump) -> Iterator[str]:
    where = told.Port(subject.host(db), port.port)
    rules, lines = describe_destination_rules(db, subject, where, source)
    yield from lines
    keys = _find_virtual_services(db, where, source)
    yield from describe_virtual_services(db, subject, keys, rules)
    yield from ignored.describe_ignored(db, subject, port, keys)
    if policies := told.find_policies(source):
        yield f"RBAC policies: {', '.join(policies)}"


def _find_virtual_services(db: Engine, where: told.Port, source: Dump) -> tuple[Key, ...]:
    """Those that lead to the port, and those that name its host and lead elsewhere."""
    leading = told.find_virtual_services(source, where)
    others = []
    for key in told.find_stream_services(source, where.number):
        ref = model_virtual_services.virtual_service_ref(db, key)
        if key not in leading and ref is not None and where.host in ref.hosts:
            others.append(key)
    return (*leading, *others)


def describe_destination_rules(
    db: Engine, subject: Subject, where: told.Port, source: Dump
) -> tuple[tuple[DestinationRule, ...], list[str]]:
    """The rules in force for the port, and their lines."""
    key = told.find_destination_rule(source, where)
    if key is None:
        return (), []
    rules = destination_rules.find_rules(db, key, where.host)
    if not rules:
        return (), [
            f"WARNING: Proxy is stale; it references to non-existent destination rule {key.name}.{key.namespace}"
        ]
    lines = [
        line for rule in rules for line in destination_rules.describe_rule(rule, subject.labels, subject.namespace)
    ]
    return rules, lines


def describe_virtual_services(
    db: Engine, subject: Subject, keys: Sequence[Key], rules: Sequence[DestinationRule]
) -> Iterator[str]:
    """The VirtualServices of these keys, as far as they concern the Service."""
    target = virtual_services.Target(
        host=subject.host(db),
        domain=mesh.domain(db),
        namespace=subject.namespace,
        subsets=destination_rules.split_subsets(rules, subject.labels),
        rules=tuple(Key("DestinationRule", rule.metadata.namespace, rule.metadata.name) for rule in rules),
    )
    blocks: dict[tuple[str, ...], None] = {}
    for key in keys:
        virtual = model_virtual_services.virtual_service(db, key)
        if virtual is None:
            stale = f"WARNING: Proxy is stale; it references to non-existent virtual service {key.name}.{key.namespace}"
            blocks[(stale,)] = None
        else:
            # A route of the Gateway API is one VirtualService for each of its hosts.
            blocks[tuple(virtual_services.describe_virtual_service(virtual, key, target))] = None
    for block in blocks:
        yield from block
