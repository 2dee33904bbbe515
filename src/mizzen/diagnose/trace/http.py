"""One HTTP request at one proxy: virtual host, route, HTTP filters, and the route's action.

In: a hop, the connection manager's configuration and the message. Out: the answer. Filters run in their order before
the action; one that changes what routes match (a token's claims) has the route chosen anew, as Envoy does.
"""

from typing import Any

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.authorization.paths import Normalization, SeenPath, normalize_path
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import actions, branches, http_filters, routes, virtual_hosts
from mizzen.diagnose.trace.hop import Hop
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.state import State
from mizzen.diagnose.trace.verdict import Answer, Visit, join_flags


def serve(hop: Hop, manager: Json, message: Message) -> Answer:
    """What becomes of the request."""
    name, configuration = _configuration(hop, manager)
    seen = _seen_path(manager, message)
    if seen.fate != "seen":
        return _unseen(hop, seen)
    message = _normalized(manager, msgspec.structs.replace(message, path=seen.text))
    client, message = _client(hop, manager, _trusted(manager, message))
    hop = msgspec.structs.replace(hop, peer=msgspec.structs.replace(hop.peer, client=client))
    refused = _upgrade(hop, manager, message)
    if refused is not None:
        return refused
    if configuration is None:
        hop.journal.note(hop.side, "route", f"route configuration {name} is not there", state="fails")
        return _not_found(hop, "route_configuration_not_found", f"{hop.side} has no route configuration {name}", name)
    state = State(hop=hop, message=message, configuration=configuration, manager=manager)
    answer = _as_grpc(hop, message, _route_and_filter(state, name))
    if manager.get("serverHeaderTransformation", "OVERWRITE") == "OVERWRITE":
        hop.journal.response.pop("server", None)  # The proxy's own name takes its place, whatever routes say.
    hop.journal.first_log = _logged(hop, answer)
    return answer


_OF_INSIDERS = (
    "x-envoy-internal",
    "x-envoy-retriable-status-codes",
    "x-envoy-retry-on",
    "x-envoy-retry-grpc-on",
    "x-envoy-max-retries",
    "x-envoy-upstream-alt-stat-name",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-hedge-on-per-try-timeout",
)


def _trusted(manager: Json, message: Message) -> Message:
    """Without the headers that only internal addresses may send, of which there are none unless somebody says so."""
    if "internalAddressConfig" in manager:
        return message
    kept = tuple(pair for pair in message.headers if pair[0] not in _OF_INSIDERS)
    return msgspec.structs.replace(message, headers=kept)


def _as_grpc(hop: Hop, message: Message, answer: Answer) -> Answer:
    """A proxy's own answer to a gRPC call is a 200 with the status in a trailer."""
    is_grpc = (message.header("content-type") or "").startswith("application/grpc")
    if not is_grpc or answer.side != hop.side or answer.kind != "response" or answer.status in (0, 200):
        return answer
    number = _GRPC_STATUSES.get(answer.status, 2)
    hop.journal.note(hop.side, "", f"HTTP {answer.status} is told as grpc-status {number}")
    return msgspec.structs.replace(answer, status=200)


_GRPC_STATUSES = {400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14}


def _client(hop: Hop, manager: Json, message: Message) -> tuple[str, Message]:
    """The client's address, and the request with what this proxy adds to `x-forwarded-for`."""
    listed = [a.strip() for a in (message.header("x-forwarded-for") or "").split(",") if a.strip()]
    back = dump.number(manager, "xff_num_trusted_hops")
    if manager.get("useRemoteAddress") is True:
        client = listed[-back] if 0 < back <= len(listed) else hop.peer.address
        return client, message.with_header("x-forwarded-for", ",".join((*listed, hop.peer.address)))
    return (listed[-back - 1] if back < len(listed) else hop.peer.address), message


