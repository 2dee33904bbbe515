"""Figures with their targets: medians, percentiles, verdicts, and the table that is printed.

In: samples, one for each time that a row was run. Out: lines for people, and Structs for JSON. What is measured, and
how, is elsewhere (`bench.rows`).
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence

import msgspec


class Target(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a figure should be. Of a share and a bound the share counts where another control plane was measured."""

    most: float | None = None
    exactly: float | None = None
    share: float | None = None
    """At most so much of what the other control plane needs."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured figure of one row."""

    row: str
    name: str
    unit: str = ""
    samples: tuple[float, ...]
    target: Target | None = None
    note: str = ""
    others: tuple[float, ...] = ()
    """The samples of the other control plane."""

    @property
    def value(self) -> float:
        """The median."""
        return statistics.median(self.samples)

    @property
    def other(self) -> float | None:
        """The other control plane's median."""
        return statistics.median(self.others) if self.others else None

    @property
    def bound(self) -> float | None:
        """What the value may be at most, where that is known."""
        if self.target is None:
            return None
        if self.target.share is not None and self.other is not None:
            return self.target.share * self.other
        return self.target.most

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None where there is none to compare with."""
        if self.target is not None and self.target.exactly is not None:
            return self.value == self.target.exactly
        return None if self.bound is None else self.value <= self.bound


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that is not exceeded by that share of them."""
    ordered = sorted(values)
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(0, rank - 1)]


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """A quantile of a histogram of upper bounds and cumulative counts, evenly spread within each, as Prometheus does.

    What lies above the last finite bound counts as that bound, and a quantile of nothing as 0.
    """
    rank = share * buckets[-1][1]
    lower, below = 0.0, 0.0
    for upper, count in buckets:
        if count >= rank and count > below:
            return lower if upper == float("inf") else lower + (upper - lower) * (rank - below) / (count - below)
        lower, below = upper, count
    return 0.0


def together(turns: Iterable[Iterable[Figure]]) -> list[Figure]:
    """The figures of several runs as one list, row by row, with the samples of all."""
    rows: dict[str, dict[str, Figure]] = {}
    for figure in (figure for turn in turns for figure in turn):
        row = rows.setdefault(figure.row, {})
        before = row.get(figure.name)
        samples = (*before.samples, *figure.samples) if before else figure.samples
        note = (before.note if before else "") or figure.note
        row[figure.name] = msgspec.structs.replace(figure, samples=samples, note=note)
    return [figure for row in rows.values() for figure in row.values()]


def beside(figures: Iterable[Figure], others: Iterable[Figure]) -> list[Figure]:
    """The figures of one control plane with the samples of the other that has the same rows."""
    theirs = {(figure.row, figure.name): figure.samples for figure in others}
    return [msgspec.structs.replace(figure, others=theirs.get((figure.row, figure.name), ())) for figure in figures]


# -- the table --------------------------------------------------------------------------------------------------------


def format_value(value: float, unit: str) -> str:
    """A figure with its unit, as precise as it deserves."""
    digits = 0 if value == int(value) and unit not in ("s", "CPU s") else 3 if value < 1 else 2 if value < 100 else 0
    return f"{value:,.{digits}f} {unit}".rstrip()


def format_target(figure: Figure) -> str:
    """What the figure should be."""
    target = figure.target
    if target is None:
        return ""
    if target.exactly is not None:
        return f"= {format_value(target.exactly, figure.unit)}"
    if figure.bound is None and target.share is not None:
        return f"≤ 1/{1 / target.share:.0f} of the other's"
    return f"≤ {format_value(figure.bound or 0.0, figure.unit)}"


_VERDICTS = {True: "met", False: "NOT MET", None: ""}


def lines(figures: Sequence[Figure], title: str) -> Iterator[str]:
    """The table; with a column for the other control plane where that was measured."""
    compared = any(figure.others for figure in figures)
    other = f"{'other':>14} {'ratio':>7}" if compared else ""
    yield title
    yield f"{'row':<34} {'figure':<24} {'measured':>14} {other} {'target':>20}".rstrip()
    row = ""
    for figure in figures:
        shown = "" if figure.row == row else figure.row
        row = figure.row
        if compared:
            other = f"{'':>14} {'':>7}"
            if figure.other is not None:
                ratio = f"{figure.value / figure.other:.3f}" if figure.other else ""
                other = f"{format_value(figure.other, figure.unit):>14} {ratio:>7}"
        measured = f"{shown:<34} {figure.name:<24} {format_value(figure.value, figure.unit):>14} {other}"
        yield f"{measured} {format_target(figure):>20}  {_VERDICTS[figure.is_met]}".rstrip()
        if figure.note:
            yield f"{'':<35}{figure.note}"
