"""The rows of the table that one control plane and its sidecars are measured by.

In: a `Work`: a control plane at work, the process of the sidecars, and the mesh. Out: figures with targets. Each row
leaves the mesh as it found it. CPU seconds are those of the control plane alone, from the change until nobody has been
told anything for a second; seconds are from the moment at which a file is renamed (or a command begins) until a
sidecar has the response.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from bench import changes, meshes
from bench.changes import Change, Kind
from bench.crowd_process import Connect, CrowdProcess, Reconnect, Settle, Told, Watch
from bench.figures import Figure, Target, percentile
from bench.subjects import Subject

SERVICE = 0
"""The number of the service that is changed; the pods of the first services have sidecars in every crowd."""

_QUIET = 1.0
_SHORTLY = 0.3
_CONNECT_TIMEOUT, _TIMEOUT = 600.0, 60.0
_IDLE = 0.1
"""CPU seconds a second that a control plane at rest may need."""
_SHARE = 1 / 8
_KB = 1024.0


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a row is measured on."""

    subject: Subject
    crowd: CrowdProcess
    documents: Sequence[meshes.Document]
    namespaces: int
    nodes: Sequence[dict[str, Any]]
    """Of the sidecars, in their order."""
    at_once: int
    """Sidecars that wait for their first configuration at the same time."""

    def put(self, change: Change) -> None:
        """Write its objects."""
        self.subject.place.write(change.documents)

    def undo(self, change: Change) -> None:
        """Restore what was there before."""
        if change.added:
            self.subject.place.remove(change.added)
        if change.before:
            self.subject.place.write(change.before)


def say(text: str) -> None:
    """Progress, for whoever waits."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


# -- connecting -------------------------------------------------------------------------------------------------------


class Connected(msgspec.Struct, frozen=True, kw_only=True):
    """What it took to connect everybody."""

    seconds: float
    cpu_seconds: float
    base_kb: int
    """Resident before anybody came."""
    connection_kb: float
    bytes: dict[str, int]
    sidecars_cpu_seconds: float
    """What the simulated sidecars needed themselves, which is no part of the rest."""


def connect(work: Work, target: str, authority: str = "") -> Connected:
    """Connect one sidecar, which is not counted, then all."""

    def ask(nodes: Sequence[dict[str, Any]]) -> Told:
        return work.crowd.ask(
            Connect(
                target=target, nodes=list(nodes), at_once=work.at_once, authority=authority, timeout=_CONNECT_TIMEOUT
            )
        )

    base = work.subject.usage()
    ask(work.nodes[:1])
    _settle(work, time.monotonic(), 0)
    work.crowd.ask(Watch())
    before, crowd, start = work.subject.usage(), work.crowd.cpu_seconds(), time.monotonic()
    ask(work.nodes[1:])
    seconds = time.monotonic() - start
    told = _settle(work, start, 0)
    after = work.subject.usage()
    return Connected(
        seconds=seconds,
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        base_kb=base.resident_kb,
        connection_kb=(after.resident_kb - before.resident_kb) / (len(work.nodes) - 1),
        bytes=told.bytes,
        sidecars_cpu_seconds=work.crowd.cpu_seconds() - crowd,
    )


def connect_figures(connected: Connected, proxies: int) -> list[Figure]:
    """The rows of a first connection in plain text."""
    row = f"connect {proxies:,} proxies"
    note = f"the simulated sidecars themselves: {connected.sidecars_cpu_seconds:.1f} CPU s"
    return [
        figure(row, "seconds", connected.seconds, "s", Target(most=12.0), note),
        figure(row, "CPU", connected.cpu_seconds, "CPU s", Target(most=10.0)),
        figure(row, "first config", sum(connected.bytes.values()) / proxies / _KB, "KB"),
        figure("memory", "base resident", connected.base_kb / _KB, "MB", Target(most=250.0)),
        figure("memory", "a connection, plain", connected.connection_kb, "KB", Target(most=60.0)),
    ]


def mutual_figures(connected: Connected) -> list[Figure]:
    """The row of a first connection with mutual TLS."""
    return [figure("memory", "a connection, mTLS", connected.connection_kb, "KB", Target(most=170.0))]


def reconnect_figures(work: Work, first: Connected) -> list[Figure]:
    """All streams end at once and come back with what they hold; nothing has changed."""
    before, start = work.subject.usage(), time.monotonic()
    opened = work.crowd.ask(Reconnect(timeout=_TIMEOUT)).opened_seconds
    _rest(work)
    told = _settle(work, start, 0)
    after = work.subject.usage()
    known, row = ("clusters", "listeners"), "reconnect storm, with versions"
    share = sum(told.bytes.get(each, 0) for each in known) / sum(first.bytes.get(each, 0) for each in known)
    return [
        figure(row, "clusters, listeners", 100 * share, "%", Target(most=1.0)),
        figure(row, "seconds", max([opened, *told.seconds]), "s", Target(most=5.0)),
        figure(row, "CPU", after.cpu_seconds - before.cpu_seconds, "CPU s"),
        figure(row, "endpoints, routes", _sum(told.bytes, "endpoints", "routes") / len(work.nodes) / _KB, "KB"),
    ]


def _rest(work: Work) -> None:
    """Wait until the control plane does next to nothing: who has nothing to say sends no bytes to wait for."""
    end, spent = time.monotonic() + _TIMEOUT, 0.0
    while time.monotonic() < end:
        before, spent = spent, work.subject.usage().cpu_seconds
        if spent - before < _IDLE * _QUIET:
            return
        time.sleep(_QUIET)


def _sum(sizes: dict[str, int], *names: str) -> int:
    return sum(sizes.get(name, 0) for name in names)


# -- changes ----------------------------------------------------------------------------------------------------------

_RECORDED = {"dr": 0.0118, "service": 0.0111, "serviceentry": 0.0118}
"""CPU seconds for each proxy that Istio's control plane needed for a change, recorded at 500 services on two cores."""


