"""Scope: what one proxy imports, by its Sidecar resource or by default.

In: a proxy's namespace and labels, Sidecars, services and virtual services with their visibility.
Out: `ScopeId`, which stands for the whole scope in the arguments of queries (equal for all proxies that share it), and
by it the egress listeners with their services and virtual services, the list of services that need clusters, the
ingress listeners and the policy for unknown hosts.
Golden cases: networking/sidecar-precedence, networking/sidecar-egress-hosts, networking/sidecar-egress-listeners.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.sidecar import IstioEgressListener, Sidecar
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names, objects, workloads
from mizzen.model.protocols import Protocol, parse_protocol
from mizzen.model.proxy import Labels
from mizzen.model.services import Service, visible_service, visible_services
from mizzen.model.virtual_services import (
    MESH_GATEWAY,
    VirtualServiceRef,
    destinations,
    visible_virtual_services,
)

OutboundMode = Literal["ALLOW_ANY", "REGISTRY_ONLY", "ALLOW_ANY_DYNAMIC_DNS"]


class ScopeId(NamedTuple):
    """Names a scope: the namespace it is seen from, and the Sidecar that shapes it, if any."""

    namespace: str
    sidecar: Key | None = None


class Import(NamedTuple):
    """A host that a Sidecar's egress names."""

    namespace: str
    """A name, or `*` for any."""
    host: str


