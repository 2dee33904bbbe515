"""The object at fault: by names alone, and with its file and line where objects are at hand.

In: a `Group`, and a `World` or none. Out: `Blame`. With a world, the example is traced first: where configuration comes
to the same status and flags, the trace's own cause is the answer, and it is confirmed. Else the objects that the cause
names are looked up by the host.
"""

import re
from collections.abc import Iterator

import msgspec

from mizzen.api.meta import Key
from mizzen.diagnose.access_logs import candidates
from mizzen.diagnose.access_logs.addresses import host_asked, host_of, port_of
from mizzen.diagnose.access_logs.groups import Group
from mizzen.diagnose.access_logs.lines import Entry
from mizzen.diagnose.policy_rules import parse_rule
from mizzen.diagnose.trace import walk
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import Cause, Trace
from mizzen.diagnose.trace.world import Workload, World
from mizzen.errors import MizzenError
from mizzen.model import names

_ROUTE = re.compile(r"(?P<namespace>[a-z0-9-]+)\.(?P<name>[a-z0-9.-]+)\.(?P<rule>\d+)")
"""Routes of the Gateway API are named so."""
_ROUTE_KIND = "HTTPRoute"
_TOGETHER = ("AuthorizationPolicy", "RequestAuthentication")
"""Kinds of which several decide about one request."""
_PARTED = ("AuthorizationPolicy", "DestinationRule", "HTTPRoute", "GRPCRoute")
_NOBODYS = ("no-route", "no-server-name", "registry-only")
"""Causes for which it may be that no object is at fault: nobody has spoken for the host."""


