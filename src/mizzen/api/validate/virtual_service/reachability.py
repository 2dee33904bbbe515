"""Reachability: warnings of rules and matches that no request or connection ever gets to.

The order of rules decides. A rule without matches takes all, so nothing behind it is reached; a match that was there
before, its name aside, is never the first; and a prefix is covered by a shorter one before it, unless the earlier one
asks for more. Rules and matches go by their name, or by their place counted from 0.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from mizzen.api.networking.virtual_service import (
    HTTPMatchRequest,
    HTTPRoute,
    StringMatch,
    TCPRoute,
    TLSRoute,
    VirtualServiceSpec,
)
from mizzen.api.validate.faults import INEFFECTIVE_MATCH, UNREACHABLE_RULE, Fault, Faults, quote, warning

Route = HTTPRoute | TLSRoute | TCPRoute

_MOST_PREFIXES = 500
"""Earlier matches that a prefix is compared with."""


class _Prefix(NamedTuple):
    """A match by a prefix of the path, and where it stands."""

    rule: str
    match: str
    prefix: str
    conditions: HTTPMatchRequest


def check_reachability(spec: VirtualServiceSpec, path: str) -> Faults:
    """Warnings for all rules of a VirtualService."""
    yield from _check_rules(spec.http, f"{path}.http")
    yield from _check_prefixes(spec.http, f"{path}.http")
    yield from _check_rules(spec.tls, f"{path}.tls")
    yield from _check_rules(spec.tcp, f"{path}.tcp")


def _label(named: Any, index: int) -> str:
    """What to call a rule or a match."""
    name = getattr(named, "name", "")
    return quote(name) if name else f"#{index}"


def _check_rules(routes: Sequence[Route], path: str) -> Faults:
    encountered: dict[bytes, int] = {}
    takes_all = False
    for number, route in enumerate(routes):
        rule, here = _label(route, number), f"{path}[{number}]"
        if not route.match:
            if takes_all:
                yield _unreachable(rule, "only the last rule can have no matches", here)
            takes_all = True
            continue
        repeated = 0
        for index, match in enumerate(route.match):
            conditions = _conditions(match)
            first = encountered.get(conditions)
            if first is not None:
                repeated += 1
                yield _ineffective(rule, _label(match, index), _label(routes[first], first), f"{here}.match[{index}]")
                continue
            encountered[conditions] = number
            if takes_all:
                yield _unreachable(rule, "route without matches defined before", here)
        if repeated == len(route.match):
            yield _unreachable(rule, "all matches used by prior rules", here)


def _conditions(match: Any) -> bytes:
    """A match without its name, so that equal conditions are equal."""
    bare = replace(match, name="") if isinstance(match, HTTPMatchRequest) else match
    return msgspec.json.encode(bare, order="deterministic")


def _check_prefixes(routes: Sequence[HTTPRoute], path: str) -> Faults:
    earlier: list[_Prefix] = []
    for number, route in enumerate(routes):
        for index, match in enumerate(route.match):
            if match.uri is None or match.uri.prefix is None:
                continue
            here = f"{path}[{number}].match[{index}]"
            found = _Prefix(_label(route, number), _label(match, index), match.uri.prefix, match)
            for before in earlier:
                if _covers(before, found):
                    where = f"{before.match} of prefix {before.prefix} on {before.rule}"
                    yield _ineffective(found.rule, f"{found.match} of prefix {found.prefix}", where, here)
            if len(earlier) < _MOST_PREFIXES:
                earlier.append(found)


def _covers(before: _Prefix, after: _Prefix) -> bool:
    """Whether every request that matches `after` matches `before`; equal ones are told of as repeated."""
    one, other = before.conditions, after.conditions
    return (
        after.prefix.startswith(before.prefix)
        and one.port == other.port
        and (one.method or _GET) == (other.method or _GET)
        and one.scheme in (None, other.scheme)
        and one.authority in (None, other.authority)
        and one.headers.items() <= other.headers.items()
        and one.without_headers.items() <= other.without_headers.items()
        and one.query_params.items() <= other.query_params.items()
        and _same_clients(one, other)
        and (one.ignore_uri_case or not other.ignore_uri_case)
        and replace(one, name="") != replace(other, name="")
    )


_GET = StringMatch(exact="GET")


def _same_clients(one: HTTPMatchRequest, other: HTTPMatchRequest) -> bool:
    """Whether the clients of `other` are among those of `one`."""
    gateways = not one.gateways or (bool(other.gateways) and set(other.gateways) <= set(one.gateways))
    namespace = one.source_namespace in ("", other.source_namespace)
    return gateways and namespace and one.source_labels.items() <= other.source_labels.items()


def _unreachable(rule: str, reason: str, path: str) -> Fault:
    return warning(path, f"virtualService rule {rule} not used ({reason})", UNREACHABLE_RULE)


def _ineffective(rule: str, match: str, where: str, path: str) -> Fault:
    message = f"virtualService rule {rule} match {match} is not used (duplicate/overlapping match in rule {where})"
    return warning(path, message, INEFFECTIVE_MATCH)