def _logged(hop: Hop, answer: Answer) -> tuple[int, str, str]:
    """The line of this proxy's access log."""
    if answer.side == hop.side:
        return answer.status, answer.flag, answer.details
    return answer.status, answer.via, "via_upstream"


def _configuration(hop: Hop, manager: Json) -> tuple[str, Json | None]:
    inline = dump.message(manager, "route_config")
    if inline:
        return dump.text(inline, "name"), inline
    name = dump.text(manager, "rds", "route_config_name")
    return name, hop.held.routes.get(name)


def _normalized(manager: Json, message: Message) -> Message:
    """The request as the connection manager rewrites it before anything else looks at it."""
    if manager.get("stripAnyHostPort") is True or manager.get("stripMatchingHostPort") is True:
        message = msgspec.structs.replace(message, authority=virtual_hosts.strip_port(message.authority))
    return message


def _seen_path(manager: Json, message: Message) -> SeenPath:
    """The path as everything after the connection manager sees it."""
    if not message.path.startswith("/"):
        return SeenPath(message.path)
    escaped: Any = dump.text(manager, "path_with_escaped_slashes_action")
    how = Normalization(
        normalize=manager.get("normalizePath") is True,
        merge_slashes=manager.get("mergeSlashes") is True,
        escaped_slashes=escaped if escaped in _ESCAPED_SLASHES else "KEEP_UNCHANGED",
    )
    return normalize_path(message.path, how)


_ESCAPED_SLASHES = ("REJECT_REQUEST", "UNESCAPE_AND_FORWARD", "UNESCAPE_AND_REDIRECT")


def _unseen(hop: Hop, seen: SeenPath) -> Answer:
    """A path that no route sees: it is refused, or its caller is sent to the path without escaped slashes."""
    redirected = seen.fate == "redirected-path"
    reason = f"the path has escaped slashes; without them it is {seen.text}" if redirected else "the path is malformed"
    hop.journal.note(hop.side, "route", reason, state="ok" if redirected else "fails")
    answer = Answer(
        outcome="redirected" if redirected else "denied",
        status=307 if redirected else 400,
        details="path_normalization_failed",
        side=hop.side,
        link="" if redirected else "route",
        reason="" if redirected else reason,
        destination=seen.text if redirected else "",
    )
    hop.journal.first_log = _logged(hop, answer)
    return answer


def _upgrade(hop: Hop, manager: Json, message: Message) -> Answer | None:
    wanted = (message.header("upgrade") or "").lower()
    if not wanted or "upgrade" not in (message.header("connection") or "").lower():
        return None
    allowed = [dump.text(each, "upgrade_type").lower() for each in dump.items(manager, "upgrade_configs")]
    if wanted in allowed:
        return None
    hop.journal.note(hop.side, "filter", f"upgrade to {wanted} is not allowed", state="fails")
    return Answer(
        outcome="denied",
        status=403,
        details="upgrade_failed",
        side=hop.side,
        link="listener",
        reason=f"{hop.side} allows no upgrade to {wanted}",
    )


def _not_found(hop: Hop, details: str, reason: str, *about: str) -> Answer:
    return Answer(
        status=404, flag="NR", details=details, side=hop.side, link="route", reason=reason, about=("route", *about)
    )


def _route_and_filter(state: State, name: str) -> Answer:
    hop = state.hop
    domains = hop.world.read_from(state.configuration, virtual_hosts.by_domain)
    host = virtual_hosts.choose(state.configuration, domains, state.message.authority)
    if host is None:
        known = tuple(virtual_hosts.describe(h) for h in dump.items(state.configuration, "virtual_hosts"))
        reason = f"no virtual host of route configuration {name} takes {state.message.authority!r}"
        if "vhds" in state.configuration:
            hop.journal.hang_on(f"what the control plane answers {hop.side}, which asks for {state.message.authority}")
        hop.journal.note(hop.side, "route", reason, state="fails", passed_over=known[:10])
        stopped = http_filters.run(state)
        return stopped or _not_found(hop, "route_not_found", reason, name, state.message.authority)
    state.host = host.host
    hop.journal.note(
        hop.side,
        "route",
        f"virtual host {dump.text(host.host, 'name')}",
        ("route configuration", name),
        ("Host", state.message.authority),
        ("matches", host.domain),
        *_asked_for(state, name),
    )
    state.select()
    if _wants_tls(state):
        return _to_https(state)
    stopped = http_filters.run(state)
    if stopped is not None:
        _note_route(state, only_if_found=True)
        return stopped
    return _act(state, name)


