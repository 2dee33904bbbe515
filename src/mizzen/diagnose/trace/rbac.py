"""Envoy's RBAC, over HTTP requests and over connections, as the filters of AuthorizationPolicies are made of.

In: an RBAC filter, and the request or connection with its peer. Out: the denial with the deciding rule, or None. For a
denial because nothing allowed it the nearest miss is told: the rule with the fewest conditions that failed, and those.
Shadow rules leave their verdict in metadata, which switches authorizers on.
"""

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import matchers
from mizzen.diagnose.trace.hop import Hop
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.state import State
from mizzen.diagnose.trace.verdict import NO_FLAG, Answer, Visit
from mizzen.diagnose.trace.wire import SOMEBODY, Peer

_HTTP_METADATA = "envoy.filters.http.rbac"
_PEER_PRINCIPAL = "io.istio.peer_principal"
_SHOWN = 3
_WEIGHTS = {"urlPath": 4, "uriTemplate": 4, "destinationPort": 2, "requestedServerName": 2}
"""What weighs more than other conditions: a rule about another path is farther away than one about another caller."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """What rules look at."""

    peer: Peer
    message: Message | None = None
    metadata: Mapping[str, Any] = {}
    presumed: bool | None = None
    """What conditions on the address of somebody outside come to, where it is not known."""


class Missed(NamedTuple):
    """How far a condition was from holding."""

    holds: bool
    failed: tuple[str, ...] = ()
    distance: int = 0
    """Conditions that fail, those that say what a rule is about counted more."""
    held: int = 0
    """Conditions that hold and say something."""


_HOLDS = Missed(True)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one set of rules says."""

    allowed: bool
    policy: str
    """The rule that matched; empty where none did."""
    nearest: tuple[str, ...] = ()
    """For none: the rules that came nearest with what they missed."""


def decide(rules: Json, caller: Caller) -> Verdict:
    """The verdict of RBAC rules."""
    action = dump.text(rules, "action") or "ALLOW"
    misses: list[tuple[int, int, str, tuple[str, ...]]] = []
    for name, policy in sorted(dump.message(rules, "policies").items()):
        judged = _policy(policy, caller)
        if judged.holds:
            return Verdict(allowed=action != "DENY", policy=name)
        misses.append((judged.distance, -judged.held, name, judged.failed))
    misses.sort()
    nearest = tuple(f"{name}: {'; '.join(failed)}" for _, _, name, failed in misses[:_SHOWN])
    return Verdict(allowed=action != "ALLOW", policy="", nearest=nearest)


