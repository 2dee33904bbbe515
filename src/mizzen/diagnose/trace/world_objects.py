"""A world made of objects: every proxy holds what the compiler would tell it.

In: an engine with the objects, complete as a cluster would have them (Pods with addresses, EndpointSlices, Services
with a clusterIP), and where each object stands. Out: a `World`. A proxy is compiled when a request first meets it.
"""

import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key
from mizzen.compile import resource
from mizzen.compile import snapshot as compiled
from mizzen.diagnose import dump, nodes, snapshot
from mizzen.diagnose.trace import capture
from mizzen.diagnose.trace.world import Holdings, Place, Workload, World
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

    def hold(workload: Workload) -> Holdings:
        return _compile(db, pods[workload.reference], dialect)

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


def _compile(db: Engine, pod: Pod, dialect: Literal["istio", "envoy"]) -> Holdings:
    who = proxy.parse_node(nodes.build_node(pod, mesh.domain(db)))
    return compile_holdings(db, msgspec.structs.replace(who, dialect=dialect))


def compile_holdings(db: Engine, who: proxy.Proxy) -> Holdings:
    """What that proxy would be told now; one on demand, if it had called every host."""
    taken = snapshot.take_snapshot(db, msgspec.structs.replace(who, on_demand=False))
    found: dict[str, Any] = {kind: taken.printed[kind] for kind in snapshot.KINDS}
    if who.on_demand:
        found["listeners"] = snapshot.print_set(compiled.resources(db, who, resource.LISTENER, None))
        found["routes"] = snapshot.print_set(compiled.full_routes(db, who, frozenset(found["routes"])))
    return Holdings(**found, names=_names(db, who))


def _names(db: Engine, who: proxy.Proxy) -> dict[str, tuple[str, ...]]:
    if who.kind != "sidecar":
        return {}
    printed = snapshot.print_set(compiled.resources(db, who, resource.NAME_TABLE, None))
    found: dict[str, tuple[str, ...]] = {}
    for table in printed.values():
        for host, info in dump.message(table, "table").items():
            found[host] = tuple(dump.texts(info, "ips"))
    return found
