"""The rule of scope, applied type by type.

In: what the control plane tells of its proxies and of what they refuse, its timings, and who should be connected.
Out: `Finding`s: whose fault it is, what says so, the objects to blame, and the next command.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from mizzen.diagnose import sync
from mizzen.diagnose.sync import ProxyStatus, TypeStatus
from mizzen.diagnose.sync_causes.timing import Timing, slowest

Culprit = Literal["control plane", "configuration", "proxy", "connection", "nobody"]
_REJECTED = "rejected"
_FRESH_SECONDS = 5.0
"""A response that was sent less long ago may be on its way."""
_ENOUGH = 2


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Why one type is not in step at some proxies."""

    type: str
    """`CDS`, `LDS`, …; empty for all of a proxy's."""
    state: str
    proxies: tuple[str, ...]
    watching: int
    culprit: Culprit
    why: str
    evidence: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    next: str = ""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What one control plane says."""

    proxies: Sequence[ProxyStatus]
    problems: Mapping[str, Any] = {}
    """Its page `problems`."""
    timings: tuple[Timing, ...] = ()
    load: tuple[str, ...] = ()
    """What else says how busy it is."""


def explain(told: Told, *, now: datetime.datetime) -> list[Finding]:
    """All that is not in step at the proxies of one control plane."""
    return [finding for url in _types(told.proxies) for finding in _of_type(told, url, now)]


def explain_absent(connected: Iterable[str], expected: Iterable[str]) -> list[Finding]:
    """Those that should be connected to one of the control planes and are not."""
    present = set(connected)
    away = sorted(set(expected) - present)
    return [_away(away, len(present))] if away else []


def _types(proxies: Sequence[ProxyStatus]) -> list[str]:
    return sorted({status.type_url for proxy in proxies for status in proxy.types})


def _of_type(told: Told, url: str, now: datetime.datetime) -> Iterator[Finding]:
    watching = [(proxy.name, status) for proxy in told.proxies if (status := proxy.of(url)) is not None]
    by_error: dict[str, list[str]] = {}
    for name, status in watching:
        if status.state == "ERROR":
            by_error.setdefault(status.error, []).append(name)
    for error, names in by_error.items():
        yield _refused(told, url, error, names, len(watching))
    stale = [(name, status) for name, status in watching if status.state == "STALE"]
    if stale:
        is_many = len(stale) >= _ENOUGH and 2 * len(stale) > len(watching)
        yield _held_up(told, url, stale, len(watching), now) if is_many else _unanswered(url, stale, len(watching), now)
    unsent = [name for name, status in watching if status.state == "NOT_SENT"]
    if unsent:
        yield Finding(
            type=sync.short_name(url),
            state="NOT SENT",
            proxies=tuple(unsent),
            watching=len(watching),
            culprit="nobody",
            why="the control plane has nothing of this type for them",
        )


# -- refused ----------------------------------------------------------------------------------------------------------


def _refused(told: Told, url: str, error: str, names: list[str], watching: int) -> Finding:
    resources = {
        resource
        for each in _entries(told, "rejections")
        if each.get("typeUrl") == url and each.get("proxy") in names
        for resource in each.get("resources", ())
    }
    objects = tuple(dict.fromkeys(_blamed(told, error)))
    evidence = [f"Envoy says: {error}", *(f"resource {name}" for name in sorted(resources))]
    next_step = f"mizzen proxy-status {names[0]}" if objects else f"mizzen proxy-config all {names[0]} -o json"
    return Finding(
        type=sync.short_name(url),
        state="ERROR",
        proxies=tuple(names),
        watching=watching,
        culprit="configuration",
        why="Envoy refuses what it is sent and keeps what it had; changes have no effect until this is mended",
        evidence=tuple(evidence),
        objects=objects,
        next=f"mend the object, then `{next_step}`" if objects else f"`{next_step}`, and look for what it refuses",
    )


def _blamed(told: Told, error: str) -> Iterator[str]:
    """The objects of which the control plane says that proxies refuse what is made of them, for that reason."""
    for each in _entries(told, "objects"):
        if each.get("code") == _REJECTED and each.get("kind") and error in str(each.get("message", "")):
            who = f"{each['kind']} {each.get('namespace', '')}/{each.get('name', '')}"
            line = f":{each['line']}" if each.get("line") else ""
            yield who + (f" ({each['file']}{line})" if each.get("file") else "")


def _entries(told: Told, name: str) -> list[Mapping[str, Any]]:
    listed = told.problems.get(name)
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


# -- not acknowledged -------------------------------------------------------------------------------------------------


def _held_up(
    told: Told, url: str, stale: list[tuple[str, TypeStatus]], watching: int, now: datetime.datetime
) -> Finding:
    """Many: the control plane, and where its time goes."""
    worst = slowest(told.timings)
    why = "most proxies that watch the type wait for it, so it is not one of them that is slow"
    if worst is not None:
        why += f"; most time is lost where {worst.meaning}, which is bounded by {worst.bounded_by}"
    return Finding(
        type=sync.short_name(url),
        state="STALE",
        proxies=tuple(name for name, _ in stale),
        watching=watching,
        culprit="control plane",
        why=why,
        evidence=(_age(stale, now), *map(str, told.timings), *told.load),
        next="compare its CPU with its limit, and find the objects behind most pushes: `mizzen dashboard ui`",
    )


def _unanswered(url: str, stale: list[tuple[str, TypeStatus]], watching: int, now: datetime.datetime) -> Finding:
    """Few: these proxies, or the way to them."""
    ages = _ages(stale, now)
    is_fresh = bool(ages) and max(ages) < _FRESH_SECONDS
    never = [name for name, status in stale if not status.acknowledged]
    first = stale[0][0]
    evidence = [_age(stale, now)]
    if never:
        evidence.append(f"never acknowledged on this connection by {', '.join(never)}")
    return Finding(
        type=sync.short_name(url),
        state="STALE",
        proxies=tuple(name for name, _ in stale),
        watching=watching,
        culprit="nobody" if is_fresh else "proxy",
        why=(
            "sent just now, and perhaps on its way"
            if is_fresh
            else "it was sent and neither taken nor refused: Envoy or its agent hangs, or the connection is dead"
        ),
        evidence=tuple(evidence),
        next=f"`mizzen proxy-status {first} --explain` again" if is_fresh else f"`mizzen logs {first} -c istio-proxy`",
    )


def _ages(stale: list[tuple[str, TypeStatus]], now: datetime.datetime) -> list[float]:
    return [(now - status.sent).total_seconds() for _, status in stale if status.sent is not None]


def _age(stale: list[tuple[str, TypeStatus]], now: datetime.datetime) -> str:
    ages = _ages(stale, now)
    if not ages:
        return "when it was sent is not known"
    first, last = sync.format_age(max(ages)), sync.format_age(min(ages))
    return f"sent {first} ago" if first == last else f"sent between {first} and {last} ago"


# -- not connected ----------------------------------------------------------------------------------------------------


def _away(names: list[str], connected: int) -> Finding:
    everybody = connected == 0
    return Finding(
        type="",
        state="NOT CONNECTED",
        proxies=tuple(names),
        watching=len(names) + connected,
        culprit="control plane" if everybody and len(names) >= _ENOUGH else "connection",
        why=(
            "no proxy is connected: the control plane does not accept connections, or refuses their certificates"
            if everybody
            else "these are not connected here: not running, turned away, or served by another control plane"
        ),
        next=f"`mizzen logs {names[0]} -c istio-proxy`, and look for the stream's error",
    )
