"""`python -m bench cases`: what one proxy's configuration costs in meshes of one kind each.

The cases are those by which Istio's own generators are measured (its `pilot/pkg/xds` benchmarks), those of ambient
meshes excepted. In: objects of each case, decoded. Out: CPU seconds from there to the encoded resources of one type,
with nothing kept from before, and how many resources of how many bytes that makes.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bench.meshes import Document
from mizzen.api.decode import decode_object
from mizzen.compile import resource, snapshot
from mizzen.compile.resource import ResourceSet
from mizzen.incremental import Engine
from mizzen.model.proxy import Proxy, parse_node

_LABEL = {"istio.io/benchmark": "true"}
_KB = 1024.0
_NAMES = {
    resource.CLUSTER: "clusters",
    resource.ENDPOINT: "endpoints",
    resource.LISTENER: "listeners",
    resource.ROUTE: "routes",
    resource.NAME_TABLE: "name table",
}
_EVERY = (resource.CLUSTER, resource.LISTENER, resource.ROUTE)
_NO_ROUTES = (resource.CLUSTER, resource.LISTENER)
_FOUR_PORTS = (("http", 80, "HTTP"), ("tcp", 7070, "TCP"), ("https", 443, "HTTPS"), ("auto", 9090, ""))


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A mesh and the proxy that is told about it."""

    name: str
    objects: Callable[[], Iterator[Document]]
    types: tuple[str, ...] = _EVERY
    kind: str = "sidecar"


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What one type of one case costs."""

    case: str
    type: str
    cpu_seconds: float
    resources: int
    kilobytes: float


def run(repeat: int) -> list[Cost]:
    """Every case; of several runs the cheapest counts."""
    return [_measure(case, type_url, repeat) for case in CASES for type_url in case.types]


def _measure(case: Case, type_url: str, repeat: int) -> Cost:
    decoded = [decode_object(document) for document in (*case.objects(), _own_service())]
    spent, found = min((_compile(decoded, case.kind, type_url) for _ in range(repeat)), key=lambda each: each[0])
    size = sum(len(each.data) for each in found)
    return Cost(case=case.name, type=_NAMES[type_url], cpu_seconds=spent, resources=len(found), kilobytes=size / _KB)


def _compile(decoded: Sequence[Any], kind: str, type_url: str) -> tuple[float, ResourceSet]:
    proxy = parse_node(_node(kind))
    # What is asked for is found out in another engine, so that nothing is compiled already.
    names = _asked(_engine(decoded), proxy, type_url)
    db = _engine(decoded)
    gc.collect()
    start = time.process_time()
    found = db.root(snapshot.resources, proxy, type_url, names).value()
    return time.process_time() - start, found


def _engine(decoded: Sequence[Any]) -> Engine:
    db = Engine()
    for each in decoded:
        assert each.object is not None, each.problems
        db.set(each.key, each.object)
    return db


def _asked(db: Engine, proxy: Proxy, type_url: str) -> frozenset[str] | None:
    if type_url == resource.ROUTE:
        return snapshot.route_names(db.root(snapshot.resources, proxy, resource.LISTENER, None).value())
    if type_url == resource.ENDPOINT:
        return snapshot.endpoint_names(db.root(snapshot.resources, proxy, resource.CLUSTER, None).value())
    return None


def _node(kind: str) -> Mapping[str, Any]:
    metadata = {"NAME": "v0", "NAMESPACE": "default", "INSTANCE_IPS": "1.1.1.1", "CLUSTER_ID": "Kubernetes"}
    return {
        "id": f"{kind}~1.1.1.1~v0.default~default.svc.cluster.local",
        "metadata": {**metadata, "LABELS": _LABEL, "ISTIO_VERSION": "1.26.0"},
    }


# -- objects ----------------------------------------------------------------------------------------------------------


def _istio(group: str, kind: str, name: str, spec: Document, namespace: str = "default") -> Document:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{group}.istio.io/v1", "kind": kind, "metadata": meta, "spec": spec}


def _ports(*ports: tuple[str, int, str]) -> list[Document]:
    return [{"name": name, "number": number, "protocol": protocol} for name, number, protocol in ports]


def _entry(number: int, *ports: tuple[str, int, str], address: bool = True, **more: Any) -> Document:
    endpoint = {"address": "111.111.111.111", "labels": {"security.istio.io/tlsMode": "istio"}}
    spec: Document = {"hosts": [_host(number)], "ports": _ports(*ports), "resolution": "STATIC"}
    if address:
        spec["addresses"] = [f"240.240.{number // 255}.{number % 255}"]
    if not more:
        spec["endpoints"] = [endpoint]
    return _istio("networking", "ServiceEntry", f"service-{number}", {**spec, **more})


def _host(number: int) -> str:
    return f"random-{number}.host.example"


def _own_service() -> Document:
    spec = {
        "hosts": ["own.host.example"],
        "ports": _ports(*_FOUR_PORTS),
        "resolution": "STATIC",
        "location": "MESH_INTERNAL",
        "endpoints": [{"address": "1.1.1.1", "labels": {"security.istio.io/tlsMode": "istio"}}],
    }
    return _istio("networking", "ServiceEntry", "own", spec)


def _plain(services: int, *ports: tuple[str, int, str]) -> Callable[[], Iterator[Document]]:
    return lambda: (_entry(number, *ports) for number in range(services))


def _gateway(name: str, hosts: Sequence[str], *, tls: bool = True, port: int = 80) -> Document:
    servers: list[Document] = [{"port": {"number": port, "name": "http", "protocol": "HTTP"}, "hosts": list(hosts)}]
    if tls:
        https = {"number": 443, "name": "https", "protocol": "HTTPS"}
        servers.append({"port": https, "hosts": list(hosts), "tls": {"mode": "ISTIO_MUTUAL"}})
    return _istio("networking", "Gateway", name, {"selector": _LABEL, "servers": servers})


def _prefixed(number: int, prefixes: Sequence[str]) -> list[Document]:
    route = [{"destination": {"host": _host(number)}}]
    return [{"match": [{"uri": {"prefix": prefix}}], "route": route} for prefix in prefixes]


def _gateways() -> Iterator[Document]:
    for number in range(1000):
        hosts = [f"{letter}-{number}.example.com" for letter in "abc"]
        yield _gateway(f"gateway-{number}", hosts)
        spec = {"hosts": hosts, "gateways": [f"gateway-{number}"], "http": _prefixed(number, ["/v1"])}
        yield _istio("networking", "VirtualService", f"service-{number}", spec)
        yield _entry(number, ("http", 80, "HTTP"))


def _shared_gateway() -> Iterator[Document]:
    hosts = [f"{letter}.example.com" for letter in "abc"]
    yield _gateway("gateway", hosts)
    for number in range(1000):
        prefixes = [f"/{number}/{part}" for part in range(6)]
        spec = {"hosts": hosts, "gateways": ["gateway"], "http": _prefixed(number, prefixes)}
        yield _istio("networking", "VirtualService", f"service-{number}", spec)
        yield _entry(number, ("http", 80, "HTTP"))


def _knative() -> Iterator[Document]:
    yield _gateway("outer", ["*"], tls=False)
    yield _gateway("inner", ["*"], tls=False, port=8081)
    inner = ["app.default", "app.default.svc", "app.default.svc.cluster.local"]
    for number in range(100):
        for name, hosts, gateway, count in (
            ("outer", [*inner, "app.example.com"], "outer", 4),
            ("inner", inner, "inner", 2),
        ):
            http = [_knative_route(number, hosts[turn % len(hosts)]) for turn in range(count)]
            spec = {"hosts": hosts, "gateways": [gateway], "http": http}
            yield _istio("networking", "VirtualService", f"{name}-{number}", spec)
        yield _entry(number, ("http", 80, "HTTP"))


def _knative_route(number: int, authority: str) -> Document:
    match = {"authority": {"prefix": authority}, "headers": {"x-override": {"exact": "hash"}}}
    destination = {"destination": {"host": _host(number)}, "weight": 100}
    headers = {"request": {"set": {"x-revision": f"service-{number}"}}}
    return {"match": [match], "route": [{**destination, "headers": headers}], "headers": headers}


def _peer_authentication(mode: str) -> Callable[[], Iterator[Document]]:
    return lambda: iter((_istio("security", "PeerAuthentication", "default", {"mtls": {"mode": mode}}),))


def _external_names() -> Iterator[Document]:
    for number in range(100):
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"service-{number}", "namespace": "default"},
            "spec": {
                "type": "ExternalName",
                "externalName": f"{number}.example.com",
                "ports": [{"name": "http", "port": 80}],
            },
        }


def _telemetry() -> Iterator[Document]:
    yield _istio(
        "telemetry",
        "Telemetry",
        "mesh",
        {"metrics": [{"providers": [{"name": "prometheus"}]}], "accessLogging": [{"providers": [{"name": "envoy"}]}]},
        "istio-system",
    )
    yield from (_entry(number, *_FOUR_PORTS) for number in range(100))


def _virtual_services() -> Iterator[Document]:
    for number in range(100):
        match = [{"uri": {"prefix": "/a"}}, {"uri": {"regex": "/b.*"}}]
        route = [{"destination": {"host": _host(number)}}]
        http = [{"match": match, "rewrite": {"uri": "/c"}, "route": route}, {"route": route}]
        yield _istio("networking", "VirtualService", f"service-{number}", {"hosts": [_host(number)], "http": http})
        yield _entry(number, ("http", 80, "HTTP"))


def _policies() -> Iterator[Document]:
    for number in range(100):
        rule = {"from": [{"source": {"namespaces": ["default"]}}], "to": [{"operation": {"methods": ["POST"]}}]}
        yield _istio("security", "AuthorizationPolicy", f"deny-{number}", {"action": "DENY", "rules": [rule]})


def _workload_entries() -> Iterator[Document]:
    for number in range(100):
        yield _entry(number, *_FOUR_PORTS, workloadSelector={"labels": {"app": f"app-{number}"}})
    for number in range(1000):
        labels = {"app": f"app-{number % 100}", "security.istio.io/tlsMode": "istio"}
        spec = {"address": f"10.0.{number // 250}.{1 + number % 250}", "labels": labels}
        yield _istio("networking", "WorkloadEntry", f"workload-{number}", spec)


def _endpoints(endpoints: int, services: int) -> Callable[[], Iterator[Document]]:
    def objects() -> Iterator[Document]:
        for name, namespace, spec in (
            ("mesh", "istio-system", {"mtls": {"mode": "PERMISSIVE"}}),
            ("default", "default", {"mtls": {"mode": "DISABLE"}}),
            ("some", "default", {"selector": {"matchLabels": {"type": "none"}}, "mtls": {"mode": "DISABLE"}}),
        ):
            yield _istio("security", "PeerAuthentication", name, spec, namespace)
        for number in range(services):
            found = [
                {"address": f"111.{i // 65025}.{i // 255 % 255}.{i % 255}", "network": f"network-{i % 4}"}
                for i in range(endpoints)
            ]
            yield _entry(number, ("http", 80, "HTTP"), location="MESH_INTERNAL", endpoints=found)

    return objects


CASES = (
    Case(name="gateways", objects=_gateways, kind="router"),
    Case(name="gateways-shared", objects=_shared_gateway, kind="router"),
    Case(name="knative-gateway", objects=_knative, kind="router"),
    Case(name="http", objects=_plain(100, ("http", 80, "HTTP"))),
    Case(name="tcp", objects=_plain(100, ("tcp", 7070, "TCP")), types=_NO_ROUTES),
    Case(name="tls", objects=_plain(100, ("tls", 7070, "TLS")), types=_NO_ROUTES),
    Case(name="auto", objects=_plain(100, ("auto", 7070, ""))),
    Case(name="strict", objects=_peer_authentication("STRICT"), types=(resource.LISTENER,)),
    Case(name="disabled", objects=_peer_authentication("DISABLE"), types=(resource.LISTENER,)),
    Case(name="externalname", objects=_external_names),
    Case(name="telemetry-api", objects=_telemetry),
    Case(name="virtualservice", objects=_virtual_services),
    Case(name="authorizationpolicy", objects=_policies, types=(resource.LISTENER,)),
    Case(name="serviceentry-workloadentry", objects=_workload_entries),
    Case(name="1,000 services", objects=_plain(1000, ("tcp", 7070, "TCP")), types=(resource.NAME_TABLE,)),
    *(
        Case(name=f"{count} endpoints × {services}", objects=_endpoints(count, services), types=(resource.ENDPOINT,))
        for count, services in ((1, 100), (10, 10), (100, 10), (1000, 1))
    ),
)


def print_table(costs: Sequence[Cost], repeat: int) -> None:
    """The rows for people."""
    print(f"one proxy, from decoded objects to encoded resources; best of {repeat}")
    print(f"{'case':<28} {'type':<11} {'CPU ms':>9} {'resources':>10} {'KB':>9}")
    for cost in costs:
        milliseconds = 1000 * cost.cpu_seconds
        print(f"{cost.case:<28} {cost.type:<11} {milliseconds:>9.2f} {cost.resources:>10} {cost.kilobytes:>9.1f}")
