"""Generated VirtualServices: the rules of all HTTPRoutes and GRPCRoutes of one listener and host in one object.

In: the routes of a listener, or those of a namespace for the mesh, and the rules of each. Out: heads of generated
objects by gateway, and an object by its key. Routes are merged oldest first, then their rules are ordered by
precedence; the object lies in the oldest route's namespace. TCPRoutes and TLSRoutes are merged with nothing.
Golden cases: gateway-api/route-precedence, gateway-api/grpc-routes, gateway-api/mesh-routes.
"""

from collections.abc import Iterable, Iterator

import msgspec

from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.networking.virtual_service import HTTPMatchRequest, VirtualService, VirtualServiceSpec
from mizzen.api.networking.virtual_service import HTTPRoute as Rule
from mizzen.incremental import Engine, attempt, query
from mizzen.model.convert import names
from mizzen.model.convert.gateways.conflicts import ListenerId
from mizzen.model.convert.gateways.listeners import facts, owned_listeners
from mizzen.model.convert.gateways.objects import PARENTS
from mizzen.model.convert.names import ListenerHost, MeshHost, StreamKind, StreamRoute
from mizzen.model.convert.routes import matches, streams
from mizzen.model.convert.routes.heads import HTTP_KINDS, Route, RouteHead, mesh_namespaces, mesh_routes, route_head
from mizzen.model.convert.routes.parents import MESH, accepted, listener_routes
from mizzen.model.convert.routes.rules import convert_rules, has_rules
from mizzen.model.convert.routes.services import is_private, parent_hosts

SEMANTICS = "internal.istio.io/route-semantics"


class GeneratedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A generated VirtualService without its rules."""

    key: Key
    created: float
    host: str
    gateway: str
    """The generated Gateway as `namespace/name`, or `mesh`."""
    is_private: bool = False
    """Whether only clients of its namespace see it."""


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What one generated VirtualService is made of."""

    source: ListenerHost | MeshHost
    routes: tuple[Key, ...]
    """The oldest first."""
    created: float
    is_private: bool = False


# -- heads ------------------------------------------------------------------------------------------------------------


@query
def generated_heads(db: Engine, gateway: str) -> tuple[GeneratedHead, ...]:
    """The generated VirtualServices of a gateway (`mesh`, or `namespace/name`), in no particular order."""
    found: list[GeneratedHead] = []
    if gateway == MESH:
        for namespace in mesh_namespaces(db):
            found += _heads(_mesh_merged(db, namespace), MESH)
            found += _stream_heads(db, mesh_routes(db, namespace), MESH)
        return tuple(found)
    found += _heads(_gateway_merged(db, gateway), gateway)
    for listener in _listeners_of(db, gateway):
        found += _stream_heads(db, listener_routes(db, listener), gateway)
    return tuple(found)


def _heads(merged: Iterable[Merged], gateway: str) -> Iterator[GeneratedHead]:
    for one in merged:
        namespace = one.routes[0].namespace
        yield GeneratedHead(
            key=Key("VirtualService", namespace, names.virtual_service_name(one.source, namespace)),
            created=one.created,
            host=one.source.host,
            gateway=gateway,
            is_private=one.is_private,
        )


def _stream_heads(db: Engine, routes: Iterable[Key], gateway: str) -> Iterator[GeneratedHead]:
    for key in routes:
        if key.kind in HTTP_KINDS:
            continue
        head = route_head(db, key)
        for nth, place in enumerate(attempt(streams.places, db, key) or ()):
            if place.gateway == gateway and head is not None:
                kind: StreamKind = "TCPRoute" if key.kind == "TCPRoute" else "TLSRoute"
                name = names.virtual_service_name(StreamRoute(kind, key.name, nth), key.namespace)
                yield GeneratedHead(
                    key=Key("VirtualService", key.namespace, name),
                    created=head.created,
                    host=place.host,
                    gateway=gateway,
                    is_private=place.is_private,
                )


@query
def _listeners_of(db: Engine, gateway: str) -> tuple[ListenerId, ...]:
    """The listeners behind a generated Gateway's name: a Gateway and a ListenerSet may share theirs."""
    parts = names.parse_gateway(gateway)
    if parts is None:
        return ()
    owners = (Key(kind, parts.namespace, parts.owner) for kind in ("KubernetesGateway", "ListenerSet"))
    listed = (listener for owner in owners for listener in owned_listeners(db, owner))
    return tuple(i for i in listed if (one := attempt(facts, db, i)) is not None and one.name == parts.listener)


