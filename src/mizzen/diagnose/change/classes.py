"""Classes of proxies: those for which a change comes to the same are told of once.

In: what every proxy was and will be told. Out: `ProxyClass`es, those with the most proxies first. Proxies that share
resources share the comparison: a mesh of a thousand pods has a handful of different pairs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mizzen.compile import resource
from mizzen.compile.resource import ResourceSet
from mizzen.diagnose.change import clusters, endpoints, listeners, routes
from mizzen.diagnose.change.changes import Change, Kind, few, generic, plural
from mizzen.diagnose.change.disruption import Forecast, changed_names, forecast
from mizzen.diagnose.change.fields import differences
from mizzen.diagnose.change.told import Names, Reader, Told
from mizzen.diagnose.dump import Json

Measure = Callable[[ResourceSet | None, ResourceSet, Names | None, Names], int]
"""Bytes that go out for one type: held, target, the names whose absence is told (None: all), names sent again."""

_SHOWN = 5
_COMPARE: tuple[tuple[str, Callable[[str, Json | None, Json | None], Iterator[Change]]], ...] = (
    (resource.LISTENER, listeners.compare),
    (resource.ROUTE, routes.compare),
    (resource.CLUSTER, clusters.compare),
    (resource.ENDPOINT, endpoints.compare),
)
_OTHERS: tuple[tuple[str, Kind], ...] = ((resource.SECRET, "secret"), (resource.EXTENSION, "extension"))

_SECRETS = {"tlsCertificate": "certificate", "validationContext": "trusted roots", "genericSecret": "content"}


class ProxyClass(msgspec.Struct, frozen=True, kw_only=True):
    """Proxies for which the change is the same."""

    name: str
    proxies: tuple[str, ...]
    changes: tuple[Change, ...]
    forecast: Forecast
    pushed: int
    """Bytes that are sent to all of them together."""
    objects: tuple[str, ...] = ()
    """The objects behind it."""


def compare(
    old: Mapping[str, Told], new: Mapping[str, Told], reader: Reader, measure: Measure
) -> tuple[ProxyClass, ...]:
    """The classes of all proxies that are there in both states and told something else, or are other pods."""
    found: dict[tuple[Any, ...], list[tuple[Told, Forecast]]] = {}
    compared = _Compared(reader)
    for reference in sorted(old.keys() & new.keys()):
        before, after = old[reference], new[reference]
        changes = compared.changes(before, after)
        own = forecast(reader, before, after)
        if changes or own.effects:
            found.setdefault((changes, _visible(own)), []).append((after, own))
    everybody = [told for told in new.values() if told.reference in old]
    classes = []
    for (changes, _), members in found.items():
        proxies = [told for told, _ in members]
        classes.append(
            ProxyClass(
                name=name_class(proxies, everybody),
                proxies=tuple(told.reference for told in proxies),
                changes=changes,
                forecast=members[0][1],
                pushed=sum(pushed_bytes(old[told.reference], told, measure) for told in proxies),
            )
        )
    return tuple(sorted(classes, key=lambda each: (-len(each.proxies), each.name)))


def _visible(own: Forecast) -> tuple[Any, ...]:
    """A forecast without what only a machine compares."""
    return (own.effects, own.tls, own.warmed, tuple(str(each) for each in own.listeners))


class _Compared:
    """Changes by pair of resources, each worked out once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[tuple[str, str, str, str], tuple[Change, ...]] = {}

    def changes(self, old: Told, new: Told) -> tuple[Change, ...]:
        return tuple(change for url, name in _changed(old, new) for change in self._of(url, name, old, new))

    def _of(self, url: str, name: str, old: Told, new: Told) -> tuple[Change, ...]:
        before, after = old.sets[url].get(name), new.sets[url].get(name)
        key = (url, name, before.version if before else "", after.version if after else "")
        if key not in self._known:
            sides = self._reader.printed(before), self._reader.printed(after)
            self._known[key] = tuple(_compare(url, name, *sides))
        return self._known[key]


def _changed(old: Told, new: Told) -> Iterator[tuple[str, str]]:
    urls = [url for url, _ in _COMPARE] + [url for url, _ in _OTHERS]
    return ((url, name) for url in urls for name in changed_names(old, new, url))


def _compare(url: str, name: str, old: Json | None, new: Json | None) -> Iterator[Change]:
    for known, compare_one in _COMPARE:
        if known == url:
            yield from compare_one(name, old, new)
    for known, kind in _OTHERS:
        if known == url:
            yield _other(kind, name, old, new)


def _other(kind: Kind, name: str, old: Json | None, new: Json | None) -> Change:
    """A change of a secret, told without any of its content, or of an extension."""
    if old is None or new is None:
        return Change(kind=kind, subject=name, action="added" if old is None else "removed")
    if kind == "secret":
        parts = [word for field, word in _SECRETS.items() if old.get(field) != new.get(field)]
        # What is private prints the same on both sides.
        return Change(kind=kind, subject=name, action="changed", text=f"{' and '.join(parts) or 'key'} renewed")
    return Change(kind=kind, subject=name, action="changed", text="; ".join(generic(differences(old, new))))


def pushed_bytes(old: Told | None, new: Told, measure: Measure) -> int:
    """What is sent to this proxy; everything where it is new or another pod."""
    held = old if old is not None and old.incarnation == new.incarnation else None
    total = 0
    for url, own in new.sets.items():
        target, names = own, new.asked.get(url)
        if held is not None and url in new.lingering and names is not None:
            target, names = new.lingering[url], names | held.asked[url]
        again = _sent_again(held, new) if held is not None and url == resource.ENDPOINT else frozenset()
        total += measure(held.sets[url] if held is not None else None, target, names, again)
    return total


def _sent_again(old: Told, new: Told) -> Names:
    """Endpoints follow every changed cluster, because Envoy waits for them before it takes the cluster."""
    return frozenset(changed_names(old, new, resource.CLUSTER)) & new.asked[resource.ENDPOINT]


# -- names ------------------------------------------------------------------------------------------------------------


def name_class(members: Sequence[Told], everybody: Sequence[Told]) -> str:
    """The class by what its proxies have in common: everybody, whole namespaces, or workloads."""
    if len(members) == len(everybody):
        return f"every proxy ({len(members)})"
    for kind, word in (("sidecar", "every sidecar"), ("router", "every gateway")):
        same = [told for told in everybody if told.kind == kind]
        if len(same) > 1 and {told.reference for told in same} == {told.reference for told in members}:
            return f"{word} ({len(members)})"
    by_namespace: dict[str, list[Told]] = {}
    for told in members:
        by_namespace.setdefault(told.namespace, []).append(told)
    parts = [_in_namespace(space, own, everybody) for space, own in sorted(by_namespace.items())]
    shown = "; ".join(parts[:_SHOWN])
    return f"{shown}; and {plural(len(parts) - _SHOWN, 'namespace')} more" if len(parts) > _SHOWN else shown


def _in_namespace(namespace: str, members: Sequence[Told], everybody: Iterable[Told]) -> str:
    whole = [told for told in everybody if told.namespace == namespace]
    if len(whole) == len(members) > 1:
        return f"namespace {namespace} ({len(members)})"
    names = list(dict.fromkeys(told.workload for told in members))
    return f"{few(names, _SHOWN)} in {namespace}"
