"""What a mesh would add to manifests, worked out without running it: pods, addresses, endpoints.

In: the manifests' objects. Out: the same, complete as a cluster would show them once everything is ready: pods of
Deployments and their like, injected where the mesh injects, with addresses; Services with theirs and EndpointSlices;
addresses for hosts of ServiceEntries. What the manifests bring themselves stays: a Pod that has an address keeps it,
and a Service whose endpoints are written down gets no others. Names and addresses are those of a local mesh where
nothing else asked for them first. After an edit, whatever goes on from `Foretold` before it keeps what it had: a pod
that is not replaced its address and its proxy as it was injected, Services and hosts their addresses.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import yaml

from mizzen.api.kube.cluster import Namespace, Node
from mizzen.api.kube.pods import Pod, PodCondition, PodIP, PodStatus
from mizzen.api.kube.services import Endpoints, EndpointSlice, Service
from mizzen.api.meta import Key, Object, key_of
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.api.scalars import decode_scalar, encode_scalar
from mizzen.inject import pod as injection
from mizzen.inject.values import InjectionConfig
from mizzen.local import addresses, inventory, publish, workloads
from mizzen.local.net.network import Subnets

_READY = (PodCondition(type="Ready", status="True"),)


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of the mesh."""

    planned: Pod
    """As it was asked for."""
    made_of: Any
    """What cannot be edited: one that is made of something else is another pod."""
    pod: Pod
    """As it runs."""


class Foretold(msgspec.Struct, frozen=True, kw_only=True):
    """A mesh as it would be."""

    objects: Mapping[Key, Object] = {}
    """Everything, complete."""
    pods: Mapping[Key, Running] = {}
    cluster_ips: Mapping[Key, str] = {}
    entries: Mapping[addresses.EntryHost, str] = {}


_NOTHING = Foretold()


def complete(objects: Mapping[Key, Object], dialect: str = "envoy") -> dict[Key, Object]:
    """The objects with all that a mesh would add."""
    return dict(foretell(objects, dialect).objects)


def foretell(objects: Mapping[Key, Object], dialect: str = "envoy", before: Foretold = _NOTHING) -> Foretold:
    """The mesh of these objects, going on from an earlier one."""
    subnets = Subnets()
    mesh = _mesh_config(objects)
    pool = addresses.PodAddresses(subnets.pods)
    config = InjectionConfig(dialect="envoy" if dialect == "envoy" else "istio")
    wanted = {planned.key: planned for planned in _wanted(objects)}
    for known in before.pods.values():
        pool.hold(known.pod.status.pod_ip if known.pod.status is not None else "")
    pods: dict[Key, publish.PresentPod] = {}
    for key, planned in wanted.items():
        running = before.pods.get(key)
        if running is not None and running.made_of == _made_of(planned):
            pods[key] = _relabelled(running, planned.pod, objects)
        else:
            pods[key] = _present(planned.pod, objects, pool, mesh, config)
    present = list(pods.values())
    services = tuple(item for _, item in sorted(objects.items()) if isinstance(item, Service))
    entries = tuple(item for _, item in sorted(objects.items()) if isinstance(item, ServiceEntry))
    given = addresses.assign_cluster_ips(services, before.cluster_ips, subnets.services)
    hosts = addresses.assign_entry_addresses(entries, before.entries)
    added: list[Object] = [*publish.build(services, present, given)]
    added += publish.build_entries(entries, hosts)
    written = set(_written_endpoints(objects.values()))
    kept = (item for item in added if not (isinstance(item, EndpointSlice) and _service_of(item) in written))
    result = dict(objects)
    result.update({key_of(item): item for item in kept})
    if inventory.MESH_CONFIG not in result:
        result[inventory.MESH_CONFIG] = publish.build_mesh_config(inventory.DEFAULT_MESH_CONFIG)
    return Foretold(
        objects=result,
        pods={
            key: Running(planned=wanted[key].pod, made_of=_made_of(wanted[key]), pod=each.pod)
            for key, each in pods.items()
        },
        cluster_ips=given,
        entries=hosts,
    )


def _made_of(planned: workloads.PlannedPod) -> Any:
    """What cannot be edited in a pod that runs: its template, or the containers of one that stands alone."""
    return planned.revision if planned.owner.kind != "Pod" else planned.pod.spec


