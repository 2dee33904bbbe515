"""One client against one port of a Service: the verdict, and the objects behind both sides.

In: a world, a pod, a Service and its port. Out: `Check`. A connection is traced; where endpoints of one Service differ
in what they take, one connection to each of them. What remains unknown, such as a program outside the mesh, is named.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from mizzen.diagnose.dump import Json
from mizzen.diagnose.tls_checks import clients, gateways, servers
from mizzen.diagnose.tls_checks.clients import Client
from mizzen.diagnose.tls_checks.servers import Server
from mizzen.diagnose.trace import walk
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import Cause, Trace
from mizzen.diagnose.trace.world import Holdings, Workload, World
from mizzen.model import names, services
from mizzen.model.protocols import Protocol

Verdict = Literal["OK", "TLS", "PLAINTEXT", "CONFLICT", "DEPENDS", "UNREACHABLE"]
"""`OK` is mutual TLS of the mesh; `TLS` any other that gets through; `DEPENDS` on the endpoint that is chosen."""

_TLS_LINKS = ("tls", "secret")
_BEFORE_TLS = ("name", "capture", "listener", "filter_chain", "route", "cluster", "endpoint", "connection")
_CLIENT_FIRST = "the client speaks first, as a PERMISSIVE port waits for its bytes to tell TLS from plain text"
_TO_ITSELF = "what a pod sends to its own address goes past its sidecar"
_PAST_PROXY = ("no sidecar", "not captured", "outside")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one connection fares."""

    verdict: Verdict
    reason: str = ""
    cause: Cause | None = None
    fix: str = ""
    assumes: str = ""
    """What is taken for granted and nobody here knows; empty for a certain verdict."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A client against a port."""

    client: str
    """`NAME.NAMESPACE`."""
    host: str
    port: int
    verdict: Verdict
    speaks: Client
    servers: tuple[Server, ...]
    reason: str = ""
    cause: Cause | None = None
    fix: str = ""
    assumes: str = ""
    by_endpoint: tuple[tuple[str, Outcome], ...] = ()
    """Endpoints with their outcomes, where they differ."""

    @property
    def conflicts(self) -> bool:
        """Whether some connection fails in TLS."""
        return self.verdict == "CONFLICT" or any(outcome.verdict == "CONFLICT" for _, outcome in self.by_endpoint)


def check(world: World, pod: Workload, service: services.Service, port: services.Port) -> Check:
    """Whether the pod and the servers of a port agree about TLS; a gateway is asked as if a route of its led there."""
    if pod.proxy == "router":
        world, pod = gateways.as_client(world, pod, names.subset_key(names.OUTBOUND, port.number, "", service.host))
    return check_servers(world, pod, service, port, servers.find_servers(world, service, port))


def check_servers(
    world: World, pod: Workload, service: services.Service, port: services.Port, found: tuple[Server, ...]
) -> Check:
    """The same of a pod that is no gateway, and of servers that were looked up before."""
    return judge(world, pod, service, port, found, connect(world, pod, service, port))


def connect(world: World, pod: Workload, service: services.Service, port: services.Port) -> Trace:
    """What a connection to the port meets."""
    return walk.trace(world, request(pod, service, port))


def judge(
    world: World,
    pod: Workload,
    service: services.Service,
    port: services.Port,
    found: tuple[Server, ...],
    traced: Trace,
) -> Check:
    """The verdict, by what a connection met."""
    speaks = clients.read_client(world, pod, service, port, traced)
    is_self = pod.proxy == "sidecar" and service.is_headless and any(s.address in pod.addresses for s in found)
    kinds = {(server.kind, is_self and server.address in pod.addresses) for server in found}
    if len(kinds) > 1:
        by_endpoint = tuple((f"{s.address}:{s.port}", _to_one(world, pod, service, port, s)) for s in found)
        outcomes = {outcome.verdict: outcome for _, outcome in by_endpoint}
        if len(outcomes) > 1:
            worst = outcomes.get("CONFLICT") or Outcome(verdict="DEPENDS", reason=_TO_ITSELF if is_self else "")
            worst = msgspec.structs.replace(worst, verdict="DEPENDS")
            return _build(pod, service, port, worst, speaks, found, by_endpoint)
    outcome = _judge(traced, speaks, found, port)
    if not outcome.assumes and pod.proxy != "sidecar" and not service.is_kubernetes:
        assumes = f"{service.host} resolves to these endpoints without a sidecar"
        outcome = msgspec.structs.replace(outcome, assumes=assumes)
    return _build(pod, service, port, outcome, speaks, found, ())


def _build(
    pod: Workload,
    service: services.Service,
    port: services.Port,
    outcome: Outcome,
    speaks: Client,
    found: tuple[Server, ...],
    by_endpoint: tuple[tuple[str, Outcome], ...],
) -> Check:
    return Check(
        client=pod.reference,
        host=service.host,
        port=port.number,
        verdict=outcome.verdict,
        speaks=speaks,
        servers=found,
        reason=outcome.reason,
        cause=outcome.cause,
        fix=outcome.fix,
        assumes=outcome.assumes,
        by_endpoint=by_endpoint,
    )