def _targets(name: str, proxies: int) -> dict[str, Target]:
    if name == "vs":
        return {"p99": Target(most=1.0), "CPU": Target(most=1.3)}
    if name == "endpoint":
        return {"p99": Target(most=0.25), "CPU": Target(most=0.2)}
    recorded = _RECORDED.get(name)
    return {"CPU": Target(most=recorded and recorded * proxies * _SHARE, share=_SHARE)}


def change_figures(work: Work, name: str, turn: int) -> list[Figure]:
    """One change of a kind: how soon it is everywhere, what it costs, and who is told."""
    kind = changes.KINDS[name]
    cpu_seconds, told, expected = _measure(work, kind, turn)
    targets = _targets(name, len(work.nodes))
    reached = len(told.seconds)
    note = f"only {reached} of {expected} within {_TIMEOUT:.0f} s" if reached < expected else ""
    figures = [figure(kind.title, "proxies told", told.receivers, "", Target(exactly=expected), note)]
    if told.seconds:
        figures += [
            figure(kind.title, "p50", percentile(told.seconds, 0.5), "s"),
            figure(kind.title, "p99", percentile(told.seconds, 0.99), "s", targets.get("p99")),
        ]
    figures.append(figure(kind.title, "CPU", cpu_seconds, "CPU s", targets.get("CPU")))
    size = sum(told.bytes.values()) / max(told.receivers, 1) / _KB
    figures.append(figure(kind.title, "a proxy that is told", size, "KB"))
    return figures


def measure_cpu(work: Work, name: str, turn: int) -> float:
    """CPU seconds of one change."""
    return _measure(work, changes.KINDS[name], turn)[0]


def _measure(work: Work, kind: Kind, turn: int) -> tuple[float, Told, int]:
    change = kind.make(SERVICE, work.namespaces, turn)
    expected = sum(kind.concerns(node, SERVICE, work.namespaces) for node in work.nodes)
    work.crowd.ask(Watch(marker=change.marker))
    before, start = work.subject.usage(), time.monotonic()
    work.put(change)
    told = _settle(work, start, expected)
    after = work.subject.usage()
    take_back(work, change, expected)
    return after.cpu_seconds - before.cpu_seconds, told, expected


def take_back(work: Work, change: Change, expected: int) -> None:
    """Undo a change, and wait until that has reached everybody."""
    work.crowd.ask(Watch())
    start = time.monotonic()
    work.undo(change)
    _settle(work, start, expected)


def _settle(work: Work, since: float, expected: int, quiet: float = _QUIET) -> Told:
    return work.crowd.ask(Settle(since=since, expected=expected, quiet=quiet, timeout=_TIMEOUT))


# -- edits that change nothing ----------------------------------------------------------------------------------------

NOTHING = "edits that change nothing"


def nothing_figures(work: Work) -> list[Figure]:
    """Each edit, and the object as it was again: bytes that anybody got. In the end a change must still arrive."""
    place, quiet = work.subject.place, changes.quiet_objects()
    place.write(quiet)
    _settle(work, time.monotonic(), 0, quiet=2 * _QUIET)
    sizes: dict[str, int] = {}
    for edit in changes.edits(work.documents):
        work.crowd.ask(Watch())
        for text in (edit.text, None):
            start = time.monotonic()
            if text is None:
                place.write([edit.before])
            else:
                place.write_text(edit.before, text)
            told = _settle(work, start, 0, quiet=_SHORTLY)
        sizes[edit.title] = sum(told.bytes.values())
    place.remove(quiet)
    _settle(work, time.monotonic(), 0)
    _, told, expected = _measure(work, changes.KINDS["endpoint"], 999)
    if len(told.seconds) != expected:
        raise SystemExit("after the edits that change nothing a change did not reach everybody any more")
    guilty = ", ".join(title for title, size in sizes.items() if size)
    return [
        figure(NOTHING, "edits", len(sizes)),
        figure(NOTHING, "bytes", sum(sizes.values()), "", Target(exactly=0), note=guilty),
    ]


def figure(row: str, name: str, value: float, unit: str = "", target: Target | None = None, note: str = "") -> Figure:
    """One sample of a figure."""
    return Figure(row=row, name=name, unit=unit, samples=(value,), target=target, note=note)
