"""Gateways: selectors without pods, ports that no Service opens, certificates that are missing or unreadable.

In: Gateways, pods, Services, Secrets. Out: IST0101 (selector, credentialName), IST0161, IST0162.
"""

from collections.abc import Iterator

from mizzen.analysis import catalogue, objects
from mizzen.analysis.findings import Finding, format_labels, report
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway
from mizzen.incremental import Engine, query
from mizzen.model.convert.certificates import server_certificate_fault
from mizzen.model.workloads import freeze, selects


def _no_pods(key: Key, found: Gateway) -> Finding:
    selector = format_labels(found.spec.selector.items())
    return report(catalogue.REFERENCED_RESOURCE_NOT_FOUND, key, "selector", selector, path="spec.selector")


@query
def check_ports(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Ports that no Service of the gateway's pods opens; a selector that no pod has."""
    found: Gateway | None = db.input(key)
    if found is None or not objects.has_pods(db):
        return ()
    selector = freeze(found.spec.selector)
    pods = objects.matching_pods(db, "", selector)
    if not pods:
        return (_no_pods(key, found),)
    opened = {port for pod in pods for port in _opened_ports(db, pod)}
    return tuple(
        report(
            catalogue.GATEWAY_PORT_NOT_DEFINED_ON_SERVICE,
            key,
            server.port.number,
            format_labels(selector),
            path=f"spec.servers[{index}].port.number",
        )
        for index, server in enumerate(found.spec.servers)
        if server.port is not None and server.port.number not in opened
    )


@query
def _opened_ports(db: Engine, pod: Key) -> tuple[int, ...]:
    """Numbers and target numbers of the TCP ports of the Services that select a pod."""
    labels = freeze(objects.pod_labels(db, pod))
    opened: set[int] = set()
    for key in objects.keys_in(db, "Service", pod.namespace):
        service: Service = db.input(key)
        if service.spec.selector and selects(freeze(service.spec.selector), labels):
            for port in service.spec.ports:
                if port.protocol == "TCP":
                    opened |= {port.port, port.target_port if isinstance(port.target_port, int) else port.port}
    return tuple(sorted(opened))


@query
def check_credentials(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Certificates that the gateway's pods will not find, or cannot use."""
    found: Gateway | None = db.input(key)
    if found is None or not objects.has_pods(db):
        return ()
    pods = objects.matching_pods(db, "", freeze(found.spec.selector))
    if not pods:
        return (_no_pods(key, found),)
    return tuple(_check_secrets(db, key, found, pods[0].namespace))


def _check_secrets(db: Engine, key: Key, found: Gateway, namespace: str) -> Iterator[Finding]:
    for index, server in enumerate(found.spec.servers):
        name = server.tls.credential_name if server.tls is not None else ""
        if not name:
            continue
        path = f"spec.servers[{index}].tls.credentialName"
        secret = Key("Secret", namespace, name)
        if db.input(secret) is None:
            yield report(catalogue.REFERENCED_RESOURCE_NOT_FOUND, key, "credentialName", name, path=path)
        elif server_certificate_fault(db, secret) is not None:
            yield report(catalogue.INVALID_GATEWAY_CREDENTIAL, key, key.name, namespace, path=path)
