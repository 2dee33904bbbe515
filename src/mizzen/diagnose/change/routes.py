"""Changes of routes: hosts that come and go, routes and their order, weights, timeouts, retries, faults.

In: a route configuration on both sides. Out: `Change`s, each about one virtual host. Routes are told apart by name, and
routes of one name by their order; one that is new says before which it stands, because the first that matches counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mizzen.diagnose import dump
from mizzen.diagnose.change.changes import Change, changed, generic, worded
from mizzen.diagnose.change.clusters import describe
from mizzen.diagnose.change.fields import differences, show, without
from mizzen.diagnose.dump import Json

_LAST = "as the last"
_WORDS = {
    "timeout": "timeout",
    "prefixRewrite": "prefix rewrite",
    "hostRewriteLiteral": "host rewrite",
    "idleTimeout": "idle timeout",
}
_UNSAID = ("metadata", "decorator")


def compare(name: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    """What changes in this configuration."""
    if old is None or new is None:
        yield Change(kind="route", subject=f"configuration {name}", action="added" if old is None else "removed")
        return
    before, after = _named(old, "virtual_hosts"), _named(new, "virtual_hosts")
    for host in dict.fromkeys((*before, *after)):
        yield from _compare_hosts(f"{name} {host}", before.get(host), after.get(host))
    yield from changed("route", name, generic(differences(without(old, "virtualHosts"), without(new, "virtualHosts"))))


def _named(message: Json, field: str) -> dict[str, Json]:
    return {dump.text(each, "name"): each for each in dump.items(message, field)}


def _compare_hosts(subject: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    if old is None or new is None:
        yield Change(kind="route", subject=subject, action="added" if old is None else "removed")
    elif old != new:
        yield from changed("route", subject, worded(host_texts(old, new), old, new))


def host_texts(old: Json, new: Json) -> Iterator[str]:
    """What changes in a virtual host."""
    before, after = _ids(old), _ids(new)
    kept = [name for name in before if name in after]
    for name in before:
        if name not in after:
            yield f"route {name} removed"
    for name in after:
        if name not in before:
            yield f"route {name} added {_place(list(after), name, kept)}"
    order = [name for name in after if name in before]
    for name in _moved(kept, order):
        yield f"route {name} moved, now {_place(list(after), name, [n for n in kept if n != name])}"
    for name in kept:
        yield from (
            f"route {name}: {text}"
            for text in worded(_route_texts(before[name], after[name]), before[name], after[name])
        )
    gone, come = _domains(old, new), _domains(new, old)
    if come:
        yield f"domains added: {', '.join(come)}"
    if gone:
        yield f"domains removed: {', '.join(gone)}"
    yield from generic(differences(without(old, "routes", "domains"), without(new, "routes", "domains")))


def _ids(host: Json) -> dict[str, Json]:
    """Routes by name; what has none, or shares one, by its match too."""
    found: dict[str, Json] = {}
    for route in dump.items(host, "routes"):
        name = dump.text(route, "name") or f"for {show(dict(dump.message(route, 'match')))}"
        unique, number = name, 2
        while unique in found:
            unique, number = f"{name} ({number})", number + 1
        found[unique] = route
    return found


def _place(order: Sequence[str], name: str, known: Sequence[str]) -> str:
    later = order[order.index(name) + 1 :]
    return next((f"before {each}" for each in later if each in known), _LAST)


def _moved(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The names that left their place, taking as few as explain the new order."""
    if list(before) == list(after):
        return []
    longest = _longest_common(before, after)
    return [name for name in after if name not in longest]


def _longest_common(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """A longest run of names that keep their order: names are unique, so it is an increasing run of places."""
    places = {name: index for index, name in enumerate(before)}
    runs: list[list[str]] = []
    for name in after:
        fits = [run for run in runs if places[run[-1]] < places[name]]
        runs.append([*_longest(fits), name])
    return set(_longest(runs))


def _longest(runs: list[list[str]]) -> list[str]:
    return max(runs, key=lambda run: len(run), default=[])


def _domains(one: Json, other: Json) -> list[str]:
    known = set(dump.texts(other, "domains"))
    return [domain for domain in dump.texts(one, "domains") if domain not in known]


# -- one route --------------------------------------------------------------------------------------------------------


def _route_texts(old: Json, new: Json) -> Iterator[str]:
    yield from generic(differences(old.get("match"), new.get("match"), "match"))
    yield from _actions(dump.message(old, "route"), dump.message(new, "route"))
    for field, tell in _PARTS.items():
        if old.get(field) != new.get(field):
            yield from tell(old.get(field), new.get(field))
    said = ("name", "match", "route", *_PARTS, *_UNSAID)
    yield from generic(differences(without(old, *said), without(new, *said)))


def _actions(old: Json, new: Json) -> Iterator[str]:
    yield from _destinations(old, new)
    for field, word in _WORDS.items():
        if old.get(field) != new.get(field):
            yield f"{word} {show(old.get(field))} → {show(new.get(field))}"
    yield from generic(differences(old.get("retryPolicy"), new.get("retryPolicy"), "retry"))
    yield from generic(differences(old.get("requestMirrorPolicies"), new.get("requestMirrorPolicies"), "mirror"))
    said = ("cluster", "weightedClusters", "retryPolicy", "requestMirrorPolicies", "maxStreamDuration", *_WORDS)
    yield from generic(differences(without(old, *said), without(new, *said)))


def _destinations(old: Json, new: Json) -> Iterator[str]:
    before, after = _weights(old), _weights(new)
    if before == after:
        if old.get("weightedClusters") != new.get("weightedClusters"):
            yield from generic(differences(old.get("weightedClusters"), new.get("weightedClusters"), "destinations"))
        return
    if set(before) == set(after):
        yield from (f"weight of {describe(n)} {before[n]}→{after[n]}" for n in before if before[n] != after[n])
        return
    yield f"destination {_shares(before)} → {_shares(after)}"


def _weights(action: Json) -> dict[str, int]:
    single = dump.text(action, "cluster")
    if single:
        return {single: 100}
    clusters = dump.items(action, "weighted_clusters", "clusters")
    return {dump.text(each, "name"): dump.number(each, "weight") for each in clusters}


def _shares(weights: Mapping[str, int]) -> str:
    if not weights:
        return "none"
    if len(weights) == 1:
        return describe(next(iter(weights)))
    return ", ".join(f"{describe(name)} {weight}" for name, weight in weights.items())


def _filters(old: Any, new: Any) -> Iterator[str]:
    """Settings of filters for this route: faults, CORS, and what extensions bring."""
    before, after = old or {}, new or {}
    for name in dict.fromkeys((*before, *after)):
        word = name.rpartition(".")[2]
        if name not in before or name not in after:
            yield f"{word} {'added' if name not in before else 'removed'}"
        else:
            yield from generic(differences(before[name], after[name], word))


def _plain(word: str) -> Callable[[Any, Any], Iterator[str]]:
    def tell(old: Any, new: Any) -> Iterator[str]:
        if old is None or new is None:
            yield f"{word} {'added' if old is None else 'removed'}: {show(new if old is None else old)}"
        else:
            yield from generic(differences(old, new, word))

    return tell


_PARTS: dict[str, Callable[[Any, Any], Iterator[str]]] = {
    "redirect": _plain("redirect"),
    "directResponse": _plain("direct response"),
    "requestHeadersToAdd": _plain("request headers"),
    "requestHeadersToRemove": _plain("request headers removed"),
    "responseHeadersToAdd": _plain("response headers"),
    "responseHeadersToRemove": _plain("response headers removed"),
    "typedPerFilterConfig": _filters,
}
