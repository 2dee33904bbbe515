"""What pushes have cost, charged to the objects that caused them.

In: what each commit changed, and the bytes that each proxy was sent because of it. Out: for each of the objects that
changed last, by how it changed, the pushes to proxies and their bytes, by classes of proxies; bounded, whatever the
mesh. Counters by kind, which forget nothing, go along.

A push is charged when a proxy has been written all of it. Objects that changed together each took part in it and share
its bytes evenly, as do those whose pushes to a slow proxy were merged. Of a commit of many objects (a
resynchronisation, a release) kinds are charged, not objects. However shared, bytes add up to those that were written.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from mizzen.incremental import Key
from mizzen.xds import metrics
from mizzen.xds.generator import Change

_ACCOUNTS = 1000
_CLASSES = 100
"""Of proxies, told apart in one account; what comes after goes by type alone."""
_CELLS = 20_000
"""Classes over all accounts."""
_BATCH = 50
"""Changes of one commit that are charged one by one."""

ALL = "*"
"""Stands for the objects of a kind, and for the namespaces of proxies, that are not told apart."""


class ProxyClass(NamedTuple):
    """Proxies that are not told apart."""

    type: str
    namespace: str


class Cost(NamedTuple):
    """What was sent."""

    pushes: int
    """To proxies."""
    bytes: int

    def plus(self, other: "Cost") -> "Cost":
        """Both together."""
        return Cost(self.pushes + other.pushes, self.bytes + other.bytes)


NOTHING = Cost(0, 0)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What one object has caused by changing in one way."""

    object: Key
    how: str
    """As `Change.how`."""
    changes: int
    """Commits that made a difference to a proxy."""
    cost: Cost
    last: float
    """Clock time of the last of them."""
    proxies: tuple[tuple[ProxyClass, Cost], ...]
    """Where it went, the most expensive first."""


class Cause:
    """What one commit has changed, to be charged with what proxies are sent because of it."""

    __slots__ = ("_charged", "_kinds", "_pending", "at", "cost", "counted", "weights")

    def __init__(self, changes: Sequence[Change], at: float, charged: "list[Cause]") -> None:
        """`charged` is where a cause with something to settle puts itself."""
        self.at = at
        self.weights = Counter(changes if len(changes) <= _BATCH else map(_of_kind, changes))
        """Whom to charge, and for how many changes each."""
        self.cost = NOTHING
        """All of it so far."""
        self.counted = False
        """Whether the accounts have counted it among their changes."""
        self._charged = charged
        self._pending: dict[ProxyClass, Cost] = {}
        self._kinds = Counter((change.object[0], change.how) for change in self.weights.elements())

    def charge(self, proxies: ProxyClass, size: int) -> None:
        """A proxy of that class was sent so many bytes."""
        if not self._pending:
            self._charged.append(self)
        cost = Cost(1, size)
        self._pending[proxies] = self._pending.get(proxies, NOTHING).plus(cost)
        self.cost = self.cost.plus(cost)
        for (kind, how), part in zip(self._kinds, split(size, self._kinds.values()), strict=True):
            metrics.count_caused(kind, how, proxies.type, part)

    def take(self) -> list[tuple[ProxyClass, Cost]]:
        """What was charged since the last call."""
        taken = list(self._pending.items())
        self._pending.clear()
        return taken


def charge(causes: Sequence[Cause], proxies: ProxyClass, size: int) -> None:
    """A proxy was sent so many bytes in one push because of all of these."""
    if len(causes) == 1:
        causes[0].charge(proxies, size)
        return
    for cause, part in zip(causes, split(size, [cause.weights.total() for cause in causes]), strict=True):
        cause.charge(proxies, part)


class _Ledger:
    """An account at work."""

    __slots__ = ("changes", "last", "proxies")

    def __init__(self) -> None:
        self.changes = 0
        self.last = 0.0
        self.proxies: dict[ProxyClass, Cost] = {}

    def add(self, proxies: ProxyClass, cost: Cost) -> None:
        if proxies not in self.proxies and len(self.proxies) >= _CLASSES:
            proxies = ProxyClass(proxies.type, ALL)
        self.proxies[proxies] = self.proxies.get(proxies, NOTHING).plus(cost)

    @property
    def cost(self) -> Cost:
        return _sum(self.proxies.values())


class Costs:
    """All accounts."""

    def __init__(self, accounts: int = _ACCOUNTS, cells: int = _CELLS) -> None:
        self._most = accounts
        self._most_cells = cells
        self._cells = 0
        self._charged: list[Cause] = []
        self._ledgers: dict[Change, _Ledger] = {}
        """The longest unchanged first."""
        self._forgotten = NOTHING

    def open(self, changes: Sequence[Change], at: float) -> Cause:
        """These were committed together at that clock time."""
        self._settle()
        return Cause(changes, at, self._charged)

    def accounts(self, most: int = _ACCOUNTS) -> list[Account]:
        """The most expensive ones, by bytes, then by pushes."""
        self._settle()
        found = [(ledger.cost, change, ledger) for change, ledger in self._ledgers.items()]
        found.sort(key=lambda each: (-each[0].bytes, -each[0].pushes, each[1]))
        return [_account(change, ledger, cost) for cost, change, ledger in found[:most]]

    @property
    def total(self) -> Cost:
        """Of all accounts, also those that are forgotten."""
        self._settle()
        return _sum(ledger.cost for ledger in self._ledgers.values()).plus(self._forgotten)

    def _settle(self) -> None:
        """Bring what was charged into the accounts; the work is by commits and classes, not by proxies."""
        charged, self._charged[:] = self._charged[:], ()
        for cause in charged:
            self._enter(cause)
        while len(self._ledgers) > self._most or (self._cells > self._most_cells and len(self._ledgers) > 1):
            oldest = self._ledgers.pop(next(iter(self._ledgers)))
            self._cells -= len(oldest.proxies)
            self._forgotten = self._forgotten.plus(oldest.cost)

    def _enter(self, cause: Cause) -> None:
        ledgers = [self._ledgers.pop(change) if change in self._ledgers else _Ledger() for change in cause.weights]
        self._cells -= sum(len(ledger.proxies) for ledger in ledgers)
        for proxies, cost in cause.take():
            for ledger, part in zip(ledgers, split(cost.bytes, cause.weights.values()), strict=True):
                ledger.add(proxies, Cost(cost.pushes, part))
        for change, ledger in zip(cause.weights, ledgers, strict=True):
            ledger.changes += not cause.counted
            ledger.last = max(ledger.last, cause.at)
            self._ledgers[change] = ledger
        self._cells += sum(len(ledger.proxies) for ledger in ledgers)
        cause.counted = True


def split(total: int, weights: Iterable[int]) -> Iterator[int]:
    """Whole parts in proportion to the weights, which add up to the total."""
    weights = tuple(weights)
    whole, seen, given = sum(weights), 0, 0
    for weight in weights:
        seen += weight
        due = total * seen // whole
        yield due - given
        given = due


def _of_kind(change: Change) -> Change:
    return Change((change.object[0], "", ALL), change.how)


def _sum(costs: Iterable[Cost]) -> Cost:
    whole = NOTHING
    for cost in costs:
        whole = whole.plus(cost)
    return whole


def _account(change: Change, ledger: _Ledger, cost: Cost) -> Account:
    where = sorted(ledger.proxies.items(), key=lambda each: (-each[1].bytes, -each[1].pushes, each[0]))
    return Account(
        object=change.object,
        how=change.how,
        changes=ledger.changes,
        cost=cost,
        last=ledger.last,
        proxies=tuple(where),
    )
