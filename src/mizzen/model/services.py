"""Services of the mesh: what Kubernetes Services and ServiceEntries say, in one form.

In: Service and ServiceEntry objects. Out: `Service` values by object, by namespace, by host and by who may see them,
in creation order. One ServiceEntry gives one service for each of its hosts and addresses, as Istio does. Endpoints
are `endpoints`; which of these a proxy imports is `scope`.
Golden cases: networking/service-types, networking/se-static-and-none, networking/export-to.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from mizzen.api.kube.services import Service as KubeService
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.incremental import Engine, Index, attempt, query
from mizzen.model import mesh, names, objects
from mizzen.model.protocols import Protocol, parse_protocol, protocol_of
from mizzen.model.proxy import Labels
from mizzen.model.spiffe import SCHEME, Identity, format_spiffe
from mizzen.model.workloads import freeze

Resolution = Literal["client_side_lb", "dns", "dns_round_robin", "passthrough", "dynamic_dns", "alias"]
Registry = Literal["Kubernetes", "External"]

UNSPECIFIED = "0.0.0.0"
_EXPORT_TO = "networking.istio.io/exportTo"
_ACCOUNTS = ("alpha.istio.io/kubernetes-serviceaccounts", "alpha.istio.io/canonical-serviceaccounts")
_DISTRIBUTION = "networking.istio.io/traffic-distribution"
_RESOLUTIONS: Mapping[str, Resolution] = {
    "NONE": "passthrough",
    "STATIC": "client_side_lb",
    "DNS": "dns",
    "DNS_ROUND_ROBIN": "dns_round_robin",
    "DYNAMIC_DNS": "dynamic_dns",
}

_entries_by_host = Index("ServiceEntry", "host", lambda _key, entry: {h.lower() for h in entry.spec.hosts})


class ServiceId(NamedTuple):
    """Names one service: its object, host, and which of the object's addresses it has. Small enough for arguments."""

    source: Key
    host: str
    nth: int = 0


class Port(msgspec.Struct, frozen=True):
    """A port of a service."""

    number: int
    name: str
    protocol: Protocol
    target: int | str | None = None
    """The workload's port, by number or by name; None means the same number."""


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A service as proxies see it."""

    id: ServiceId
    host: str
    namespace: str
    name: str
    """The Kubernetes service's name; of a ServiceEntry, the host."""
    registry: Registry
    created: float
    """Seconds since the epoch; infinity where the object says none."""
    ports: tuple[Port, ...]
    resolution: Resolution
    address: str = UNSPECIFIED
    """The default address: an IP, a CIDR range, or 0.0.0.0 for none."""
    addresses: tuple[str, ...] = ()
    """Virtual addresses in the proxy's cluster."""
    auto_addresses: tuple[str, ...] = ()
    """Addresses that were allocated for a ServiceEntry without any."""
    external: bool = False
    labels: Labels = ()
    selector: Labels = ()
    export_to: tuple[str, ...] = ()
    """As written; empty means the mesh's default."""
    accounts: tuple[str, ...] = ()
    """Identities to accept besides those of the endpoints."""
    alias_of: str = ""
    """The host that an ExternalName service stands for."""
    traffic_distribution: str = ""
    node_local: bool = False
    publish_not_ready: bool = False
    race_first_connect: bool = False

    @property
    def is_kubernetes(self) -> bool:
        """Whether a Kubernetes Service is behind it."""
        return self.registry == "Kubernetes"

    @property
    def is_headless(self) -> bool:
        """Whether clients reach the endpoints' own addresses."""
        return self.resolution == "passthrough"

    @property
    def age_order(self) -> tuple[float, str, str]:
        """Oldest first, then by name and namespace."""
        return (self.created, self.name, self.namespace)

    def port(self, number: int) -> Port | None:
        """The port of that number."""
        return next((p for p in self.ports if p.number == number), None)


def is_port(number: int) -> bool:
    """Whether the number is a port; what an object says beyond that is left out."""
    return 0 < number < 65536


def _created(meta: ObjectMeta) -> float:
    return meta.age_order[0]


