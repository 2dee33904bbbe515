"""A world made of objects: every proxy holds what the compiler would tell it.

In: an engine with the objects, complete as a cluster would have them (Pods with addresses, EndpointSlices, Services
with a clusterIP), and where each object stands. Out: a `World`. A proxy is compiled when a request first meets it.
"""

import datetime
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key
from mizzen.compile import resource
from mizzen.compile import snapshot as compiled
from mizzen.compile.resource import ResourceSet
from mizzen.diagnose import dump, nodes, references, snapshot
from mizzen.diagnose.trace import capture, told
from mizzen.diagnose.trace.world import Holdings, Place, Resources, Workload, World
from mizzen.incremental import Engine
from mizzen.model import mesh, objects, proxy, proxy_configs, workloads

_PROBERS = "ISTIO_KUBE_APP_PROBERS"
_AGENT_PORTS = (15020, 15021)


def of_objects(
    db: Engine,
    places: Mapping[Key, Place] | None = None,
    *,
    dialect: Literal["istio", "envoy"] = "envoy",
    now: datetime.datetime | None = None,
) -> World:
    """The world of these objects."""
    pods: dict[str, Pod] = {}
    found = []
    for key in objects.of_kind(db, "Pod"):
        pod: Pod | None = db.input(key)
        if pod is None or not workloads.pod_addresses(pod):
            continue
        workload = _workload(db, pod)
        pods[workload.reference] = pod
        found.append(workload)

    printer = told.Printer()

    def hold(workload: Workload) -> Holdings:
        return _compile(db, pods[workload.reference], dialect, printer)

    return World(
        found,
        hold,
        db=db,
        places=places,
        trust_domain=mesh.trust_domain(db),
        domain=mesh.domain(db),
        now=now,
    )


def _workload(db: Engine, pod: Pod) -> Workload:
    metadata = nodes.build_node(pod)["metadata"]
    ready = pod.status is None or not any(c.type == "Ready" and c.status != "True" for c in pod.status.conditions)
    return Workload(
        name=pod.metadata.name,
        namespace=pod.metadata.namespace or "default",
        addresses=workloads.pod_addresses(pod),
        labels=dict(pod.metadata.labels),
        account=pod.spec.service_account_name or "default",
        proxy=nodes.proxy_kind(pod) if nodes.has_proxy(pod) else "",
        ready=ready,
        ports=tuple(_program_ports(pod)),
        probed=tuple(sorted({port for port in _probed_ports(pod) if port})),
        capture=capture.read_capture(pod),
        dns_capture=_dns_capture(db, metadata),
    )


def _program_ports(pod: Pod) -> Iterator[int]:
    for container in pod.spec.containers:
        if container.name != nodes.PROXY_CONTAINER:
            yield from (port.container_port for port in container.ports if port.container_port)


def _probed_ports(pod: Pod) -> Iterator[int]:
    """Ports of readiness probes: as written, and as the injector laid them aside for the agent."""
    for container in pod.spec.containers:
        if container.name != nodes.PROXY_CONTAINER and container.readiness_probe is not None:
            probe = container.readiness_probe
            yield from (_number(pod, each.port) for each in (probe.http_get, probe.tcp_socket) if each is not None)
        for variable in container.env:
            if variable.name == _PROBERS:
                yield from (_number(pod, port) for port in _laid_aside(variable.value))


def _number(pod: Pod, port: int | str) -> int:
    """A port by its number or name; 0 for the agent's own and for a name that nobody has."""
    named = {p.name: p.container_port for c in pod.spec.containers for p in c.ports if p.name}
    number = int(port) if isinstance(port, int) or port.isdigit() else named.get(port, 0)
    return 0 if number in _AGENT_PORTS else number


def _laid_aside(text: str) -> Iterator[int | str]:
    try:
        probers = json.loads(text)
    except ValueError:
        return
    for path, prober in probers.items() if isinstance(probers, dict) else ():
        port = dump.field(prober, "http_get", "port") or dump.field(prober, "tcp_socket", "port")
        if path.endswith("/readyz") and isinstance(port, int | str):
            yield port


def _dns_capture(db: Engine, metadata: Mapping[str, Any]) -> bool:
    """Whether the pod's agent answers its DNS: by the pod's environment, else by the mesh's default."""
    stated = str(metadata.get("DNS_CAPTURE", ""))
    if not stated:
        config = proxy_configs.proxy_config(db, None)
        stated = str((config.proxy_metadata or {}).get("ISTIO_META_DNS_CAPTURE", ""))
    return stated.lower() in ("true", "1")


def _compile(db: Engine, pod: Pod, dialect: Literal["istio", "envoy"], printer: told.Printer) -> Holdings:
    who = proxy.parse_node(nodes.build_node(pod, mesh.domain(db)))
    return compile_holdings(db, msgspec.structs.replace(who, dialect=dialect), printer)


def compile_holdings(db: Engine, who: proxy.Proxy, printer: told.Printer | None = None) -> Holdings:
    """What that proxy would be told now; one on demand, if it had called every host."""
    own = printer or told.Printer()
    plain = msgspec.structs.replace(who, on_demand=False)

    def all_of(kind: str, asking: proxy.Proxy) -> Callable[[], ResourceSet]:
        return lambda: compiled.resources(db, asking, kind, None)

    def named(kind: str) -> Callable[[told.Names], ResourceSet]:
        return lambda names: compiled.resources(db, plain, kind, names)

    clusters = told.Told(all_of(resource.CLUSTER, plain), own)
    listeners = told.ToldListeners(all_of(resource.LISTENER, plain), own)
    named_by = _Named(clusters, listeners)
    return Holdings(
        clusters=clusters,
        listeners=told.ToldListeners(all_of(resource.LISTENER, who), own) if who.on_demand else listeners,
        routes=told.Asked(lambda names: compiled.full_routes(db, who, names), lambda: named_by.all.routes, own),
        endpoints=told.Asked(named(resource.ENDPOINT), lambda: named_by.all.endpoints, own),
        extensions=told.Asked(named(resource.EXTENSION), lambda: named_by.all.extensions, own),
        secrets=told.Asked(named(resource.SECRET), lambda: named_by.all.secrets, own),
        names=_NameTable(db, who),
    )


class _Named:
    """What clusters and listeners name."""

    def __init__(self, clusters: Resources, listeners: Resources) -> None:
        self._clusters = clusters
        self._listeners = listeners

    @functools.cached_property
    def all(self) -> references.References:
        """Looked for when somebody wants all of a kind."""
        return references.find_references(self._clusters.values(), self._listeners.values())


class _NameTable(Mapping[str, tuple[str, ...]]):
    """A sidecar's name table; others have none."""

    def __init__(self, db: Engine, who: proxy.Proxy) -> None:
        self._db = db
        self._who = who

    @functools.cached_property
    def _found(self) -> dict[str, tuple[str, ...]]:
        if self._who.kind != "sidecar":
            return {}
        printed = snapshot.print_set(compiled.resources(self._db, self._who, resource.NAME_TABLE, None))
        hosts = (pair for table in printed.values() for pair in dump.message(table, "table").items())
        return {host: tuple(dump.texts(info, "ips")) for host, info in hosts}

    def __getitem__(self, host: str) -> tuple[str, ...]:
        return self._found[host]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
