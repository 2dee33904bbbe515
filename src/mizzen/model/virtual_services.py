"""VirtualServices: which of them a proxy or gateway sees, in which order, and the hosts they name, completed.

In: VirtualServices, those that `convert` generates, and the mesh's default visibility. Out: `VirtualServiceRef`, the
part that decides who sees it (so that a change of its routes alone leaves every list of them as it was), lists of refs
in the order of precedence, and by key the routes, with delegates merged in by `delegates`.
Golden cases: networking/vs-same-host, networking/vs-host-forms, networking/export-to, gateway/mesh-and-gateway.
"""

from collections.abc import Iterable

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.virtual_service import TCPRoute, TLSRoute, VirtualService
from mizzen.incremental import Engine, attempt, query
from mizzen.model import delegates, mesh, names, objects
from mizzen.model.convert.ingress import ingress_heads, ingress_virtual_service
from mizzen.model.convert.routes.objects import (
    SEMANTICS,
    GeneratedHead,
    generated_heads,
    generated_virtual_service,
)
from mizzen.model.services import audience

MESH_GATEWAY = "mesh"


class VirtualServiceRef(msgspec.Struct, frozen=True, kw_only=True):
    """A VirtualService without its routes: what decides who sees it and which hosts it speaks for."""

    key: Key
    age_order: tuple[float, str, str]
    hosts: tuple[str, ...]
    """Lower-cased, short names completed."""
    gateways: tuple[str, ...]
    """`mesh`, or `namespace/name` of Gateways."""
    export_to: tuple[str, ...] = ()
    is_gateway_api: bool = False
    is_ingress: bool = False

    @property
    def splits_paths(self) -> bool:
        """Whether a prefix of a path ends where a segment does, as for the Gateway API and Ingress."""
        return self.is_gateway_api or self.is_ingress

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return self.key.namespace

    @property
    def config_path(self) -> str:
        """The origin as it stands in Envoy's metadata."""
        return f"/apis/networking.istio.io/v1/namespaces/{self.key.namespace}/virtual-service/{self.key.name}"


@query
def virtual_service_ref(db: Engine, key: Key) -> VirtualServiceRef | None:
    """The VirtualService of that key without its routes; None for delegates, which have no hosts."""
    virtual = _written_or_generated(db, key)
    if virtual is None or not virtual.spec.hosts:
        return None
    domain = mesh.domain(db)
    return VirtualServiceRef(
        key=key,
        age_order=virtual.metadata.age_order,
        hosts=tuple(names.resolve_host(h.lower(), key.namespace, domain) for h in virtual.spec.hosts),
        gateways=tuple(qualify_gateway(g, key.namespace) for g in virtual.spec.gateways) or (MESH_GATEWAY,),
        export_to=tuple(virtual.spec.export_to),
        is_gateway_api=virtual.metadata.annotations.get(SEMANTICS) == "gateway",
        is_ingress=virtual.metadata.annotations.get(SEMANTICS) == "ingress",
    )


def _written_or_generated(db: Engine, key: Key) -> VirtualService | None:
    written: VirtualService | None = db.input(key)
    if written is not None:
        return written
    return generated_virtual_service(db, key) or ingress_virtual_service(db, key)


def _generated_ref(head: GeneratedHead, *, is_ingress: bool) -> VirtualServiceRef:
    """The ref of a generated object, which needs none of its rules."""
    return VirtualServiceRef(
        key=head.key,
        age_order=(head.created, head.key.name, head.key.namespace),
        hosts=(head.host,),
        gateways=(head.gateway,),
        export_to=(".",) if head.is_private else (),
        is_gateway_api=not is_ingress,
        is_ingress=is_ingress,
    )


def qualify_gateway(gateway: str, namespace: str) -> str:
    """A gateway as `namespace/name`; `name.namespace…` is an older spelling of the same."""
    if gateway == MESH_GATEWAY or "/" in gateway:
        return gateway
    name, dot, rest = gateway.partition(".")
    return f"{rest.partition('.')[0]}/{name}" if dot else f"{namespace}/{name}"