def request(pod: Workload, service: services.Service, port: services.Port, address: str = "") -> Request:
    """A connection of the port's protocol, as a program would make it."""
    protocol = port.protocol
    scheme = "tls" if protocol.is_tls else "http" if protocol.is_http or protocol.is_auto else "tcp"
    if protocol.is_http2:
        scheme = "grpc"
    known = address or ("" if service.address == services.UNSPECIFIED or service.is_kubernetes else service.address)
    return Request(source=pod.reference, scheme=scheme, host=service.host, port=port.number, address=known)


def _judge(traced: Trace, speaks: Client, found: tuple[Server, ...], port: services.Port) -> Outcome:
    if traced.link in _TLS_LINKS:
        return Outcome(verdict="CONFLICT", reason=traced.reason, cause=traced.cause, fix=traced.fix)
    if traced.link in _BEFORE_TLS and traced.outcome == "failed":
        return Outcome(verdict="UNREACHABLE", reason=traced.reason, cause=traced.cause, fix=traced.fix)
    program = next((server for server in found if server.mode in _PAST_PROXY), None)
    if program is not None:
        return _at_program(speaks, program)
    if speaks.speaks == "mutual TLS":
        return Outcome(verdict="OK")
    if speaks.speaks != "plain text":
        return Outcome(verdict="TLS")
    arrives = any(step.link == "listener" and step.side == traced.destination for step in traced.steps)
    inspected = arrives and port.protocol is Protocol.TCP and any("mutual TLS" in server.takes for server in found)
    return Outcome(verdict="PLAINTEXT", assumes=_CLIENT_FIRST if inspected else "")


def _at_program(speaks: Client, server: Server) -> Outcome:
    """No proxy receives the connection: the program itself does."""
    plain = speaks.speaks == "plain text"
    if not server.takes:
        what = "plain text" if plain else "TLS"
        assumes = f"{server.pod} takes {what} on port {server.port}"
        return Outcome(verdict="PLAINTEXT" if plain else "TLS", assumes=assumes)
    if plain and server.speaks_tls:
        reason = f"the program of {server.pod} speaks TLS on port {server.port}, and plain text arrives"
        fix = "a DestinationRule with tls.mode SIMPLE has the client's sidecar speak TLS"
        return Outcome(verdict="CONFLICT", reason=reason, fix=fix, cause=speaks.rule)
    if not plain and not server.speaks_tls:
        assumes = f"{server.pod} takes TLS on port {server.port}, which is named as one for plain text"
        return Outcome(verdict="TLS", assumes=assumes)
    return Outcome(verdict="PLAINTEXT" if plain else "TLS")


# -- one of several endpoints -----------------------------------------------------------------------------------------


def _to_one(world: World, pod: Workload, service: services.Service, port: services.Port, server: Server) -> Outcome:
    """How a connection to this endpoint fares."""
    if pod.proxy == "sidecar" and service.is_headless:
        traced = walk.trace(world, request(pod, service, port, server.address))
    elif pod.proxy == "sidecar":
        traced = walk.trace(_with_only(world, pod, server), request(pod, service, port))
    else:
        direct = msgspec.structs.replace(request(pod, service, port, server.address), port=server.port)
        traced = walk.trace(world, direct)
    speaks = clients.read_client(world, pod, service, port, traced)
    return _judge(traced, speaks, (server,), port)


def _with_only(world: World, pod: Workload, server: Server) -> World:
    """The world in which the pod's proxy knows no other endpoint than this one."""
    held = world.holdings(pod)
    narrowed = msgspec.structs.replace(held, endpoints=_Only(held.endpoints, server))

    def hold(asked: Workload) -> Holdings:
        return narrowed if asked.reference == pod.reference else world.holdings(asked)

    return world.held_by(hold)


class _Only(Mapping[str, Json]):
    """Assignments as if there were this endpoint alone."""

    def __init__(self, endpoints: Mapping[str, Json], server: Server) -> None:
        self._endpoints = endpoints
        self._server = server

    def __getitem__(self, name: str) -> Json:
        return _keep(self._endpoints[name], self._server)

    def __iter__(self) -> Iterator[str]:
        return iter(self._endpoints)

    def __len__(self) -> int:
        return len(self._endpoints)


def _keep(assignment: Json, server: Server) -> Json:
    """The assignment without other endpoints; one that does not have this endpoint stays as it is."""
    localities = []
    for locality in assignment.get("endpoints", ()):
        kept = [e for e in locality.get("lbEndpoints", ()) if _is_at(e, server)]
        if kept:
            localities.append({**locality, "lbEndpoints": kept, "priority": 0})
    return {**assignment, "endpoints": localities} if localities else assignment


def _is_at(endpoint: Json, server: Server) -> bool:
    socket = endpoint.get("endpoint", {}).get("address", {}).get("socketAddress", {})
    return bool(socket.get("address") == server.address and socket.get("portValue") == server.port)
