"""Workloads: pods with the node, locality and owner that Envoy is told about, and what is known of a proxy's own pod.

In: Pods, Nodes, WorkloadEntries. Out: `Workload` values. Who selects them is `endpoints`; who asks is `proxy`.
Golden cases: golden base, networking/endpoint-states, networking/shared-workloads.
"""

from collections.abc import Iterable, Mapping

import msgspec

from mizzen.api.kube.cluster import Node
from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key
from mizzen.api.networking.workload_entry import WorkloadEntry
from mizzen.incremental import Engine, Index, query
from mizzen.model import mesh
from mizzen.model.proxy import Labels, Locality, Proxy
from mizzen.model.spiffe import Identity, format_spiffe

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
SUBZONE = "topology.istio.io/subzone"
NETWORK = "topology.istio.io/network"
CLUSTER = "topology.istio.io/cluster"
HOSTNAME = "kubernetes.io/hostname"
TLS_MODE = "security.istio.io/tlsMode"
_ISTIO_LOCALITY = ("istio-locality", "topology.istio.io/locality")

_CANONICAL_NAME = ("service.istio.io/canonical-name", "app.kubernetes.io/name", "app")
_CANONICAL_REVISION = ("service.istio.io/canonical-revision", "app.kubernetes.io/version", "version")

pods_by_ip = Index("Pod", "address", lambda _key, pod: pod_addresses(pod))
entries_by_ip = Index("WorkloadEntry", "address", lambda key, entry: ((key[1], entry.spec.address),))


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One instance that serves: a pod or a WorkloadEntry, as far as endpoints and policies need it."""

    name: str
    """The workload's (Deployment's, StatefulSet's) name."""
    namespace: str
    labels: Labels = ()
    locality: Locality = Locality()
    network: str = ""
    service_account: str = ""
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    tls_mode: str = "disabled"
    ports: tuple[tuple[str, int, str], ...] = ()
    """Named container ports: name, number, transport."""

    @property
    def canonical_name(self) -> str:
        """The name that telemetry groups by."""
        return first_label(self.labels, _CANONICAL_NAME) or self.name

    @property
    def canonical_revision(self) -> str:
        """The revision that telemetry groups by; `latest` where labels say none."""
        return first_label(self.labels, _CANONICAL_REVISION) or "latest"


def freeze(labels: Mapping[str, str]) -> Labels:
    """Labels as a sorted tuple."""
    return tuple(sorted(labels.items()))


def first_label(labels: Labels, names: Iterable[str]) -> str:
    """The value of the first of `names` that is set and not empty."""
    found = dict(labels)
    return next((found[n] for n in names if found.get(n)), "")


def selects(selector: Labels, labels: Labels) -> bool:
    """Whether all of `selector` stands in `labels`; an empty selector selects everything."""
    return set(selector) <= set(labels)


def pod_addresses(pod: Pod) -> tuple[str, ...]:
    """The addresses of a pod that has its own network; those of host-network pods are the node's."""
    if pod.spec.host_network or pod.status is None or pod.status.phase in ("Succeeded", "Failed"):
        return ()
    listed = tuple(p.ip for p in pod.status.pod_ips if p.ip)
    return listed or ((pod.status.pod_ip,) if pod.status.pod_ip else ())


@query
def node_locality(db: Engine, name: str) -> Locality:
    """The locality that a node's labels say."""
    node: Node | None = db.input(Key("Node", "", name))
    if node is None:
        return Locality()
    labels = node.metadata.labels
    return Locality(labels.get(REGION, ""), labels.get(ZONE, ""), labels.get(SUBZONE, ""))


@query
def pod_workload(db: Engine, namespace: str, name: str) -> Workload | None:
    """The pod as a workload, or None while it is not known."""
    pod: Pod | None = db.input(Key("Pod", namespace, name))
    if pod is None:
        return None
    labels = pod.metadata.labels
    return Workload(
        name=owner_name(pod),
        namespace=namespace,
        labels=freeze(labels),
        locality=label_locality(labels) or node_locality(db, pod.spec.node_name),
        network=labels.get(NETWORK, ""),
        service_account=pod.spec.service_account_name or "default",
        node_name=pod.spec.node_name,
        hostname=pod.spec.hostname,
        subdomain=pod.spec.subdomain,
        tls_mode=labels.get(TLS_MODE) or "disabled",
        ports=tuple(
            (port.name, port.container_port, port.protocol or "TCP")
            for container in pod.spec.containers
            for port in container.ports
            if port.name
        ),
    )


