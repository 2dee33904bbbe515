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
from mizzen.incremental import Engine, barrier, query
from mizzen.model import mesh, names, objects, service_lists, workloads
from mizzen.model.protocols import Protocol, parse_protocol
from mizzen.model.proxy import Labels
from mizzen.model.services import Service, public_services, visible_service, visible_services
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


PUBLIC = ScopeId("")
"""Stands for all namespaces that see the services that everybody sees and no others, where it is about services."""


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


# -- whose services -----------------------------------------------------------------------------------------------


@barrier
def services_scope(db: Engine, scope: ScopeId) -> ScopeId:
    """The scope to ask for services by: what is worked out from them is shared by namespaces that see the same."""
    own = scope.sidecar is not None or scope.namespace in _rivals(db)
    return scope if own or visible_services(db, scope.namespace) != visible_services(db, "") else PUBLIC


@barrier
def routes_scope(db: Engine, scope: ScopeId) -> ScopeId:
    """The same where VirtualServices count, too."""
    shared = services_scope(db, scope)
    seen = (visible_virtual_services(db, each.namespace, MESH_GATEWAY) for each in (scope, shared))
    return shared if shared == scope or next(seen) == next(seen) else scope


@query
def _rivals(db: Engine) -> frozenset[str]:
    """The namespaces that have a host which another namespace has, too: they mean their own."""
    first: dict[str, Service] = {}
    found: set[str] = set()
    for service in public_services(db):
        other = first.setdefault(service.host, service)
        if other.namespace != service.namespace:
            found |= {other.namespace, service.namespace}
    return frozenset(found)


# -- egress -------------------------------------------------------------------------------------------------------


@query
def egress_shapes(db: Engine, scope: ScopeId) -> tuple[EgressListener, ...]:
    """The egress listeners by themselves, without what they carry."""
    found = sidecar(db, scope)
    return tuple(map(_shape, _asked_egress(found))) if found is not None else (EgressListener(),)


def _shape(listener: IstioEgressListener) -> EgressListener:
    return EgressListener(
        port=listener.port.number if listener.port is not None else 0,
        protocol=parse_protocol(listener.port.protocol) if listener.port is not None else Protocol.AUTO,
        port_name=listener.port.name if listener.port is not None else "",
        bind=listener.bind,
        capture_mode=listener.capture_mode,
    )


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
def egress_routes(db: Engine, scope: ScopeId, place: int) -> EgressListener:
    """One of them, by its place, without its services: not another when these are."""
    return msgspec.structs.replace(egress_listeners(db, scope)[place], services=())


def egress_services(db: Engine, scope: ScopeId) -> tuple[EgressListener, ...]:
    """The egress listeners without their virtual services, which change more often."""
    return _egress_services(db, services_scope(db, scope))


@query
def _egress_services(db: Engine, scope: ScopeId) -> tuple[EgressListener, ...]:
    found = sidecar(db, scope)
    if found is None:
        return (_default_egress(db, scope.namespace),)
    return tuple(_build_egress(db, scope.namespace, listener) for listener in _asked_egress(found))


@barrier
def egress_aliases(db: Engine, scope: ScopeId, place: int) -> tuple[tuple[str, str], ...]:
    """The aliases of one of them, by its place."""
    return egress_services(db, scope)[place].aliases


def _asked_egress(found: Sidecar) -> Sequence[IstioEgressListener]:
    return found.spec.egress or (IstioEgressListener(hosts=("*/*",)),)


@query
def _default_egress(db: Engine, namespace: str) -> EgressListener:
    seen = visible_services(db, namespace)
    return EgressListener(
        services=service_lists.one_namespace_per_host(seen, namespace), aliases=service_lists.find_aliases(seen)
    )


def _build_egress(db: Engine, namespace: str, listener: IstioEgressListener) -> EgressListener:
    shape = _shape(listener)
    included, excluded = _imports(listener.hosts, namespace)
    seen = visible_services(db, namespace)
    imported = _imported_services(seen, included, excluded)
    if not shape.all_ports:
        imported = tuple(s for s in (service_lists.only_port(s, shape.port) for s in imported) if s is not None)
    alias_hosts = tuple(s for s in seen if s.resolution == "alias" and _imports_service(s, included, excluded))
    return msgspec.structs.replace(
        shape,
        services=service_lists.one_namespace_per_host(imported, namespace),
        aliases=service_lists.find_aliases(alias_hosts, concrete=seen),
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


# -- all services of a scope --------------------------------------------------------------------------------------


def scope_services(db: Engine, scope: ScopeId) -> tuple[Service, ...]:
    """The services that need clusters: those of every egress listener, then destinations of imported routes."""
    return _scope_services(db, services_scope(db, scope))


@query
def _scope_services(db: Engine, scope: ScopeId) -> tuple[Service, ...]:
    if scope.sidecar is None:
        listener = _default_egress(db, scope.namespace)
        return service_lists.unique_hosts(listener.services)
    listeners = egress_listeners(db, scope)
    kept: dict[str, Service] = {}
    for listener in listeners:
        for service in listener.services:
            service_lists.keep(kept, service)
        for virtual in listener.virtual_services:
            for service in _destination_services(db, scope.namespace, virtual, listener):
                service_lists.keep(kept, service)
    return tuple(kept.values())


def _destination_services(
    db: Engine, namespace: str, virtual: VirtualServiceRef, listener: EgressListener
) -> Iterator[Service]:
    for host, ports in destinations(db, virtual.key, namespace):
        service = visible_service(db, host, namespace)
        if service is None:
            continue
        if not listener.all_ports:
            reduced = service_lists.only_port(service, listener.port)
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


def service_groups(db: Engine, scope: ScopeId) -> tuple[str, ...]:
    """The groups that the hosts of the scope's services make: a long list is worked out from them, each by a query."""
    return _group_names(db, services_scope(db, scope))


@barrier
def _group_names(db: Engine, scope: ScopeId) -> tuple[str, ...]:
    return tuple(_service_groups(db, scope))


@query
def _service_groups(db: Engine, scope: ScopeId) -> dict[str, dict[str, Service]]:
    groups: dict[str, dict[str, Service]] = {}
    for service in scope_services(db, scope):
        groups.setdefault(names.group_of(service.host), {})[service.host] = service
    return groups


def group_services(db: Engine, scope: ScopeId, group: str) -> dict[str, Service]:
    """The services of one group, by host. Reads the whole scope, but changes only with them."""
    return _group_services(db, services_scope(db, scope), group)


@barrier
def _group_services(db: Engine, scope: ScopeId, group: str) -> dict[str, Service]:
    return _service_groups(db, scope).get(group, {})


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