class EgressListener(msgspec.Struct, frozen=True, kw_only=True):
    """One egress listener and what traffic through it may reach."""

    port: int = 0
    """0 for the catch-all."""
    protocol: Protocol = Protocol.AUTO
    port_name: str = ""
    bind: str = ""
    capture_mode: str = "DEFAULT"
    services: tuple[Service, ...] = ()
    virtual_services: tuple[VirtualServiceRef, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    """Alias host and the host it stands for, for the ExternalName services carried."""

    @property
    def is_catch_all(self) -> bool:
        """Whether it takes every port that no other listener names."""
        return self.port == 0 and not self.bind.startswith("unix://")

    @property
    def all_ports(self) -> bool:
        """Whether services are reachable on all their ports through it."""
        return self.port == 0 or self.protocol is Protocol.HTTP_PROXY


class OutboundPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to calls of hosts that the scope does not know."""

    mode: OutboundMode = "ALLOW_ANY"
    egress_proxy: Destination | None = None
    namespace: str = ""
    """The namespace that short names in `egress_proxy` mean."""


# -- which Sidecar ------------------------------------------------------------------------------------------------


@query
def select_scope(db: Engine, namespace: str, labels: Labels) -> ScopeId:
    """The scope of a sidecar: its namespace's oldest Sidecar that selects it, else the oldest without selector, else
    the root namespace's, else everything visible."""
    own = _sidecars(db, namespace)
    for sidecar in own:
        selector = sidecar.spec.workload_selector
        if selector is not None and workloads.selects(workloads.freeze(selector.labels), labels):
            return ScopeId(namespace, _key(sidecar))
    root = mesh.root_namespace(db)
    for level in dict.fromkeys((namespace, root)):
        whole = general(db, level)
        if whole is not None:
            return ScopeId(namespace, _key(whole))
    return ScopeId(namespace)


@query
def general(db: Engine, namespace: str) -> Sidecar | None:
    """The Sidecar of a whole namespace: the oldest without a selector."""
    return next((s for s in _sidecars(db, namespace) if is_general(s)), None)


def is_general(sidecar: Sidecar) -> bool:
    """Whether a Sidecar is for all workloads of its namespace."""
    return sidecar.spec.workload_selector is None


@query
def _sidecars(db: Engine, namespace: str) -> tuple[Sidecar, ...]:
    found = (db.input(key) for key in objects.in_namespace(db, "Sidecar", namespace))
    return tuple(sorted(found, key=lambda s: s.metadata.age_order))


def _key(sidecar: Sidecar) -> Key:
    return Key("Sidecar", sidecar.metadata.namespace, sidecar.metadata.name)


def sidecar(db: Engine, scope: ScopeId) -> Sidecar | None:
    """The Sidecar behind a scope."""
    found: Sidecar | None = db.input(scope.sidecar) if scope.sidecar is not None else None
    return found


# -- egress -------------------------------------------------------------------------------------------------------


@query
def egress_listeners(db: Engine, scope: ScopeId) -> tuple[EgressListener, ...]:
    """The egress listeners in the Sidecar's order; one catch-all of everything visible where there is none."""
    seen = visible_virtual_services(db, scope.namespace, MESH_GATEWAY)
    listeners = egress_services(db, scope)
    found = sidecar(db, scope)
    if found is None:
        return tuple(msgspec.structs.replace(listener, virtual_services=seen) for listener in listeners)
    return tuple(
        msgspec.structs.replace(listener, virtual_services=_imported_virtual_services(seen, asked, scope.namespace))
        for listener, asked in zip(listeners, _asked_egress(found), strict=True)
    )


@query
def egress_services(db: Engine, scope: ScopeId) -> tuple[EgressListener, ...]:
    """The same without their virtual services, which change more often."""
    found = sidecar(db, scope)
    if found is None:
        return (_default_egress(db, scope.namespace),)
    return tuple(_build_egress(db, scope.namespace, listener) for listener in _asked_egress(found))


def _asked_egress(found: Sidecar) -> Sequence[IstioEgressListener]:
    return found.spec.egress or (IstioEgressListener(hosts=("*/*",)),)


@query
def _default_egress(db: Engine, namespace: str) -> EgressListener:
    services = _one_namespace_per_host(visible_services(db, namespace), namespace)
    return EgressListener(services=services, aliases=_aliases(visible_services(db, namespace)))


def _build_egress(db: Engine, namespace: str, listener: IstioEgressListener) -> EgressListener:
    port = listener.port.number if listener.port is not None else 0
    protocol = parse_protocol(listener.port.protocol) if listener.port is not None else Protocol.AUTO
    all_ports = port == 0 or protocol is Protocol.HTTP_PROXY
    included, excluded = _imports(listener.hosts, namespace)
    seen = visible_services(db, namespace)
    imported = _imported_services(seen, included, excluded)
    if not all_ports:
        imported = tuple(s for s in (_only_port(s, port) for s in imported) if s is not None)
    alias_hosts = tuple(s for s in seen if s.resolution == "alias" and _imports_service(s, included, excluded))
    return EgressListener(
        port=port,
        protocol=protocol,
        port_name=listener.port.name if listener.port is not None else "",
        bind=listener.bind,
        capture_mode=listener.capture_mode,
        services=_one_namespace_per_host(imported, namespace),
        aliases=_aliases(alias_hosts, concrete=seen),
    )


def _imported_virtual_services(
    seen: tuple[VirtualServiceRef, ...], listener: IstioEgressListener, namespace: str
) -> tuple[VirtualServiceRef, ...]:
    included, excluded = _imports(listener.hosts, namespace)
    return tuple(virtual for virtual in seen if _imports_virtual_service(virtual, included, excluded))


def _imports(hosts: Iterable[str], namespace: str) -> tuple[tuple[Import, ...], tuple[Import, ...]]:
    """What the hosts of a listener include and exclude; malformed ones are ignored, `~/*` includes nothing."""
    included, excluded = [], []
    for text in hosts:
        parts = text.split("/")
        if len(parts) != 2:
            continue
        space, host = parts
        if space.startswith("~"):
            excluded.append(Import(_namespace_of(space[1:] or "*", namespace), host.lower()))
        else:
            included.append(Import(_namespace_of(space, namespace), host.lower()))
    return tuple(included), tuple(excluded)


def _namespace_of(space: str, own: str) -> str:
    return own if space == "." else space


def _covers(entry: Import, namespace: str, host: str) -> bool:
    return entry.namespace in ("*", namespace) and names.matches(entry.host, host)


def _imports_service(service: Service, included: tuple[Import, ...], excluded: tuple[Import, ...]) -> bool:
    if any(_covers(e, service.namespace, service.host) for e in excluded):
        return False
    return any(_covers(e, service.namespace, service.host) for e in included)


def _imported_services(
    seen: tuple[Service, ...], included: tuple[Import, ...], excluded: tuple[Import, ...]
) -> tuple[Service, ...]:
    return tuple(s for s in seen if _imports_service(s, included, excluded))


def _imports_virtual_service(
    virtual: VirtualServiceRef, included: tuple[Import, ...], excluded: tuple[Import, ...]
) -> bool:
    def covers(entry: Import, host: str) -> bool:
        if entry.namespace not in ("*", virtual.namespace):
            return False
        return names.matches(entry.host, host) if virtual.is_gateway_api else names.overlap(entry.host, host)

    if any(_covers(e, virtual.namespace, h) for e in excluded for h in virtual.hosts):
        return False
    return any(covers(e, h) for e in included for h in virtual.hosts)


def _only_port(service: Service, port: int) -> Service | None:
    """The service reduced to one of its ports; None where it lacks it."""
    kept = tuple(p for p in service.ports if p.number == port)
    if not kept:
        return None
    return service if len(service.ports) == 1 else msgspec.structs.replace(service, ports=kept)


def _one_namespace_per_host(services: tuple[Service, ...], own: str) -> tuple[Service, ...]:
    """For a host in several namespaces, one survives: the client's own, else Kubernetes', else the oldest's."""
    chosen: dict[str, Service] = {}
    repeated = False
    for service in services:
        current = chosen.get(service.host)
        if current is None:
            chosen[service.host] = service
            continue
        repeated = True
        if current.namespace == own:
            continue
        if service.namespace == own or (service.is_kubernetes and not current.is_kubernetes):
            chosen[service.host] = service
    if not repeated:
        return services
    return tuple(s for s in services if s.namespace == chosen[s.host].namespace)


def _aliases(seen: tuple[Service, ...], concrete: tuple[Service, ...] | None = None) -> tuple[tuple[str, str], ...]:
    """Alias hosts with the concrete host each leads to, directly or through other aliases; by namespace, then host."""
    every = concrete if concrete is not None else seen
    leads = {s.host: s.alias_of for s in every if s.resolution == "alias"}
    if not leads:
        return ()
    hosts = {s.host for s in every if s.resolution != "alias"}
    found = []
    for service in sorted((s for s in seen if s.resolution == "alias"), key=lambda s: (s.namespace, s.host)):
        passed = {service.host}
        target = service.alias_of
        while target in leads and target not in passed:
            passed.add(target)
            target = leads[target]
        if target in hosts:
            found.append((service.host, target))
    return tuple(found)


# -- all services of a scope --------------------------------------------------------------------------------------


@query
def scope_services(db: Engine, scope: ScopeId) -> tuple[Service, ...]:
    """The services that need clusters: those of every egress listener, then destinations of imported routes."""
    if scope.sidecar is None:
        listener = _default_egress(db, scope.namespace)
        return _unique_hosts(listener.services)
    listeners = egress_listeners(db, scope)
    kept: dict[str, Service] = {}
    for listener in listeners:
        for service in listener.services:
            _keep(kept, service)
        for virtual in listener.virtual_services:
            for service in _destination_services(db, scope.namespace, virtual, listener):
                _keep(kept, service)
    return tuple(kept.values())


def _unique_hosts(services: tuple[Service, ...]) -> tuple[Service, ...]:
    kept: dict[str, Service] = {}
    for service in services:
        _keep(kept, service)
    return tuple(kept.values())


def _keep(kept: dict[str, Service], service: Service) -> None:
    """The first of a host stays; Kubernetes replaces others; the same service seen by another port adds that port."""
    current = kept.get(service.host)
    if current is None:
        kept[service.host] = service
        return
    if service.is_kubernetes and not current.is_kubernetes:
        kept[service.host] = service
        return
    if current.is_kubernetes and not service.is_kubernetes:
        return
    if current.ports == service.ports:
        return
    alike = (
        current.namespace == service.namespace
        and current.resolution == service.resolution
        and current.registry == service.registry
        and current.labels == service.labels
        and current.selector == service.selector
        and current.export_to == service.export_to
    )
    if alike:
        numbers = {p.number for p in current.ports}
        extra = tuple(p for p in service.ports if p.number not in numbers)
        kept[service.host] = msgspec.structs.replace(current, ports=current.ports + extra)


def _destination_services(
    db: Engine, namespace: str, virtual: VirtualServiceRef, listener: EgressListener
) -> Iterator[Service]:
    for host, ports in destinations(db, virtual.key, namespace):
        service = visible_service(db, host, namespace)
        if service is None:
            continue
        if not listener.all_ports:
            reduced = _only_port(service, listener.port)
        elif 0 in ports or not ports:
            reduced = service
        else:
            kept = tuple(p for p in service.ports if p.number in ports)
            reduced = msgspec.structs.replace(service, ports=kept) if kept else None
        if reduced is not None:
            yield reduced


@query
def services_by_host(db: Engine, scope: ScopeId) -> dict[str, Service]:
    """The scope's services by host, for lookups while routes are built."""
    return {s.host: s for s in scope_services(db, scope)}


@query
def service_groups(db: Engine, scope: ScopeId) -> dict[str, dict[str, Service]]:
    """The scope's services by host, in groups of hosts: a long list is worked out from them, each by a query."""
    groups: dict[str, dict[str, Service]] = {}
    for service in scope_services(db, scope):
        groups.setdefault(names.group_of(service.host), {})[service.host] = service
    return groups


@query
def group_services(db: Engine, scope: ScopeId, group: str) -> dict[str, Service]:
    """The services of one group, by host. Reads the whole scope, but changes only with them."""
    return service_groups(db, scope).get(group, {})


def scoped_service(db: Engine, scope: ScopeId, host: str) -> Service | None:
    """The scope's service of that host."""
    return group_services(db, scope, names.group_of(host)).get(host)


# -- policy for unknown hosts -------------------------------------------------------------------------------------


@query
def outbound_policy(db: Engine, scope: ScopeId) -> OutboundPolicy:
    """The Sidecar's policy where it has one (a block without mode is REGISTRY_ONLY), else the mesh's."""
    found = sidecar(db, scope)
    own = found.spec.outbound_traffic_policy if found is not None else None
    if found is not None and own is not None:
        return OutboundPolicy(mode=own.mode, egress_proxy=own.egress_proxy, namespace=found.metadata.namespace)
    policy = mesh.mesh_config(db).outbound_traffic_policy
    return OutboundPolicy(mode=policy.mode if policy is not None else "ALLOW_ANY")
