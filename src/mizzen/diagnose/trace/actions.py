"""What a route does: forward, redirect, or answer itself; with the changes it makes to the request.

In: the state of a request whose route is chosen. Out: the answer. A split by weights is walked along every cluster.
"""

import re
from collections.abc import Iterator

import msgspec
import re2

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import alpn, branches, matchers, upstream, virtual_hosts
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.state import State
from mizzen.diagnose.trace.upstream import Policy
from mizzen.diagnose.trace.verdict import Answer

_REDIRECTS = {
    "MOVED_PERMANENTLY": 301,
    "FOUND": 302,
    "SEE_OTHER": 303,
    "TEMPORARY_REDIRECT": 307,
    "PERMANENT_REDIRECT": 308,
}
_NOT_FOUND = {"SERVICE_UNAVAILABLE": 503, "NOT_FOUND": 404, "INTERNAL_SERVER_ERROR": 500}
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_OF_REQUEST = re.compile(r"%REQ\((?P<name>[^)?]+)(?:\?(?P<other>[^)]*))?\)%")
_UPSTREAM_RETRIES = 1
"""Envoy's number of retries where a policy says none."""


def perform(state: State, route: Json) -> Answer:
    """The answer of a route's action."""
    if "redirect" in route:
        return _redirect(state, route)
    if "directResponse" in route:
        return _direct_response(state, route)
    return _forward(state, route)


# -- answers of the proxy itself --------------------------------------------------------------------------------------


def _redirect(state: State, route: Json) -> Answer:
    action = dump.message(route, "redirect")
    _change_response(state, route, {})
    message = state.message
    port = dump.number(action, "port_redirect")
    scheme = dump.text(action, "scheme_redirect") or ("https" if action.get("httpsRedirect") else message.scheme)
    host = dump.text(action, "host_redirect") or _own_host(message, scheme, port)
    path = _redirected_path(message, dump.text(action, "path_redirect")) or _rewritten_path(message, route, action)
    if action.get("stripQuery") is True:
        path = path.partition("?")[0]
    target = f"{scheme}://{host}{f':{port}' if port else ''}{path}"
    status = _REDIRECTS.get(dump.text(action, "response_code") or "MOVED_PERMANENTLY", 301)
    state.hop.journal.note(state.hop.side, "route", f"redirect {status}", ("location", target))
    return Answer(
        outcome="redirected",
        status=status,
        details="direct_response",
        side=state.hop.side,
        destination=target,
        about=("redirect",),
    )


def _own_host(message: Message, scheme: str, port: int) -> str:
    """The request's host in a redirect: without its port where another is given, and without the default port of a
    scheme that is left."""
    left = scheme != message.scheme and message.authority.endswith(_DEFAULT_PORTS.get(message.scheme, " "))
    return virtual_hosts.strip_port(message.authority) if port or left else message.authority


def _redirected_path(message: Message, path: str) -> str:
    """A path written out, which keeps the query of the request unless it has one of its own."""
    return path + "".join(message.path.partition("?")[1:]) if path and "?" not in path else path


def _direct_response(state: State, route: Json) -> Answer:
    action = dump.message(route, "direct_response")
    _change_response(state, route, {})
    status = dump.number(action, "status")
    hop = state.hop
    hop.journal.note(
        hop.side, "route", f"direct response {status}", ("body", dump.text(action, "body", "inline_string"))
    )
    blocked = dump.text(route, "name") == "block_all"
    return Answer(
        outcome="failed" if blocked else "responded",
        status=status,
        details="direct_response",
        side=hop.side,
        link="route" if blocked else "",
        reason=f"{hop.side} may call known hosts only, and {state.message.authority} is none" if blocked else "",
        about=("unknown host", state.message.authority) if blocked else ("direct response",),
    )


# -- forwarding -------------------------------------------------------------------------------------------------------


