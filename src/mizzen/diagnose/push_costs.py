"""What pushes have cost, by the objects that caused them: the rows of `mizzen top pushes`.

In: the page `pushes` of each control plane. Out: one `Report` of all of them, a table, and plain data. Replicas each
push a change to their own proxies, so costs add up, while a change is one change.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mizzen.diagnose.change.printing import amount
from mizzen.diagnose.table import Table
from mizzen.errors import DecodeError

_COLUMNS = ("OBJECT", "CHANGE", "CHANGES", "PUSHES", "BYTES", "PROXIES")
_SHOWN = 3
"""Classes of proxies in one cell."""
_PADDING = 3


class Proxies(msgspec.Struct, frozen=True, kw_only=True):
    """What proxies of one class were sent."""

    type: str
    namespace: str
    pushes: int
    bytes: int


class Caused(msgspec.Struct, frozen=True, kw_only=True):
    """What one object has caused by changing in one way."""

    kind: str
    namespace: str
    name: str
    change: str
    changes: int
    pushes: int
    bytes: int
    last: str
    proxies: tuple[Proxies, ...]

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells it from others."""
        return (self.kind, self.namespace, self.name, self.change)

    @property
    def object(self) -> str:
        """As people name it; `*` for those of a kind that changed in commits of many."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """What all pushes have cost, also those whose objects are forgotten."""

    pushes: int = 0
    bytes: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The most expensive first."""

    objects: tuple[Caused, ...] = ()
    total: Total = Total()


def read_report(page: str, name: str) -> Report:
    """A control plane's page; raises DecodeError of one that has none."""
    try:
        return msgspec.json.decode(page, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"{name} does not tell what pushes have cost: {page.strip()[:80]}") from error


def merge_reports(reports: Iterable[Report]) -> Report:
    """What all these control planes have sent."""
    found: dict[tuple[str, ...], Caused] = {}
    total = Total()
    for report in reports:
        total = Total(pushes=total.pushes + report.total.pushes, bytes=total.bytes + report.total.bytes)
        for caused in report.objects:
            before = found.get(caused.identity)
            found[caused.identity] = caused if before is None else _merge(before, caused)
    return Report(objects=_sorted(found.values()), total=total)


def _merge(one: Caused, other: Caused) -> Caused:
    proxies: dict[tuple[str, str], Proxies] = {}
    for each in (*one.proxies, *other.proxies):
        _add(proxies, (each.type, each.namespace), each)
    return msgspec.structs.replace(
        one,
        changes=max(one.changes, other.changes),
        pushes=one.pushes + other.pushes,
        bytes=one.bytes + other.bytes,
        last=max(one.last, other.last),
        proxies=_by_cost(proxies.values()),
    )


def in_namespace(report: Report, namespace: str) -> Report:
    """Only what proxies of a namespace were sent, as far as they are told apart; everything when it is empty."""
    if not namespace:
        return report
    found = []
    for caused in report.objects:
        proxies = tuple(each for each in caused.proxies if each.namespace == namespace)
        if proxies:
            pushes, size = sum(each.pushes for each in proxies), sum(each.bytes for each in proxies)
            found.append(msgspec.structs.replace(caused, pushes=pushes, bytes=size, proxies=proxies))
    return Report(objects=_sorted(found), total=report.total)


def build_table(report: Report, *, by: str, limit: int) -> Table:
    """The first rows; `by` (`type` or `namespace`) is what tells proxies apart in the last column."""
    rows = tuple(
        (
            caused.object,
            caused.change,
            str(caused.changes),
            str(caused.pushes),
            amount(caused.bytes),
            _classes(caused.proxies, by),
        )
        for caused in report.objects[:limit]
    )
    return Table(columns=_COLUMNS, rows=rows, padding=_PADDING)


def build_document(report: Report, limit: int) -> dict[str, Any]:
    """The first objects and the total, for a program."""
    document: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(report, objects=report.objects[:limit]))
    return document


def _classes(proxies: Sequence[Proxies], by: str) -> str:
    joined: dict[str, Proxies] = {}
    for each in proxies:
        _add(joined, getattr(each, by), each)
    words = [f"{getattr(each, by)} {each.pushes} ({amount(each.bytes)})" for each in _by_cost(joined.values())]
    more = [f"{len(words) - _SHOWN} more"] if len(words) > _SHOWN else []
    return ", ".join(words[:_SHOWN] + more)


def _add(sums: dict[Any, Proxies], key: Any, each: Proxies) -> None:
    before = sums.get(key)
    if before is not None:
        each = msgspec.structs.replace(before, pushes=before.pushes + each.pushes, bytes=before.bytes + each.bytes)
    sums[key] = each


def _by_cost(proxies: Iterable[Proxies]) -> tuple[Proxies, ...]:
    return tuple(sorted(proxies, key=lambda each: (-each.bytes, -each.pushes, each.type, each.namespace)))


def _sorted(objects: Iterable[Caused]) -> tuple[Caused, ...]:
    return tuple(sorted(objects, key=lambda each: (-each.bytes, -each.pushes, each.identity)))
