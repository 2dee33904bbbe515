"""Heads: routes without their rules, which decide what a route attaches to; and routes by their parents.

In: HTTPRoutes, GRPCRoutes, TCPRoutes, TLSRoutes. Out: `RouteHead`, equal across changes of rules; the keys of routes
that name a Gateway or ListenerSet, or anything of the mesh; the keys of routes that forward to a backend.
"""

from collections.abc import Iterable

import msgspec

from mizzen.api.gateway_api.grpc_route import GRPCRoute
from mizzen.api.gateway_api.http_route import HTTPRoute
from mizzen.api.gateway_api.references import GATEWAY_GROUP, ParentReference
from mizzen.api.gateway_api.stream_routes import TCPRoute, TLSRoute
from mizzen.api.meta import Key
from mizzen.incremental import Engine, Index, query

Route = HTTPRoute | GRPCRoute | TCPRoute | TLSRoute

HTTP_KINDS = ("HTTPRoute", "GRPCRoute")
STREAM_KINDS = ("TCPRoute", "TLSRoute")
KINDS = (*HTTP_KINDS, *STREAM_KINDS)

_ISTIO_NETWORKING = "networking.istio.io"
_GATEWAY_PARENTS = {(GATEWAY_GROUP, "Gateway"): "KubernetesGateway", (GATEWAY_GROUP, "ListenerSet"): "ListenerSet"}
_SERVICE = ("", "Service")
HOSTNAME = (_ISTIO_NETWORKING, "Hostname")
"""The group and kind of a backend that is named by its host."""

_MESH_PARENTS = {_SERVICE: "Service", (_ISTIO_NETWORKING, "ServiceEntry"): "ServiceEntry"}


class RouteHead(msgspec.Struct, frozen=True, kw_only=True):
    """A route without its rules."""

    key: Key
    created: float
    """Seconds since the epoch; infinity where the object says none."""
    parents: tuple[ParentReference, ...]
    hostnames: tuple[str, ...]

    @property
    def age_order(self) -> tuple[float, str, str]:
        """Oldest first, then by namespace and name, as routes of the Gateway API are ordered."""
        return (self.created, self.key.namespace, self.key.name)


def parent_key(reference: ParentReference, namespace: str) -> Key | None:
    """The object that a reference names; None where it is of no kind that routes attach to."""
    kinds = _GATEWAY_PARENTS if reference.group == GATEWAY_GROUP else _MESH_PARENTS
    kind = kinds.get((reference.group, reference.kind))
    return Key(kind, reference.namespace or namespace, reference.name) if kind is not None else None


def is_mesh_parent(parent: Key) -> bool:
    """Whether a parent is a service of the mesh, not a gateway's listener."""
    return parent.kind in _MESH_PARENTS.values()


def _parents(key: tuple[str, ...], route: Route) -> Iterable[Key]:
    found = (parent_key(reference, key[1]) for reference in route.spec.parent_refs)
    return [parent for parent in found if parent is not None and not is_mesh_parent(parent)]


def _mesh_namespaces(key: tuple[str, ...], route: Route) -> Iterable[str]:
    found = (parent_key(reference, key[1]) for reference in route.spec.parent_refs)
    return (key[1],) if any(parent is not None and is_mesh_parent(parent) for parent in found) else ()


def _backends(key: tuple[str, ...], route: Route) -> Iterable[Key]:
    references = [b for rule in route.spec.rules for b in rule.backend_refs]
    services = {Key("Service", b.namespace or key[1], b.name) for b in references if (b.group, b.kind) == _SERVICE}
    return services | {host_backend(b.name) for b in references if (b.group, b.kind) == HOSTNAME}


def host_backend(host: str) -> Key:
    """The key of a backend that is named by its host."""
    return Key("Hostname", "", host.lower())


_by_parent = {kind: Index(kind, "parent", _parents) for kind in KINDS}
_by_mesh_namespace = {kind: Index(kind, "namespace of mesh routes", _mesh_namespaces) for kind in KINDS}
_all_of_mesh = {
    kind: Index(kind, "all of the mesh", lambda key, route: ((),) if _mesh_namespaces(key, route) else ())
    for kind in KINDS
}
_by_backend = {kind: Index(kind, "backend", _backends) for kind in KINDS}


@query
def route_head(db: Engine, key: Key) -> RouteHead | None:
    """The route without its rules."""
    route: Route | None = db.input(key)
    if route is None:
        return None
    return RouteHead(
        key=key,
        created=route.metadata.age_order[0],
        parents=tuple(route.spec.parent_refs),
        hostnames=() if isinstance(route, TCPRoute) else tuple(h.lower() for h in route.spec.hostnames),
    )


@query
def routes_of_parent(db: Engine, parent: Key) -> tuple[Key, ...]:
    """The routes that name a Gateway or ListenerSet as parent, whether or not it lets them in."""
    return tuple(Key(*key) for kind in KINDS for key in db.lookup(_by_parent[kind], parent))


@query
def mesh_routes(db: Engine, namespace: str) -> tuple[Key, ...]:
    """The routes of a namespace that have a service of the mesh as parent."""
    return tuple(Key(*key) for kind in KINDS for key in db.lookup(_by_mesh_namespace[kind], namespace))


@query
def mesh_namespaces(db: Engine) -> tuple[str, ...]:
    """The namespaces with such routes, sorted."""
    return tuple(sorted({key[1] for kind in KINDS for key in db.lookup(_all_of_mesh[kind], ())}))


@query
def routes_of_backend(db: Engine, backend: Key) -> tuple[Key, ...]:
    """The routes that forward to a Service, or to a host (`host_backend`)."""
    return tuple(Key(*key) for kind in KINDS for key in db.lookup(_by_backend[kind], backend))