def _forward(state: State, route: Json) -> Answer:
    action = dump.message(route, "route")
    policy = _policy(state, action)
    weighted = [c for c in dump.items(action, "weighted_clusters", "clusters") if dump.number(c, "weight")]
    for mirror in dump.items(action, "request_mirror_policies"):
        state.hop.journal.note(state.hop.side, "route", f"mirrored to {dump.text(mirror, 'cluster')}")
    if not weighted:
        name = dump.text(action, "cluster") or state.message.header(dump.text(action, "cluster_header")) or ""
        return _send(state, route, {}, name, policy)
    shares = tuple((dump.text(c, "name"), dump.number(c, "weight")) for c in weighted)
    state.hop.journal.shares = shares
    if len(weighted) == 1:
        return _send(state, route, weighted[0], shares[0][0], policy)
    ways = []
    for entry, (name, weight) in zip(weighted, shares, strict=True):
        journal = state.hop.journal.branch()
        own = state.on(state.hop.with_journal(journal), state.selected)
        answer = _send(own, route, entry, name, policy)
        ways.append(branches.Way(label=name, weight=weight, answer=answer, journal=journal))
    return branches.settle(state.hop.journal, "weights", ways)


def _send(state: State, route: Json, entry: Json, name: str, policy: Policy) -> Answer:
    action = dump.message(route, "route")
    message = changed(state, route, entry)
    message = _rewritten(message, route, action, entry)
    if message != state.message:
        state.hop.journal.note(state.hop.side, "route", "the request is changed", *_changes(state.message, message))
    words = alpn.words(state, entry, state.hop.held.clusters.get(name, {}), http2=message.http2)
    answer = upstream.send(state.hop, name, message, msgspec.structs.replace(policy, protocols=words))
    _change_response(state, route, entry)
    return answer


def _changes(before: Message, after: Message) -> Iterator[tuple[str, str]]:
    if before.path != after.path:
        yield "path", f"{before.path} → {after.path}"
    if before.authority != after.authority:
        yield "Host", f"{before.authority} → {after.authority}"
    old, new = dict(before.headers), dict(after.headers)
    for name in sorted({**old, **new}):
        if old.get(name) != new.get(name):
            yield f"header {name}", new.get(name, "removed")


def _policy(state: State, action: Json) -> Policy:
    retry = dump.message(action, "retry_policy")
    on = tuple(word.strip() for word in dump.text(retry, "retry_on").split(",") if word.strip())
    stated = dump.field(retry, "num_retries")
    statuses = retry.get("retriableStatusCodes")
    timeout = seconds(dump.text(action, "timeout"), default=15.0)
    own = state.message.header("x-envoy-upstream-rq-timeout-ms")
    return Policy(
        timeout=float(own) / 1000 if own and own.isdigit() else timeout,
        per_try_timeout=seconds(dump.text(retry, "per_try_timeout")),
        retry_on=on,
        retries=(int(stated) if stated is not None else _UPSTREAM_RETRIES) if on else 0,
        statuses=tuple(int(s) for s in statuses) if isinstance(statuses, list) else (),
        not_found=_NOT_FOUND.get(dump.text(action, "cluster_not_found_response_code"), 503),
    )


def seconds(text: str, default: float = 0.0) -> float:
    """A protobuf duration as JSON; `default` where there is none."""
    return float(text[:-1]) if text.endswith("s") else default


def facts(route: Json) -> Iterator[tuple[str, str]]:
    """What is in force on a route, in few words."""
    action = dump.message(route, "route")
    if action:
        timeout = seconds(dump.text(action, "timeout"), default=15.0)
        yield "timeout", f"{timeout:g}s" if timeout else "none"
        retry = dump.message(action, "retry_policy")
        if dump.text(retry, "retry_on"):
            count = dump.field(retry, "num_retries")
            yield "retries", f"{_UPSTREAM_RETRIES if count is None else count} on {dump.text(retry, 'retry_on')}"
    for entry in dump.items(action, "weighted_clusters", "clusters"):
        yield "weight", f"{dump.number(entry, 'weight')} {dump.text(entry, 'name')}"


# -- changes to the request -------------------------------------------------------------------------------------------


