"""Proxies for manifests that bring none, so that whatever is configured has somebody to whom it is told.

In: objects. Out: what stands in. Where there are workloads, and only the Namespaces lie elsewhere whose labels have
them injected, `inject` says that they are. A repository of nothing but the mesh's configuration has no workloads:
`make` gives it a Pod behind each Service's selector, a client without labels of its own in each namespace, and a
gateway for each selector of Gateways.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mizzen.api.kube.cluster import Namespace
from mizzen.api.kube.pods import Container, ContainerPort, Pod, PodSpec
from mizzen.api.kube.services import Service
from mizzen.api.meta import Key, Object, ObjectMeta
from mizzen.api.networking.gateway import Gateway

_INJECT = "sidecar.istio.io/inject"
_GATEWAY = {"inject.istio.io/templates": "gateway"}
_CLIENT = "any-client"
_SYSTEM = "istio-system"
_NO_CLIENTS = frozenset({"", _SYSTEM, "kube-system", "kube-public", "kube-node-lease"})


def inject(objects: Mapping[Key, Object], spaces: Iterable[str]) -> dict[Key, Object]:
    """These namespaces, with injection."""
    found: dict[Key, Object] = {}
    for space in sorted(set(spaces) - _NO_CLIENTS):
        key = Key("Namespace", "", space)
        written = objects.get(key)
        metadata = written.metadata if written is not None else ObjectMeta(name=space)
        labels = {**metadata.labels, "istio-injection": "enabled"}
        found[key] = Namespace(metadata=msgspec.structs.replace(metadata, labels=labels))
    return found


def make(objects: Mapping[Key, Object]) -> dict[Key, Object]:
    """Pods that stand in."""
    services = [item for _, item in sorted(objects.items()) if isinstance(item, Service)]
    gateways = [item for _, item in sorted(objects.items()) if isinstance(item, Gateway)]
    doors = dict(_doors(gateways, services))
    made = [_pod(f"any-{name}", space, selector, (), _GATEWAY) for (space, name), selector in doors.items()]
    for service in services:
        selector = service.spec.selector
        space = _namespace(service)
        if selector and not any(where == space and _covers(selector, door) for (where, _), door in doors.items()):
            made.append(_pod(f"any-{service.metadata.name}", space, selector, _ports(service)))
    spaces = {key.name if key.kind == "Namespace" else key.namespace for key in objects} - _NO_CLIENTS
    made += [_pod(_CLIENT, space, {}, ()) for space in sorted(spaces)]
    named = {Key("Pod", pod.metadata.namespace, pod.metadata.name): pod for pod in made}
    return {key: pod for key, pod in named.items() if key not in objects}


def _doors(
    gateways: Iterable[Gateway], services: Iterable[Service]
) -> Iterator[tuple[tuple[str, str], Mapping[str, str]]]:
    """Gateways' pods by namespace and name: where a Service leads to them, else where gateways usually are."""
    known = list(services)
    for gateway in gateways:
        selector = gateway.spec.selector
        behind = next((s for s in known if s.spec.selector and _covers(selector, s.spec.selector)), None)
        if not selector:
            continue
        if behind is not None:
            yield (_namespace(behind), behind.metadata.name), {**behind.spec.selector, **selector}
        else:
            yield (_SYSTEM, "-".join(sorted(selector.values()))), selector


def _covers(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether pods with the other's labels may be meant by both."""
    return (
        bool(one) and all(other.get(name, value) == value for name, value in one.items()) and bool(one.keys() & other)
    )


def _namespace(item: Object) -> str:
    return item.metadata.namespace or "default"


def _ports(service: Service) -> tuple[int, ...]:
    targets = (port.target_port or port.port for port in service.spec.ports)
    return tuple(target for target in targets if isinstance(target, int))


def _pod(
    name: str, namespace: str, labels: Mapping[str, str], ports: Iterable[int], annotations: Mapping[str, str] = {}
) -> Pod:
    image = "auto" if annotations else "stand-in"
    container = Container(
        name="istio-proxy" if annotations else "app",
        image=image,
        ports=tuple(ContainerPort(container_port=port) for port in ports),
    )
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace=namespace, labels={**labels, _INJECT: "true"}, annotations=dict(annotations)
        ),
        spec=PodSpec(containers=(container,)),
    )
