"""Where pods are reached from outside: gateways whose routes lead to their Services.

In: the objects in an engine, what is described, the dumps of gateways, and addresses of the host that lead to them.
Out: lines. A gateway is a pod labelled `istio: ingressgateway`, or any other that is nothing but a proxy.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from mizzen.api.kube.pods import Pod
from mizzen.api.kube.services import Service, ServicePort
from mizzen.api.meta import Key, key_of
from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.diagnose import nodes
from mizzen.diagnose.describe import pods, services, told
from mizzen.diagnose.describe.subject import Subject
from mizzen.diagnose.dump import Dump
from mizzen.incremental import Engine
from mizzen.model import objects

_INGRESS = ("istio", "ingressgateway")
_USUAL = {"http": 80, "https": 443}


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """How gateways are looked at, and reached."""

    dump: Callable[[Pod], Dump | None]
    """What a gateway's proxy holds; None where it cannot be had."""
    published: Mapping[tuple[str, str, int], str] = {}
    """By namespace, name and port of a Service, the HOST:PORT of this machine that leads there."""


class _Exposure(msgspec.Struct, frozen=True):
    """One address and the route configuration behind it."""

    url: str
    virtual_services: tuple[Key, ...]
    rules: tuple[DestinationRule, ...]


def describe_exposure(db: Engine, subjects: Sequence[Subject], outside: Outside) -> list[str]:
    """Every address with the VirtualServices behind it; why there is none, if there is no gateway at all."""
    gateways = [pod for key in objects.of_kind(db, "Pod") if _is_gateway(pod := db.input(key))]
    described = {key_of(pod) for subject in subjects for pod in subject.pods}
    gateways = [pod for pod in gateways if pods.runs(pod) and key_of(pod) not in described]
    if not gateways:
        return ["Skipping Gateway information (no ingress gateway pods)"]
    if not any(services.find_services(db, pod) for pod in gateways):
        return ["Skipping Gateway information (no ingress gateway service)"]
    blocks = dict.fromkeys(
        tuple(block) for pod in gateways for subject in subjects for block in _describe(db, subject, pod, outside)
    )
    return [line for block in blocks for line in block]


def _is_gateway(pod: Pod) -> bool:
    name, value = _INGRESS
    return pod.metadata.labels.get(name) == value or nodes.proxy_kind(pod) == "router"


def _describe(db: Engine, subject: Subject, pod: Pod, outside: Outside) -> Iterator[list[str]]:
    source = outside.dump(pod)
    if source is None:
        return
    for exposure in _find(db, subject, pod, source, outside):
        lines = services.describe_virtual_services(db, subject, exposure.virtual_services, exposure.rules)
        yield [f"Exposed on Ingress Gateway {exposure.url}", *lines]


def _find(db: Engine, subject: Subject, pod: Pod, source: Dump, outside: Outside) -> Iterator[_Exposure]:
    """For each port of the gateway's Services, the routes behind it that lead to what is described."""
    known = told.route_configurations(source)
    for service in services.find_services(db, pod):
        for port in services.tcp_ports(service):
            behind = tuple(_configurations(known, port, pod))
            scheme = "https" if any(name.startswith("https.") for name in behind) else "http"
            for own in services.tcp_ports(subject.service):
                where = told.Port(subject.host(db), own.port)
                keys = told.find_virtual_services(source, where, behind) if behind else ()
                if keys:
                    rules, _ = services.describe_destination_rules(db, subject, where, source)
                    address = _address(service, port, pod, outside, scheme)
                    yield _Exposure(f"{scheme}://{address}", keys, rules)


def _configurations(known: Iterable[str], port: ServicePort, pod: Pod) -> Iterator[str]:
    """The route configurations of the servers behind a port: plain ones by the pod's port, TLS by the server's."""
    numbers = {port.port, services.target_port(port, pod)}
    for name in known:
        scheme, _, rest = name.partition(".")
        number = rest.partition(".")[0]
        if scheme in _USUAL and number.isdigit() and int(number) in numbers:
            yield name


def _address(service: Service, port: ServicePort, pod: Pod, outside: Outside, scheme: str) -> str:
    metadata = service.metadata
    published = outside.published.get((metadata.namespace, metadata.name, port.port))
    if published:
        return published
    host = _balancer(service) or (pod.status.host_ip if pod.status is not None else "") or "unknown"
    return host if port.port == _USUAL[scheme] else f"{host}:{port.port}"


def _balancer(service: Service) -> str:
    first = next(iter(service.status.load_balancer.ingress), None)
    return (first.ip or first.hostname) if first is not None else ""