class Blame(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a group is to be laid to."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    """Empty where only the host is known that the object is for."""
    host: str = ""
    part: str = ""
    """The subset or rule."""
    file: str = ""
    line: int = 0
    reason: str = ""
    """What configuration says of it."""
    fix: str = ""
    also: tuple[str, ...] = ()
    """Others that may as well be meant: all policies that select the pod decide, and the line does not say which."""
    confirmed: bool = False
    """Whether the request, traced through configuration, fails in the same way."""

    def __str__(self) -> str:
        if not self.kind:
            return "-"
        who = f"{self.kind} {self.namespace}/{self.name}" if self.name else f"{self.kind} for {self.host}"
        part = f", {self.part}" if self.part else ""
        place = f" ({self.file}:{self.line})" if self.file else ""
        return who + part + place


def by_names(group: Group) -> Blame:
    """Whom the names in the lines accuse."""
    rule = parse_rule(group.mark)
    if rule is not None:
        return Blame(kind="AuthorizationPolicy", namespace=rule.namespace, name=rule.name, part=f"rule {rule.rule}")
    subject = group.subject
    if group.example.cluster == names.PASSTHROUGH:
        return Blame(kind="ServiceEntry", host=subject.host, part="there is none")
    kinds = group.explanation.kinds
    if not subject.host:
        return Blame()
    route = _ROUTE.fullmatch(group.example.route)
    if route is not None and kinds[:1] == ("VirtualService",):
        return Blame(kind=_ROUTE_KIND, namespace=route["namespace"], name=route["name"], part=f"rule {route['rule']}")
    kind = kinds[0] if kinds else "Service"
    if group.code == "plain-to-strict" and names.is_ip(subject.host):
        kind = "PeerAuthentication"  # Only the server's log is at hand.
    if kind == "Service":
        if subject.service is None:
            return Blame(kind="ServiceEntry" if "." in subject.host else "Service", host=subject.host)
        namespace, name = subject.service
        return Blame(kind="Service", namespace=namespace, name=name)
    return Blame(kind=kind, host=subject.short, part=f"subset {subject.subset}" if subject.subset else "")


# -- with objects -----------------------------------------------------------------------------------------------------


def by_objects(world: World, group: Group) -> Blame:
    """Whom the objects accuse; what the names say where they do not help."""
    named = by_names(group)
    if named.kind == "AuthorizationPolicy" and named.name:
        return _placed(world, named, Key(named.kind, named.namespace, named.name))
    traced = _trace(world, group.example)
    if traced is not None and traced.cause is not None and _agrees(traced, group.example):
        return _of_cause(traced.cause, reason=traced.reason, fix=traced.fix, confirmed=True, part=named.part)
    if traced is not None and group.code in _NOBODYS and _agrees(traced, group.example):
        return msgspec.structs.replace(named, reason=traced.reason, fix=traced.fix, confirmed=True)
    keys = list(_keys(world, named, group))
    if not keys:
        return named
    alike = [key for key in keys[1:] if key.kind == keys[0].kind and key.kind in _TOGETHER]
    also = tuple(f"{key.kind} {key.namespace}/{key.name}" for key in alike)
    return msgspec.structs.replace(_placed(world, named, keys[0]), also=also)


def _keys(world: World, named: Blame, group: Group) -> Iterator[Key]:
    """Objects that are there and may be meant, the likeliest first."""
    if named.kind == _ROUTE_KIND:
        routes = (Key(kind, named.namespace, named.name) for kind in (_ROUTE_KIND, "GRPCRoute"))
        yield from (key for key in routes if world.object(key) is not None)
    for kind in group.explanation.kinds or (named.kind,):
        yield from candidates.find(world, kind, group)


def _placed(world: World, named: Blame, key: Key) -> Blame:
    return _of_cause(world.cause(key), part=named.part)


def _of_cause(cause: Cause, *, reason: str = "", fix: str = "", confirmed: bool = False, part: str = "") -> Blame:
    return Blame(
        kind=cause.kind,
        namespace=cause.namespace,
        name=cause.name,
        file=cause.file,
        line=cause.line,
        reason=reason,
        fix=fix,
        confirmed=confirmed,
        part=part if cause.kind in _PARTED else "",
    )


def _agrees(traced: Trace, entry: Entry) -> bool:
    """Whether the trace comes to what the line says, in the log of the side that wrote it."""
    status, flag, _ = traced.seen_by_client
    own = (traced.status, traced.flag) if entry.is_inbound else (status, flag)
    return own[0] == entry.status and frozenset(own[1].split(",")) - {"-"} == entry.flags


def _trace(world: World, entry: Entry) -> Trace | None:
    """The entry's request, sent through configuration; None where its sender is not known."""
    request = _request(world, entry)
    if request is None:
        return None
    try:
        return walk.trace(world, request)
    except MizzenError:
        return None


def _request(world: World, entry: Entry) -> Request | None:
    own = world.at(host_of(entry.local))
    if own is not None and own.proxy == "router" and not entry.is_inbound:
        return _to_gateway(world, own, entry)
    client = _client(world, entry)
    if client is None:
        return None
    key = names.parse_subset_key(entry.cluster) or names.parse_subset_key(entry.sni)
    host = host_asked(entry.authority) or (key.host if key is not None else "") or entry.sni or host_of(entry.local)
    port = key.port if key is not None and key.direction == names.OUTBOUND else port_of(entry.local)
    if not host or not port:
        return None
    address = "" if entry.is_inbound else host_of(entry.local)
    return _sent(entry, client.reference, _scheme(entry), host, port, address)


def _scheme(entry: Entry) -> str:
    if entry.is_connection:
        return "tcp"
    return "grpc" if "grpc" in entry.agent.lower() else "http"


def _to_gateway(world: World, gateway: Workload, entry: Entry) -> Request:
    """The same from outside: to the port of the gateway's Service behind which it listens there."""
    host = host_asked(entry.authority) or entry.sni or host_of(entry.local)
    scheme = "tls" if entry.is_connection and entry.sni else _scheme(entry)
    port = candidates.service_port(world, gateway, port_of(entry.local))
    return _sent(entry, walk.OUTSIDE, scheme, host, port, gateway.addresses[0])


def _sent(entry: Entry, source: str, scheme: str, host: str, port: int, address: str) -> Request:
    return Request(
        source=source,
        scheme=scheme,
        host=host,
        port=port,
        method=entry.method or "GET",
        path=entry.path or "/",
        headers=(("host", entry.authority),) if entry.authority else (),
        address=address,
        http2=entry.protocol == "HTTP/2",
    )


def _client(world: World, entry: Entry) -> Workload | None:
    """The pod that sent it: by its address, or as the log pipeline names it."""
    found = world.at(host_of(entry.remote))
    if found is not None or not entry.pod or entry.is_inbound:
        return found
    try:
        return world.find(entry.pod)
    except MizzenError:
        return None