def changed(state: State, route: Json, entry: Json) -> Message:
    """The message with the header changes of cluster, route, virtual host and configuration, in Envoy's order."""
    message = state.message
    for level in _levels(state, route, entry):
        for name in dump.texts(level, "request_headers_to_remove"):
            message = message.without_header(name)
        for option in dump.items(level, "request_headers_to_add"):
            message = add_header(message, option)
    return message


def _change_response(state: State, route: Json, entry: Json) -> None:
    """Note the changes that this proxy makes to headers of the response, after those of proxies behind it."""
    told = state.hop.journal.response
    for level in _levels(state, route, entry):
        for name in dump.texts(level, "response_headers_to_remove"):
            told[name.lower()] = None
        for option in dump.items(level, "response_headers_to_add"):
            known = tuple((name, value) for name, value in told.items() if value is not None)
            changed_to = add_header(Message(headers=known), option)
            name = dump.text(option, "header", "key").lower()
            told[name] = changed_to.header(name)


def _levels(state: State, route: Json, entry: Json) -> list[Json]:
    """Who changes headers, in Envoy's order."""
    levels = [entry, route, state.host, state.configuration]
    return levels[::-1] if state.configuration.get("mostSpecificHeaderMutationsWins") is True else levels


def add_header(message: Message, option: Json) -> Message:
    """HeaderValueOption."""
    name = dump.text(option, "header", "key")
    value = _formatted(message, dump.text(option, "header", "value"))
    action = dump.text(option, "append_action") or "APPEND_IF_EXISTS_OR_ADD"
    if action == "APPEND_IF_EXISTS_OR_ADD" and option.get("append") is False:
        action = "OVERWRITE_IF_EXISTS_OR_ADD"
    present = message.header(name) is not None
    if (action == "ADD_IF_ABSENT" and present) or (action == "OVERWRITE_IF_EXISTS" and not present):
        return message
    return message.with_header(name, value, append=action == "APPEND_IF_EXISTS_OR_ADD")


def _formatted(message: Message, value: str) -> str:
    """The value with the request's headers that it asks for; what else it asks for only a real request has."""

    def of_request(asked: re.Match[str]) -> str:
        found = message.header(asked["name"])
        if found is None and asked["other"]:
            found = message.header(asked["other"])
        return "-" if found is None else found

    return _OF_REQUEST.sub(of_request, value).replace("%%", "%")


def _rewritten(message: Message, route: Json, action: Json, entry: Json) -> Message:
    path = _rewritten_path(message, route, action)
    host = dump.text(entry, "host_rewrite_literal") or dump.text(action, "host_rewrite_literal")
    if not host and dump.text(action, "host_rewrite_header"):
        host = message.header(dump.text(action, "host_rewrite_header")) or ""
    if host and action.get("appendXForwardedHost") is True:
        message = message.with_header("x-forwarded-host", message.authority, append=True)
    return msgspec.structs.replace(message, path=path, authority=host or message.authority)


def _rewritten_path(message: Message, route: Json, action: Json) -> str:
    """The path after a prefix or regex rewrite; the query stays."""
    path, mark, query = message.path.partition("?")
    prefix = dump.text(action, "prefix_rewrite")
    if prefix:
        return prefix + path[len(_matched(dump.message(route, "match"), path)) :] + mark + query
    expression = dump.text(action, "regex_rewrite", "pattern", "regex")
    if expression:
        substitution = dump.text(action, "regex_rewrite", "substitution")
        try:
            return str(re2.sub(expression, substitution.replace("\\0", "\\g<0>"), path)) + mark + query
        except (re2.error, re.error):
            return message.path
    return message.path


def _matched(match: Json, path: str) -> str:
    """The part of the path that a prefix rewrite replaces."""
    for field in ("prefix", "path_separated_prefix"):
        prefix = dump.text(match, field)
        if prefix and path.lower().startswith(prefix.lower()):
            return path[: len(prefix)]
    expression = dump.text(match, "safe_regex", "regex")
    return path if dump.text(match, "path") or matchers.full_match(expression or "^$", path) else ""