# -- which routes make one object ---------------------------------------------------------------------------------


@query
def _gateway_merged(db: Engine, gateway: str) -> tuple[Merged, ...]:
    """The hosts of a listener, each with the routes that have it; a route without a rule left is none."""
    found: dict[str, dict[Key, RouteHead]] = {}
    for listener in _listeners_of(db, gateway):
        for key in listener_routes(db, listener):
            head = route_head(db, key)
            if key.kind not in HTTP_KINDS or head is None or not attempt(has_rules, db, key, False):
                continue
            here = [a for a in accepted(db, key) if a.listener == listener]
            for host in head.hostnames or ("*",):
                if any(a.admits(host) for a in here):
                    found.setdefault(host, {})[key] = head
    return tuple(_merge(ListenerHost(gateway, host), heads) for host, heads in found.items())


@query
def _mesh_merged(db: Engine, namespace: str) -> tuple[Merged, ...]:
    """The ports and hosts of the mesh that routes of a namespace have as parents, each with these routes."""
    found: dict[MeshHost, dict[Key, RouteHead]] = {}
    private: set[MeshHost] = set()
    for key in mesh_routes(db, namespace):
        head = route_head(db, key)
        if key.kind not in HTTP_KINDS or head is None or not attempt(has_rules, db, key, True):
            continue
        for attachment in attempt(accepted, db, key) or ():
            if attachment.gateway != MESH:
                continue
            for host in parent_hosts(db, attachment.parent):
                source = MeshHost(attachment.reference.port or 0, host)
                found.setdefault(source, {})[key] = head
                if is_private(attachment.parent, namespace):
                    private.add(source)
    return tuple(_merge(source, heads, is_private=source in private) for source, heads in found.items())


def _merge(source: ListenerHost | MeshHost, heads: dict[Key, RouteHead], *, is_private: bool = False) -> Merged:
    ordered = sorted(heads.values(), key=lambda h: (*h.age_order, HTTP_KINDS.index(h.key.kind)))
    return Merged(
        source=source,
        routes=tuple(h.key for h in ordered),
        created=ordered[0].created,
        is_private=is_private,
    )


@query
def _merged_of(db: Engine, source: ListenerHost | MeshHost, namespace: str) -> Merged | None:
    """What makes one object; asked for by itself, so that other hosts' changes stop here."""
    if isinstance(source, ListenerHost):
        listed = _gateway_merged(db, source.gateway)
    else:
        listed = _mesh_merged(db, namespace)
    return next((one for one in listed if one.source == source and one.routes[0].namespace == namespace), None)


# -- objects ----------------------------------------------------------------------------------------------------------


@query
def generated_virtual_service(db: Engine, key: Key) -> VirtualService | None:
    """The generated VirtualService of that key; None where there is none."""
    source = names.parse_virtual_service(key.name)
    if source is None:
        return None
    if isinstance(source, StreamRoute):
        route = Key(source.kind, key.namespace, source.route)
        spec = streams.stream_spec(db, route, source.nth)
        return _object(db, key, (route,), spec) if spec is not None else None
    merged = _merged_of(db, source, key.namespace)
    if merged is None:
        return None
    is_mesh = isinstance(source, MeshHost)
    rules = [rule for route in merged.routes for rule in convert_rules(db, route, is_mesh).rules]
    if isinstance(source, MeshHost) and source.port:
        rules = [_on_port(rule, source.port) for rule in rules]
    spec = VirtualServiceSpec(
        hosts=(source.host,),
        gateways=(MESH if isinstance(source, MeshHost) else source.gateway,),
        http=tuple(sorted(rules, key=matches.precedence)),
        export_to=(".",) if merged.is_private else (),
    )
    return _object(db, key, merged.routes, spec)


def _on_port(rule: Rule, port: int) -> Rule:
    """The rule for one port alone."""
    matched = tuple(msgspec.structs.replace(match, port=port) for match in rule.match)
    return msgspec.structs.replace(rule, match=matched or (HTTPMatchRequest(port=port),))


def _object(db: Engine, key: Key, routes: tuple[Key, ...], spec: VirtualServiceSpec) -> VirtualService:
    oldest: Route = db.input(routes[0])
    parents = ",".join(f"{route.kind}/{route.name}.{route.namespace}" for route in routes)
    return VirtualService(
        metadata=ObjectMeta(
            name=key.name,
            namespace=key.namespace,
            creation_timestamp=oldest.metadata.creation_timestamp,
            annotations={PARENTS: parents, SEMANTICS: "gateway"},
        ),
        spec=spec,
    )