def http(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    """The HTTP filter."""
    del name
    rbac = dump.message(own, "rbac") if own is not None else config
    caller = Caller(peer=state.hop.peer, message=state.message, metadata=state.metadata)
    _shadow(state.metadata, _HTTP_METADATA, rbac, caller)
    return _enforce(state.hop, rbac, caller, is_http=True)


def network(hop: Hop, config: Json) -> Answer | None:
    """The network filter; a connection that is denied is closed."""
    return _enforce(hop, config, Caller(peer=hop.peer), is_http=False)


def _shadow(metadata: dict[str, Any], key: str, config: Json, caller: Caller) -> None:
    if "shadowRules" not in config:
        return
    prefix = dump.text(config, "shadow_rules_stat_prefix")
    verdict = decide(dump.message(config, "shadow_rules"), caller)
    metadata[key] = {
        **metadata.get(key, {}),
        f"{prefix}shadow_engine_result": "allowed" if verdict.allowed else "denied",
        **({f"{prefix}shadow_effective_policy_id": verdict.policy} if verdict.policy else {}),
    }


def _enforce(hop: Hop, config: Json, caller: Caller, *, is_http: bool) -> Answer | None:
    if "rules" not in config:
        return None
    rules = dump.message(config, "rules")
    action = dump.text(rules, "action") or "ALLOW"
    verdict = decide(rules, caller)
    presumed = (decide(rules, msgspec.structs.replace(caller, presumed=each)).allowed for each in (True, False))
    if SOMEBODY in (caller.peer.address, caller.peer.client) and len(set(presumed)) > 1:
        hop.journal.hang_on("the address from which somebody outside calls")
    decided = verdict.policy or "no rule"
    if verdict.policy and action != "LOG":  # What only logs decides nothing.
        hop.journal.policy = verdict.policy
        hop.journal.visits.append(Visit(side=hop.side, kind="rule", name=verdict.policy))
    hop.journal.note(
        hop.side,
        "policy",
        f"authorization: {'allowed' if verdict.allowed else 'denied'} by {action} rules, {decided} matches",
        ("peer", caller.peer.identity or "unauthenticated"),
        *(("nearest miss", miss) for miss in (verdict.nearest if action == "ALLOW" else ())),
        state="ok" if verdict.allowed else "fails",
    )
    if verdict.allowed:
        return None
    reason = f"{verdict.policy} denies it" if verdict.policy else "no rule of the ALLOW policies matches"
    if verdict.nearest and not verdict.policy:
        reason += f"; the nearest: {verdict.nearest[0]}"
    names = tuple(dump.message(rules, "policies"))
    return Answer(
        kind="response" if is_http else "closed",
        outcome="denied",
        status=403 if is_http else 0,
        flag=NO_FLAG,
        details=f"rbac_access_denied_matched_policy[{verdict.policy or 'none'}]",
        side=hop.side,
        link="policy",
        reason=reason,
        about=("policy", verdict.policy, *names[:1]),
    )


# -- one policy -------------------------------------------------------------------------------------------------------


def _policy(policy: Json, caller: Caller) -> Missed:
    permissions = [_permission(p, caller) for p in dump.items(policy, "permissions")]
    principals = [_principal(p, caller) for p in dump.items(policy, "principals")]
    return _all([_any(permissions), _any(principals)])


def _all(judged: list[Missed]) -> Missed:
    failed = tuple(text for each in judged if not each.holds for text in each.failed)
    distance, held = sum(each.distance for each in judged), sum(each.held for each in judged)
    return Missed(all(each.holds for each in judged), failed, distance, held)


def _any(judged: list[Missed]) -> Missed:
    """Of alternatives that all fail, what the nearest misses; of equals all, as one text."""
    holding = [each for each in judged if each.holds]
    if holding:
        return Missed(True, held=max(each.held for each in holding))
    if not judged:
        return Missed(False, ("nothing is listed",), 1)
    nearest = min(judged, key=lambda each: (each.distance, -each.held))
    near = [each.failed for each in judged if each.distance == nearest.distance]
    if len(nearest.failed) == 1 and len(near) > 1:
        failed = (" or ".join(dict.fromkeys(each[0] for each in near[:_SHOWN])),)
        return Missed(False, failed, nearest.distance, nearest.held)
    return nearest


def _not(judged: Missed, what: str) -> Missed:
    return Missed(False, (f"must not be {what}",), 1) if judged.holds else Missed(True, held=1)


def _permission(rule: Json, caller: Caller) -> Missed:
    if "andRules" in rule:
        return _all([_permission(r, caller) for r in dump.items(rule, "and_rules", "rules")])
    if "orRules" in rule:
        return _any([_permission(r, caller) for r in dump.items(rule, "or_rules", "rules")])
    if "notRule" in rule:
        inner = dump.message(rule, "not_rule")
        return _not(_permission(inner, caller), _describe(inner))
    return _leaf(rule, caller, _PERMISSIONS)


def _principal(rule: Json, caller: Caller) -> Missed:
    if "andIds" in rule:
        return _all([_principal(r, caller) for r in dump.items(rule, "and_ids", "ids")])
    if "orIds" in rule:
        return _any([_principal(r, caller) for r in dump.items(rule, "or_ids", "ids")])
    if "notId" in rule:
        inner = dump.message(rule, "not_id")
        return _not(_principal(inner, caller), _describe(inner))
    return _leaf(rule, caller, _PRINCIPALS)


Leaf = Callable[[Json, Caller], tuple[bool, str]]


def _leaf(rule: Json, caller: Caller, known: Mapping[str, Leaf]) -> Missed:
    if rule.get("any") is True:
        return _HOLDS
    for name, judge in known.items():
        if name in rule:
            holds, failed = judge(rule, caller)
            weight = _WEIGHTS.get(name, 1)
            return Missed(True, held=weight) if holds else Missed(False, (failed,), weight)
    return Missed(False, (f"{next(iter(rule), 'an empty condition')} is not understood here",), 1)


def _describe(rule: Json) -> str:
    """The first values in a condition, for what must not hold."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, Mapping):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, str):
            found.append(value)

    walk(rule)
    return ", ".join(found[:_SHOWN]) or "so"


# -- conditions -------------------------------------------------------------------------------------------------------


def _header(rule: Json, caller: Caller) -> tuple[bool, str]:
    matcher = dump.message(rule, "header")
    if caller.message is None:
        return False, "conditions of HTTP fail for a connection"
    value = caller.message.header(dump.text(matcher, "name"))
    has = "none" if value is None else repr(value)
    return matchers.match_header(matcher, caller.message), f"{matchers.describe_header(matcher)}, has {has}"


def _path(rule: Json, caller: Caller) -> tuple[bool, str]:
    if caller.message is None:
        return False, "conditions of HTTP fail for a connection"
    matcher = dump.message(rule, "url_path", "path")
    path = caller.message.url_path
    return matchers.match_string(matcher, path), f"path {matchers.describe_string(matcher)}, has {path!r}"


def _template(rule: Json, caller: Caller) -> tuple[bool, str]:
    if caller.message is None:
        return False, "conditions of HTTP fail for a connection"
    template = dump.text(rule, "uri_template", "typed_config", "path_template")
    path = caller.message.url_path
    return matchers.match_template(template, path), f"path like {template!r}, has {path!r}"


def _port(rule: Json, caller: Caller) -> tuple[bool, str]:
    wanted = dump.number(rule, "destination_port")
    return wanted == caller.peer.port, f"port {wanted}, has {caller.peer.port}"


def _port_range(rule: Json, caller: Caller) -> tuple[bool, str]:
    start = dump.number(rule, "destination_port_range", "start")
    end = dump.number(rule, "destination_port_range", "end")
    return start <= caller.peer.port < end, f"port {start} to {end}, has {caller.peer.port}"


def _server_name(rule: Json, caller: Caller) -> tuple[bool, str]:
    matcher = dump.message(rule, "requested_server_name")
    own = caller.peer.server_name
    return matchers.match_string(matcher, own), f"SNI {matchers.describe_string(matcher)}, has {own!r}"


def _range(field: str, title: str, value: Callable[[Caller], str]) -> Leaf:
    def judge(rule: Json, caller: Caller) -> tuple[bool, str]:
        address, length = dump.text(rule, field, "address_prefix"), dump.number(rule, field, "prefix_len")
        own = value(caller)
        if own == SOMEBODY and caller.presumed is not None:
            return caller.presumed, f"{title} in {address}/{length}, has an unknown one"
        try:
            inside = ipaddress.ip_address(own) in ipaddress.ip_network(f"{address}/{length}", strict=False)
        except ValueError:
            inside = False
        return inside, f"{title} in {address}/{length}, has {own or 'an unknown one'}"

    return judge


def _authenticated(rule: Json, caller: Caller) -> tuple[bool, str]:
    matcher = dump.message(rule, "authenticated", "principal_name")
    if not caller.peer.is_mutual:
        wanted = matchers.describe_string(matcher) if matcher else "any"
        return False, f"principal {wanted}, has none: no mutual TLS"
    own = caller.peer.identity
    return not matcher or matchers.match_string(matcher, own), (
        f"principal {matchers.describe_string(matcher)}, has {own!r}"
    )


def _filter_state(rule: Json, caller: Caller) -> tuple[bool, str]:
    key = dump.text(rule, "filter_state", "key")
    if key != _PEER_PRINCIPAL:
        return False, f"filter state {key} is not known here"
    matcher = dump.message(rule, "filter_state", "string_match")
    own = caller.peer.identity
    return bool(own) and matchers.match_string(matcher, own), (
        f"principal {matchers.describe_string(matcher)}, has {own!r}"
    )


def _metadata(rule: Json, caller: Caller) -> tuple[bool, str]:
    matcher = dump.message(rule, "metadata") or dump.message(rule, "sourced_metadata", "metadata_matcher")
    keys = ".".join(dump.text(segment, "key") for segment in dump.items(matcher, "path"))
    return matchers.match_metadata(matcher, caller.metadata), f"claim {keys.removeprefix('payload.')} as wanted"


_SHARED: dict[str, Leaf] = {
    "header": _header,
    "urlPath": _path,
    "metadata": _metadata,
    "sourcedMetadata": _metadata,
}
_PERMISSIONS: dict[str, Leaf] = {
    **_SHARED,
    "uriTemplate": _template,
    "destinationPort": _port,
    "destinationPortRange": _port_range,
    "destinationIp": _range("destination_ip", "destination", lambda c: c.peer.destination),
    "requestedServerName": _server_name,
}
_PRINCIPALS: dict[str, Leaf] = {
    **_SHARED,
    "authenticated": _authenticated,
    "filterState": _filter_state,
    "directRemoteIp": _range("direct_remote_ip", "peer", lambda c: c.peer.address),
    "remoteIp": _range("remote_ip", "client", lambda c: c.peer.client or c.peer.address),
    "sourceIp": _range("source_ip", "source", lambda c: c.peer.address),
}