def _relabelled(running: Running, wanted: Pod, objects: Mapping[Key, Object]) -> publish.PresentPod:
    """A pod that goes on, with the labels and annotations and the readiness that it has now."""
    written = objects.get(Key("Pod", wanted.metadata.namespace, wanted.metadata.name))
    status = written.status if isinstance(written, Pod) and written.status is not None else running.pod.status
    asked, has = running.planned.metadata, running.pod.metadata
    metadata = msgspec.structs.replace(
        wanted.metadata,
        labels={**_added(asked.labels, has.labels), **wanted.metadata.labels},
        annotations={**_added(asked.annotations, has.annotations), **wanted.metadata.annotations},
    )
    pod = msgspec.structs.replace(running.pod, metadata=metadata, status=status)
    return publish.PresentPod(pod=pod, ready=status is None or _is_ready(status))


def _added(asked: Mapping[str, str], has: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in has.items() if name not in asked}


def _wanted(objects: Mapping[Key, Object]) -> Iterator[workloads.PlannedPod]:
    """Planned pods, without those of workloads whose pods the manifests hold."""
    written = [item for item in objects.values() if isinstance(item, Pod) and item.metadata.owner_references]
    for planned in workloads.expand(objects.values()):
        labels = planned.pod.metadata.labels
        own = {k: v for k, v in labels.items() if k != workloads.POD_TEMPLATE_HASH}
        stands = planned.owner.kind != "Pod" and any(
            pod.metadata.namespace == planned.key.namespace and own.items() <= pod.metadata.labels.items()
            for pod in written
        )
        if not stands:
            yield planned


def _present(
    pod: Pod,
    objects: Mapping[Key, Object],
    pool: addresses.PodAddresses,
    mesh: Mapping[str, Any],
    config: InjectionConfig,
) -> publish.PresentPod:
    """The pod with proxy and address, ready unless the manifests say otherwise."""
    written = objects.get(Key("Pod", pod.metadata.namespace, pod.metadata.name))
    status = written.status if isinstance(written, Pod) else None
    if status is not None and status.pod_ip:
        return publish.PresentPod(pod=msgspec.structs.replace(pod, status=status), ready=_is_ready(status))
    address = str(pool.take()[0])
    spec = msgspec.structs.replace(
        pod.spec,
        node_name=_node(pod, objects),
        service_account_name=pod.spec.service_account_name or "default",
    )
    injected = _inject(msgspec.structs.replace(pod, spec=spec), objects, mesh, config)
    status = PodStatus(phase="Running", pod_ip=address, pod_ips=(PodIP(ip=address),), conditions=_READY)
    return publish.PresentPod(pod=msgspec.structs.replace(injected, status=status), ready=True)


def _node(pod: Pod, objects: Mapping[Key, Object]) -> str:
    """Where the pod runs: the node it names, or the first that its selector takes."""
    selector = pod.spec.node_selector
    if pod.spec.node_name or not selector:
        return pod.spec.node_name or publish.NODE_NAME
    nodes = (k.name for k, n in sorted(objects.items()) if isinstance(n, Node) and _takes(selector, n))
    return next(nodes, publish.NODE_NAME)


def _takes(selector: Mapping[str, str], node: Node) -> bool:
    return selector.items() <= node.metadata.labels.items()


def _is_ready(status: PodStatus) -> bool:
    return not any(c.type == "Ready" and c.status != "True" for c in status.conditions)


def _inject(pod: Pod, objects: Mapping[Key, Object], mesh: Mapping[str, Any], config: InjectionConfig) -> Pod:
    namespace = objects.get(Key("Namespace", "", pod.metadata.namespace)) or Namespace()
    done = injection.inject_pod(_plain(pod), namespace=_plain(namespace), mesh=mesh, config=config)
    if not done.injected:
        return pod
    return msgspec.convert(done.pod, Pod, dec_hook=decode_scalar)


def _plain(item: Object) -> dict[str, Any]:
    """The object as the injector takes it: lists, where a struct has tuples."""
    return msgspec.json.decode(msgspec.json.encode(item, enc_hook=encode_scalar), type=dict[str, Any])


def _mesh_config(objects: Mapping[Key, Object]) -> Mapping[str, Any]:
    try:
        parsed = yaml.safe_load(inventory.mesh_text(objects))
    except yaml.YAMLError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _written_endpoints(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """The Services whose endpoints stand in the manifests."""
    for item in objects:
        if isinstance(item, EndpointSlice):
            yield _service_of(item)
        elif isinstance(item, Endpoints):
            yield item.metadata.namespace or "default", item.metadata.name


def _service_of(item: EndpointSlice) -> tuple[str, str]:
    return item.metadata.namespace or "default", item.metadata.labels.get(publish.SERVICE_NAME, "")