@query
def kube_service(db: Engine, namespace: str, name: str) -> Service | None:
    """The Kubernetes service as a mesh service."""
    key = Key("Service", namespace, name)
    found: KubeService | None = db.input(key)
    if found is None:
        return None
    host = names.service_host(name, namespace, mesh.domain(db))
    spec, annotations = found.spec, found.metadata.annotations
    alias = spec.type == "ExternalName"
    addresses = tuple(a for a in (spec.cluster_ips or (spec.cluster_ip,)) if names.is_ip(a))
    return Service(
        id=ServiceId(key, host),
        host=host,
        namespace=namespace,
        name=name,
        registry="Kubernetes",
        created=_created(found.metadata),
        ports=tuple(
            Port(
                p.port,
                p.name,
                protocol_of(p),
                p.target_port,
            )
            for p in spec.ports
            if is_port(p.port)
        ),
        resolution="alias" if alias else "client_side_lb" if addresses else "passthrough",
        address=addresses[0] if addresses else UNSPECIFIED,
        addresses=addresses,
        labels=freeze(found.metadata.labels),
        selector=freeze(spec.selector),
        export_to=tuple(e.strip() for e in annotations.get(_EXPORT_TO, "").split(",") if e.strip()),
        accounts=_annotated_accounts(db, namespace, annotations),
        alias_of=spec.external_name if alias else "",
        traffic_distribution=annotations.get(_DISTRIBUTION) or spec.traffic_distribution,
        node_local=spec.internal_traffic_policy == "Local",
        publish_not_ready=spec.publish_not_ready_addresses,
    )