def _asked_for(state: State, name: str) -> tuple[tuple[str, str], ...]:
    """Whether a proxy on demand holds the virtual host already."""
    held = state.hop.held.on_demand
    if held is None or "vhds" not in state.configuration:
        return ()
    is_held = f"{name}/{state.message.authority.lower()}" in held
    return (("on demand", "held" if is_held else "not held yet: the request waits until it was asked for"),)


def _wants_tls(state: State) -> bool:
    wanted = dump.text(state.host, "require_tls")
    return wanted == "ALL" and not state.hop.wire.is_tls and state.message.scheme != "https"


def _to_https(state: State) -> Answer:
    target = f"https://{virtual_hosts.strip_port(state.message.authority)}{state.message.path}"
    state.hop.journal.note(state.hop.side, "route", "the virtual host wants TLS", ("location", target))
    return Answer(outcome="redirected", status=301, details="direct_response", side=state.hop.side, destination=target)


def _note_route(state: State, *, only_if_found: bool = False) -> None:
    selected = state.selected
    hop = state.hop
    if selected.route is None:
        if not only_if_found:
            hop.journal.note(hop.side, "route", "no route matches", state="fails", passed_over=selected.passed_over)
        return
    name = dump.text(selected.route, "name")
    hop.journal.visits.append(Visit(side=hop.side, kind="route", name=name, resource=selected.route))
    hop.journal.note(
        hop.side,
        "route",
        f"route {routes.describe(selected.route, selected.index)}",
        *actions.facts(selected.route),
        passed_over=selected.passed_over,
        origin=hop.world.origin(selected.route),
    )


def _act(state: State, name: str) -> Answer:
    """The action of the route; routes that only a share of requests takes are ways of their own."""
    partial = state.selected.partial
    if not partial:
        return _follow(state, name)
    ways, left = [], 1.0
    for route, part in partial:
        ways.append(_way(state, name, routes.describe(route, 0), left * part, route))
        left *= 1 - part
    ways.append(_way(state, name, "the routes after it", left, state.selected.route))
    return branches.settle(state.hop.journal, "the share of a route", ways)


def _way(state: State, name: str, label: str, weight: float, route: Json | None) -> branches.Way:
    journal = state.hop.journal.branch()
    selected = msgspec.structs.replace(state.selected, route=route, partial=())
    own = state.on(state.hop.with_journal(journal), selected)
    return branches.Way(label=label, weight=weight, answer=_follow(own, name), journal=journal)


def _follow(state: State, name: str) -> Answer:
    _note_route(state)
    route = state.selected.route
    if route is None:
        reason = f"no route of virtual host {dump.text(state.host, 'name')} matches {state.message.path!r}"
        has_routes = ("match",) if state.host.get("routes") else ()
        missing = _not_found(state.hop, "route_not_found", reason, name, state.message.authority, *has_routes)
        makers = (state.hop.world.origin(each) for each in dump.items(state.host, "routes"))
        return msgspec.structs.replace(missing, cause=next((maker for maker in makers if maker is not None), None))
    answer = actions.perform(state, route)
    if not state.flags:
        return answer
    passes_on = answer.side != state.hop.side
    own = answer.flag if passes_on and answer.outcome != "delivered" else join_flags(answer.flag, *state.flags)
    via = join_flags(answer.via, *state.flags) if passes_on else answer.via
    return msgspec.structs.replace(answer, flag=own, via=via)
