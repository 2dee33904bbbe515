"""From a cluster to the next hop and back: endpoints, circuit breaker, TLS, retries, and how a failure looks here.

In: a hop, the cluster's name, and for HTTP the message with the route's policy. Out: the answer as this proxy gives it
to its own caller: what the next hop answered, or a local reply that tells how the connection failed.
"""

from collections.abc import Iterator

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import branches, clusters, endpoints, tls
from mizzen.diagnose.trace import names as resolver
from mizzen.diagnose.trace.endpoints import Choice, Host
from mizzen.diagnose.trace.hop import Hop
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.verdict import NO_FLAG, Answer, Link, Visit, join_flags
from mizzen.diagnose.trace.wire import Wire
from mizzen.model import names

_WALKED = 8
_VOLATILE = ("pod-template-hash", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index")


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a route says of the call."""

    timeout: float = 0.0
    per_try_timeout: float = 0.0
    retry_on: tuple[str, ...] = ()
    retries: int = 0
    statuses: tuple[int, ...] = ()
    not_found: int = 503
    protocols: tuple[str, ...] = ()
    """ALPN words of this call, in place of the cluster's."""


def connect(hop: Hop, name: str) -> Answer:
    """A connection that `tcp_proxy` passes on."""
    answer = _reach(hop, name, None, Policy())
    if answer.kind == "tls" and hop.wire.hello is not None:
        # The handshake is the client's own; here bytes pass, and perhaps end in a reset.
        hop.journal.first_log = (0, "UR" if answer.flag == "NR" else NO_FLAG, "")
        return answer
    if answer.kind in ("refused", "timeout", "tls"):
        answer = msgspec.structs.replace(
            answer, kind="closed", status=0, flag="UF,URX", details="", side=hop.side, outcome="failed"
        )
    elif answer.kind == "closed" and answer.side != hop.side:
        # What was sent and is never read makes of the close a reset; what was read and denied ends in a plain close.
        hop.journal.first_log = (0, NO_FLAG if answer.outcome == "denied" else "UR", "")
        return answer
    own = (answer.flag, answer.details) if answer.side == hop.side else (NO_FLAG, "")
    hop.journal.first_log = (0, *own)
    return answer


def send(hop: Hop, name: str, message: Message, policy: Policy) -> Answer:
    """A request that the router passes on."""
    answer = _reach(hop, name, message, policy)
    if answer.kind != "response":
        answer = _local_reply(hop, answer, policy)
    elif answer.side != hop.side:
        via = "URX" if _is_retried(policy, answer.status) else NO_FLAG
        own = join_flags(answer.flag, via) if answer.outcome == "delivered" else answer.flag
        answer = msgspec.structs.replace(answer, via=via, flag=own)
    return _timed(hop, answer, policy)


def _timed(hop: Hop, answer: Answer, policy: Policy) -> Answer:
    """A program that takes longer than the route allows."""
    takes = hop.request.takes
    if answer.outcome != "delivered" or not takes:
        return answer
    is_retried = policy.retries > 0 and bool({"5xx", "gateway-error", "reset"} & set(policy.retry_on))
    tries = policy.per_try_timeout * (1 + policy.retries * is_retried)
    if policy.per_try_timeout and takes > policy.per_try_timeout and (not policy.timeout or tries < policy.timeout):
        details, limit = "upstream_per_try_timeout", policy.per_try_timeout
    elif policy.timeout and takes > policy.timeout:
        details, limit = "response_timeout", policy.timeout
    else:
        return answer
    reason = f"the program takes {takes:g}s and the route allows {limit:g}s"
    hop.journal.note(hop.side, "route", "timeout", ("why", reason), state="fails")
    return Answer(
        status=504,
        flag="UT" if details == "response_timeout" else join_flags("UT", "URX" if is_retried else ""),
        details=details,
        side=hop.side,
        link="route",
        reason=reason,
        about=("timeout",),
        destination=answer.destination,
        after=limit if details == "response_timeout" else tries,
    )


def _local_reply(hop: Hop, failed: Answer, policy: Policy) -> Answer:
    """What Envoy tells its caller of a connection that failed."""
    retried_on = {"reset", "5xx", "gateway-error"}
    if failed.kind == "closed" and failed.connected:
        flag, reset = "UC", "connection_termination"
    else:
        flag, reset = "UF", "connection_timeout" if failed.kind == "timeout" else "remote_connection_failure"
        retried_on |= {"connect-failure", "reset-before-request"}
    retried = policy.retries > 0 and bool(retried_on & set(policy.retry_on))
    inner = f"{reset}|{failed.transport}" if failed.transport else reset
    details = f"upstream_reset_before_response_started{{{inner}}}"
    hop.journal.note(
        hop.side,
        "connection",
        "the connection fails",
        ("why", failed.reason),
        ("retried", f"{policy.retries} times" if retried else "no"),
        state="fails",
    )
    return msgspec.structs.replace(
        failed,
        kind="response",
        outcome="failed",
        status=503,
        flag=join_flags(flag, "URX" if retried else ""),
        details=details,
        side=hop.side,
    )


def _is_retried(policy: Policy, status: int) -> bool:
    if not policy.retries or status < 400:
        return False
    on = set(policy.retry_on)
    if status >= 500 and "5xx" in on:
        return True
    if status in (502, 503, 504) and "gateway-error" in on:
        return True
    return "retriable-status-codes" in on and status in policy.statuses


# -- the cluster ------------------------------------------------------------------------------------------------------


def _reach(hop: Hop, name: str, message: Message | None, policy: Policy) -> Answer:
    hop.journal.visits.append(Visit(side=hop.side, kind="cluster", name=name))
    cluster = hop.held.clusters.get(name)
    if cluster is None:
        hop.journal.note(hop.side, "cluster", f"cluster {name} does not exist", state="fails")
        reason = f"cluster {name} does not exist at {hop.side}"
        return _fail(hop, "NC", "cluster_not_found", policy.not_found, "cluster", reason, name, message)
    kind = clusters.discovery(cluster)
    hop.journal.note(
        hop.side,
        "cluster",
        f"cluster {name}",
        ("discovery", kind),
        ("balancing", dump.text(cluster, "lb_policy")),
        ("limits", clusters.limits(cluster)),
        origin=hop.world.origin(cluster),
    )
    if message is not None and _overflows(hop, cluster):
        reason = f"the circuit breaker of {name} lets {clusters.capacity(cluster)} requests through at once"
        details = "upstream_reset_before_response_started{overflow}"
        return _fail(hop, "UO", details, 503, "cluster", reason, name, message)
    if kind == "ORIGINAL_DST":
        return _original(hop, cluster, message, policy)
    if "dynamic_forward_proxy" in kind or "DynamicForwardProxy" in kind:
        return _by_name(hop, cluster, message, policy)
    choice = endpoints.choose(cluster, hop.held.assignment(cluster))
    if kind.endswith("_DNS"):
        there = tuple(h for h in choice.hosts if not h.name or resolver.resolve(hop.world, None, h.name).exists)
        choice = msgspec.structs.replace(choice, hosts=there)
    if not choice.hosts:
        return _no_host(hop, name, choice, message)
    if choice.dropped >= 1.0:
        return _fail(hop, "UDO", "unconditional_drop_overload", 503, "endpoint", "all is dropped", name, message)
    if choice.dropped:
        hop.journal.hang_on(f"the endpoints' drop rate of {100 * choice.dropped:.3g} %")
    return _hosts(hop, cluster, choice, message, policy)


def _overflows(hop: Hop, cluster: Json) -> bool:
    """Whether the request is one too many: most likely, where most of those at once are."""
    room, asked = clusters.capacity(cluster), hop.request.at_once
    if asked <= room:
        return False
    if room:
        hop.journal.hang_on(f"which of {asked} requests at once are the {room} that the circuit breaker lets through")
    return (asked - room) * 2 > asked


def _fail(
    hop: Hop, flag: str, details: str, status: int, link: Link, reason: str, name: str, message: Message | None
) -> Answer:
    is_http = message is not None
    return Answer(
        kind="response" if is_http else "closed",
        status=status if is_http else 0,
        flag=flag,
        details=details if is_http else "",
        side=hop.side,
        link=link,
        reason=reason,
        about=("cluster", name, hop.side),
    )


def _no_host(hop: Hop, name: str, choice: Choice, message: Message | None) -> Answer:
    if name == names.BLACK_HOLE:
        reason = f"{hop.side} has no listener for {hop.wire.address or hop.request.host}:{hop.wire.port}"
        hop.journal.note(hop.side, "listener", "what is unknown is not let out", ("why", reason), state="fails")
        return _fail(hop, "UH", "no_healthy_upstream", 503, "listener", reason, name, message)
    reason = f"cluster {name} has no endpoint"
    if any(host.name for host in choice.all):
        reason = f"none of the names behind {name} exists"
    elif choice.all:
        reason = f"none of the {len(choice.all)} endpoints of {name} is healthy"
    listed = tuple(f"{host} {host.health or 'HEALTHY'}" for host in choice.all)
    hop.journal.note(hop.side, "endpoint", "no healthy upstream", ("why", reason), state="fails", passed_over=listed)
    return _fail(hop, "UH", "no_healthy_upstream", 503, "endpoint", reason, name, message)


def _original(hop: Hop, cluster: Json, message: Message | None, policy: Policy) -> Answer:
    """Where the connection wanted to go before it was captured."""
    override = dump.number(cluster, "original_dst_lb_config", "upstream_port_override")
    host = Host(address=hop.wire.address, port=override or hop.wire.port)
    return _go(hop, cluster, host, message, policy)


def _by_name(hop: Hop, cluster: Json, message: Message | None, policy: Policy) -> Answer:
    """Each name is resolved by itself."""
    authority = message.authority if message is not None else hop.wire.hello.server_name if hop.wire.hello else ""
    name, _, port = authority.partition(":")
    host = Host(address="", name=name, port=int(port) if port.isdigit() else hop.wire.port)
    return _go(hop, cluster, host, message, policy)


# -- its hosts --------------------------------------------------------------------------------------------------------


def _hosts(hop: Hop, cluster: Json, choice: Choice, message: Message | None, policy: Policy) -> Answer:
    """Every kind of host is tried once: hosts that differ in nothing that decides come to the same."""
    found = list(_unlike(hop, choice))
    unlike = found[:_WALKED]
    if len(found) > _WALKED:
        hop.journal.hang_on(f"which of {len(found)} unlike endpoints is chosen, of which {_WALKED} were looked at")
    listed = ", ".join(f"{host} {host.health or 'HEALTHY'}" for host in choice.all[:6])
    more = f" and {len(choice.all) - 6} more" if len(choice.all) > 6 else ""
    hop.journal.note(
        hop.side,
        "endpoint",
        f"{len(choice.hosts)} of {len(choice.all)} endpoints may be chosen",
        ("endpoints", listed + more),
        ("panic", "in panic: unhealthy ones are chosen too" if choice.in_panic else ""),
        state="unsure" if choice.in_panic else "ok",
    )
    if choice.in_panic:
        hop.journal.hang_on(f"the health of {', '.join(str(h) for h in choice.hosts[:4])}")
    if len(unlike) == 1:
        return _go(hop, cluster, unlike[0][0], message, policy)
    ways = []
    for host, weight in unlike:
        journal = hop.journal.branch()
        answer = _go(hop.with_journal(journal), cluster, host, message, policy)
        ways.append(branches.Way(label=str(host), weight=weight, answer=answer, journal=journal))
    return branches.settle(hop.journal, "which endpoint is chosen", _after_retries(ways, policy))


def _after_retries(ways: list[branches.Way], policy: Policy) -> list[branches.Way]:
    """A request whose connection fails goes to another host, as long as there are tries left."""
    if not policy.retries or "connect-failure" not in policy.retry_on:
        return ways
    good = [way for way in ways if way.answer.kind == "response" or way.answer.connected]
    return good or ways


def _unlike(hop: Hop, choice: Choice) -> Iterator[tuple[Host, float]]:
    groups: dict[object, tuple[Host, float]] = {}
    for host in choice.hosts:
        key = _likeness(hop, host)
        first, weight = groups.get(key, (host, 0.0))
        groups[key] = (first, weight + host.weight)
    yield from groups.values()


def _likeness(hop: Hop, host: Host) -> object:
    pod = hop.world.at(host.address)
    label = endpoints.socket_labels(host.metadata)
    if pod is None:
        return (host.address or host.name, host.port, label)
    labels = tuple(sorted((k, v) for k, v in pod.labels.items() if k not in _VOLATILE))
    return (pod.namespace, labels, pod.account, pod.proxy, pod.ports, pod.capture, host.port, label)


def _go(hop: Hop, cluster: Json, host: Host, message: Message | None, policy: Policy) -> Answer:
    """To one host: the TLS that its metadata asks for, and the next hop."""
    authority = message.authority if message is not None else ""
    sending = tls.client(hop.world, hop.pod, hop.held, cluster, host.metadata or {}, authority)
    hello = sending.hello
    if sending.missing:
        reason = f"{hop.side} does not have the secret {sending.missing!r}"
        hop.journal.note(hop.side, "secret", "secret missing", ("why", reason), state="fails")
        return Answer(
            kind="tls",
            side="network",
            link="secret",
            reason=reason,
            transport=tls.NO_SECRET,
            about=("secret", sending.missing),
            connected=False,
        )
    if hello is not None and policy.protocols and hello.protocols:
        hello = msgspec.structs.replace(hello, protocols=policy.protocols)
    if hello is None and hop.wire.hello is not None:
        hello = hop.wire.hello  # What nobody opened here travels on as it is.
    speaks = clusters.speaks(cluster)
    if message is not None and speaks != "downstream":
        message = msgspec.structs.replace(message, http2=speaks == "http/2")
    if not hop.is_inbound or not clusters.is_inbound(dump.text(cluster, "name")):
        _note_transport(hop, host, sending, cluster)
    wire = Wire(
        source=hop.pod.addresses[0] if hop.pod.addresses else "",
        address=host.address or host.name,
        port=host.port,
        hello=hello,
        message=message if message is not None else hop.wire.message,
        depth=hop.wire.depth + 1,
    )
    return _next(hop, cluster, wire)


def _next(hop: Hop, cluster: Json, wire: Wire) -> Answer:
    """The program behind this very proxy, or the network."""
    name = dump.text(cluster, "name")
    local = wire.address in (*hop.pod.addresses, "127.0.0.1", "::1")
    if hop.is_inbound and (clusters.is_inbound(name) or local):
        return hop.arrive(msgspec.structs.replace(wire, source="127.0.0.6"), hop.journal)
    return hop.arrive(wire, hop.journal)


def _note_transport(hop: Hop, host: Host, sending: tls.Client, cluster: Json) -> None:
    hello = sending.hello
    passes = hello is None and hop.wire.hello is not None
    title = "TLS passes through" if passes else "plain text" if hello is None else "TLS"
    hop.journal.note(
        hop.side,
        "tls",
        f"to {host}: {title}",
        ("by", sending.name or ("the cluster's transport socket" if hello is not None else "")),
        ("SNI", hello.server_name if hello is not None else ""),
        ("certificate", hello.certificate.identity if hello is not None and hello.certificate else ""),
        ("connect timeout", dump.text(cluster, "connect_timeout")),
    )