@query
def entry_workload(db: Engine, namespace: str, name: str) -> Workload | None:
    """The WorkloadEntry as a workload, or None where it does not exist."""
    entry: WorkloadEntry | None = db.input(Key("WorkloadEntry", namespace, name))
    if entry is None:
        return None
    spec = entry.spec
    labels = {**spec.labels, **entry.metadata.labels}
    return Workload(
        name=name,
        namespace=namespace,
        labels=freeze(labels),
        locality=label_locality(labels) or parse_locality(spec.locality),
        network=spec.network or labels.get(NETWORK, ""),
        service_account=spec.service_account,
        tls_mode=labels.get(TLS_MODE) or ("istio" if spec.service_account else "disabled"),
    )


@query
def ready_addresses(db: Engine, namespace: str, name: str) -> tuple[str, ...]:
    """The addresses of a pod that is ready; none while it is not, or has no network of its own."""
    pod: Pod | None = db.input(Key("Pod", namespace, name))
    if pod is None or pod.status is None:
        return ()
    if any(c.type == "Ready" and c.status != "True" for c in pod.status.conditions):
        return ()
    return pod_addresses(pod)


def owner_name(pod: Pod) -> str:
    """The name of the workload that a pod belongs to: its Deployment behind a ReplicaSet, else its controller."""
    owner = next((o for o in pod.metadata.owner_references if o.controller), None)
    if owner is None:
        return pod.metadata.name
    template = pod.metadata.labels.get("pod-template-hash")
    if owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}"):
        return owner.name.removesuffix(f"-{template}")
    return owner.name


def label_locality(labels: Mapping[str, str]) -> Locality:
    """The locality that a workload's own labels say; empty where they say none."""
    found = Locality(labels.get(REGION, ""), labels.get(ZONE, ""), labels.get(SUBZONE, ""))
    if found:
        return found
    text = next((labels[name] for name in _ISTIO_LOCALITY if labels.get(name)), "")
    return parse_locality(text if "/" in text else text.replace(".", "/"))


def parse_locality(text: str) -> Locality:
    """`region/zone/subzone`, of which the later parts may be missing."""
    return Locality(*text.split("/", 2)) if text else Locality()


@query
def workload_at(db: Engine, namespace: str, addresses: tuple[str, ...]) -> Workload | None:
    """The workload that has one of these addresses: a WorkloadEntry of the namespace before a pod."""
    for address in addresses:
        for _, entry_namespace, name in db.lookup(entries_by_ip, (namespace, address)):
            return entry_workload(db, entry_namespace, name)
    for address in addresses:
        for _, pod_namespace, name in db.lookup(pods_by_ip, address):
            return pod_workload(db, pod_namespace, name)
    return None


@query
def proxy_workload(db: Engine, proxy: Proxy) -> Workload:
    """What is known of the proxy's own workload: its labels with topology laid over, its locality, its identity."""
    found = workload_at(db, proxy.namespace, proxy.ip_addresses)
    own = dict(found.labels if found is not None else proxy.labels)
    locality = (found.locality if found is not None else Locality()) or label_locality(own) or proxy.locality
    return Workload(
        name=proxy.workload_name or (found.name if found is not None else proxy.name),
        namespace=proxy.namespace,
        labels=augment(
            {**dict(proxy.static_labels), **own}, locality, proxy.cluster_id, proxy.node_name, proxy.network
        ),
        locality=locality,
        network=proxy.network,
        service_account=proxy.service_account,
        node_name=proxy.node_name or (found.node_name if found is not None else ""),
        ports=found.ports if found is not None else (),
    )


def augment(labels: Mapping[str, str], locality: Locality, cluster: str, node: str, network: str) -> Labels:
    """Labels with the topology laid over them, as locality rules and selectors read them."""
    known = {
        REGION: locality.region,
        ZONE: locality.zone,
        SUBZONE: locality.subzone,
        CLUSTER: cluster,
        HOSTNAME: node,
    }
    merged = {**labels, **{name: value for name, value in known.items() if value}}
    if network:
        merged.setdefault(NETWORK, network)
    return freeze(merged)


@query
def spiffe_id(db: Engine, namespace: str, service_account: str) -> str:
    """The identity of a service account in this mesh."""
    return format_spiffe(Identity(mesh.trust_domain(db), namespace, service_account))