def _annotated_accounts(db: Engine, namespace: str, annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Service accounts named in annotations: plain ones in the service's namespace, canonical ones written whole."""
    plain, canonical = ([a.strip() for a in annotations.get(name, "").split(",") if a.strip()] for name in _ACCOUNTS)
    trust_domain = mesh.trust_domain(db) if plain or canonical else ""
    return (
        *(format_spiffe(Identity(trust_domain, namespace, a)) for a in plain),
        *(a if a.startswith(SCHEME) else f"{SCHEME}{a}" for a in canonical),
    )


@query
def entry_services(db: Engine, namespace: str, name: str) -> tuple[Service, ...]:
    """The services of a ServiceEntry: one for each host and valid address."""
    key = Key("ServiceEntry", namespace, name)
    entry: ServiceEntry | None = db.input(key)
    if entry is None:
        return ()
    spec = entry.spec
    addresses = _valid_addresses(spec.addresses)
    if spec.addresses and not addresses:
        return ()
    ports = tuple(
        Port(p.number, p.name, parse_protocol(p.protocol), p.target_port if is_port(p.target_port) else None)
        for p in spec.ports
        if is_port(p.number)
    )
    allocated = entry.status.addresses
    return tuple(
        Service(
            id=ServiceId(key, host.lower(), index),
            host=host.lower(),
            namespace=namespace,
            name=host.lower(),
            registry="External",
            created=_created(entry.metadata),
            ports=ports,
            resolution=_RESOLUTIONS[spec.resolution],
            address=address,
            addresses=(address,) if address != UNSPECIFIED else (),
            auto_addresses=tuple(a.value for a in allocated if a.host == host or not a.host) if not addresses else (),
            external=spec.location == "MESH_EXTERNAL",
            labels=freeze(entry.metadata.labels),
            selector=freeze(spec.workload_selector.labels) if spec.workload_selector is not None else (),
            export_to=tuple(spec.export_to),
            accounts=tuple(spec.subject_alt_names),
            traffic_distribution=entry.metadata.annotations.get(_DISTRIBUTION, ""),
            race_first_connect=entry.metadata.annotations.get("istio.io/connect-strategy") == "RACE_FIRST_TCP_CONNECT",
        )
        for host in spec.hosts
        for index, address in enumerate(addresses or (UNSPECIFIED,))
    )


def _valid_addresses(written: Iterable[str]) -> tuple[str, ...]:
    """Addresses and CIDR ranges that parse, as written; a range of one address becomes the address."""
    found = []
    for text in written:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            continue
        single = network.prefixlen == network.max_prefixlen
        found.append(text.partition("/")[0] if single else text)
    return tuple(found)


@query
def service(db: Engine, service_id: ServiceId) -> Service | None:
    """The service of that id, or None once it is gone."""
    kind, namespace, name = service_id.source
    if kind == "Service":
        return kube_service(db, namespace, name)
    return next((s for s in entry_services(db, namespace, name) if s.id == service_id), None)


@query
def namespace_services(db: Engine, namespace: str) -> tuple[Service, ...]:
    """The services of a namespace, oldest first."""
    kube = (attempt(kube_service, db, ns, name) for _, ns, name in objects.in_namespace(db, "Service", namespace))
    found = [s for s in kube if s is not None]
    for _, ns, name in objects.in_namespace(db, "ServiceEntry", namespace):
        found.extend(attempt(entry_services, db, ns, name) or ())
    return tuple(sorted(found, key=lambda s: s.age_order))


@query
def namespaces(db: Engine) -> tuple[str, ...]:
    """The namespaces that hold services, sorted."""
    keys = (*objects.of_kind(db, "Service"), *objects.of_kind(db, "ServiceEntry"))
    return tuple(sorted({key[1] for key in keys}))


@query
def services_of_host(db: Engine, host: str) -> tuple[Service, ...]:
    """Every service of that exact host, in any namespace, oldest first."""
    found = [
        s for key in db.lookup(_entries_by_host, host) for s in entry_services(db, key[1], key[2]) if s.host == host
    ]
    suffix = f".svc.{mesh.domain(db)}"
    name, dot, namespace = host.removesuffix(suffix).partition(".")
    if host.endswith(suffix) and dot and (own := kube_service(db, namespace, name)) is not None:
        found.append(own)
    return tuple(sorted(found, key=lambda s: s.age_order))


def port_of(db: Engine, found: Service, number: int) -> Port | None:
    """The service's port of that number, or that of another object of its host and namespace."""
    own = found.port(number)
    if own is not None:
        return own
    alike = (s for s in services_of_host(db, found.host) if s.namespace == found.namespace)
    return next((p for s in alike if (p := s.port(number)) is not None), None)


class Audience(msgspec.Struct, frozen=True):
    """Who may see an object, once exportTo and its default are read."""

    everybody: bool = False
    namespaces: frozenset[str] = frozenset()

    def includes(self, namespace: str) -> bool:
        """Whether proxies of the namespace may see it."""
        return self.everybody or namespace in self.namespaces


def audience(export_to: tuple[str, ...], default: tuple[str, ...], namespace: str) -> Audience:
    """Who an object of `namespace` with this exportTo is visible to: `*` all, `.` its own namespace, `~` nobody."""
    values = export_to or default or ("*",)
    if "*" in values:
        return Audience(everybody=True)
    if "~" in values:
        return Audience()
    return Audience(namespaces=frozenset(namespace if v == "." else v for v in values))


@query
def service_audience(db: Engine, namespace: str, export_to: tuple[str, ...]) -> Audience:
    """Who sees services of `namespace` with this exportTo."""
    return audience(export_to, tuple(mesh.mesh_config(db).default_service_export_to), namespace)


@query
def public_services(db: Engine) -> tuple[Service, ...]:
    """The services that every namespace sees, oldest first."""
    found = [
        s
        for namespace in namespaces(db)
        for s in namespace_services(db, namespace)
        if service_audience(db, namespace, s.export_to).everybody
    ]
    return tuple(sorted(found, key=lambda s: s.age_order))


@query
def restricted_services(db: Engine) -> tuple[Service, ...]:
    """The services that only named namespaces see, oldest first."""
    found = [
        s
        for namespace in namespaces(db)
        for s in namespace_services(db, namespace)
        if not service_audience(db, namespace, s.export_to).everybody
    ]
    return tuple(sorted(found, key=lambda s: s.age_order))


@query
def visible_services(db: Engine, namespace: str) -> tuple[Service, ...]:
    """What proxies of a namespace may see: its private services, those exported to it, then the public ones."""
    restricted = [
        s for s in restricted_services(db) if service_audience(db, s.namespace, s.export_to).includes(namespace)
    ]
    public = public_services(db)
    if not restricted:
        return public
    private = [s for s in restricted if s.namespace == namespace and set(s.export_to) <= {".", namespace}]
    exported = [s for s in restricted if s not in private]
    return (*private, *exported, *public)


@query
def _shown_services(db: Engine, host: str) -> tuple[tuple[Service, Audience], ...]:
    """Who sees which services of a host; one answer for the clients of all namespaces."""
    return tuple((s, service_audience(db, s.namespace, s.export_to)) for s in services_of_host(db, host))


def visible_service(db: Engine, host: str, namespace: str) -> Service | None:
    """The service that a host means to clients of a namespace: their own, else Kubernetes', else the oldest visible."""
    seen = [service for service, shown in _shown_services(db, host) if shown.includes(namespace)]
    own = [s for s in seen if s.namespace == namespace]
    kubernetes = [s for s in seen if s.is_kubernetes]
    return next(iter((*own, *kubernetes, *seen)), None)