@query
def _refs(db: Engine) -> tuple[VirtualServiceRef, ...]:
    """Every VirtualService that a user wrote, if it has hosts; the oldest first."""
    found = (attempt(virtual_service_ref, db, key) for key in objects.of_kind(db, "VirtualService"))
    return tuple(sorted((r for r in found if r is not None), key=lambda r: r.age_order))


@query
def visible_virtual_services(db: Engine, namespace: str, gateway: str) -> tuple[VirtualServiceRef, ...]:
    """The VirtualServices of a gateway (`mesh` for sidecars) that a namespace sees, in order of precedence.

    Private ones of the namespace come first, then those exported to it by name, then public ones; of these the
    namespace's own routes of the Gateway API before all others. The oldest first.
    """
    default = tuple(mesh.mesh_config(db).default_virtual_service_export_to)
    private: list[VirtualServiceRef] = []
    exported: list[VirtualServiceRef] = []
    public: list[VirtualServiceRef] = []
    for ref in _refs_of_gateway(db, gateway):
        seen_by = audience(ref.export_to, default, ref.namespace)
        if seen_by.everybody:
            public.append(ref)
        elif seen_by.includes(namespace):
            only_own = ref.namespace == namespace and seen_by.namespaces == {namespace}
            (private if only_own else exported).append(ref)
    public.sort(key=lambda r: not (r.is_gateway_api and r.namespace == namespace))
    return (*private, *exported, *public)


@query
def _refs_of_gateway(db: Engine, gateway: str) -> tuple[VirtualServiceRef, ...]:
    """The VirtualServices of a gateway, written or generated; the oldest first."""
    found = [ref for ref in _refs(db) if gateway in ref.gateways]
    found += [_generated_ref(head, is_ingress=False) for head in attempt(generated_heads, db, gateway) or ()]
    ingress = (head for head in attempt(ingress_heads, db) or () if head.gateway == gateway)
    found += [_generated_ref(head, is_ingress=True) for head in ingress]
    return tuple(sorted(found, key=lambda r: r.age_order))


@query
def virtual_service(db: Engine, key: Key) -> VirtualService | None:
    """The VirtualService with the routes of its delegates in place of the rules that delegate."""
    virtual = _written_or_generated(db, key)
    if virtual is None or not any(rule.delegate is not None for rule in virtual.spec.http):
        return virtual
    http = delegates.merged_http_routes(db, virtual)
    return msgspec.structs.replace(virtual, spec=msgspec.structs.replace(virtual.spec, http=http))


@query
def destinations(db: Engine, key: Key, source_namespace: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The hosts that a VirtualService sends clients of a namespace to, each with the ports it names (0: any)."""
    virtual = virtual_service(db, key)
    if virtual is None:
        return ()
    domain = mesh.domain(db)
    found: dict[str, dict[int, None]] = {}
    for destination in _named_destinations(virtual, source_namespace):
        host = names.resolve_host(destination.host.lower(), key.namespace, domain)
        if host:
            port = destination.port.number if destination.port is not None else 0
            found.setdefault(host, {})[port] = None
    return tuple((host, tuple(ports)) for host, ports in found.items())


def _named_destinations(virtual: VirtualService, source_namespace: str) -> Iterable[Destination]:
    for rule in virtual.spec.http:
        if rule.match and all(m.source_namespace not in ("", source_namespace) for m in rule.match):
            continue
        for route in rule.route:
            if route.destination is not None:
                yield route.destination
        if rule.mirror is not None:
            yield rule.mirror
        for mirror in rule.mirrors:
            if mirror.destination is not None:
                yield mirror.destination
    streams: tuple[TLSRoute | TCPRoute, ...] = (*virtual.spec.tls, *virtual.spec.tcp)
    for stream in streams:
        if stream.match and all(m.source_namespace not in ("", source_namespace) for m in stream.match):
            continue
        for target in stream.route:
            if target.destination is not None:
                yield target.destination
