"""`python -m bench`: every target that Mizzen has for scale, beside what is measured on a generated mesh.

In: the sizes, the rows asked for, and perhaps another control plane to do the same work. Out: figures. Control plane,
sidecars and this process are three processes; CPU and memory are read for the first alone. Rows that need a control
plane of their own (mutual TLS, growth) start one; the other control plane has only the rows that need nothing but its
port, its process number and a way to give it objects.
"""

import contextlib
import functools
import itertools
import multiprocessing
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import msgspec

from bench import changes, compile, crowd_process, meshes, rows, serving
from bench.figures import Figure, Target
from bench.lateness import lateness_figures
from bench.rows import Connected, Work, figure, say
from bench.subjects import Folder, Place, Subject

CONNECT, MUTUAL, RECONNECT, NOTHING, LATENESS = "connect", "mtls", "reconnect", "nothing", "lag"
GROWTH, SCRATCH = "growth", "scratch"
ROWS = (CONNECT, *changes.KINDS, NOTHING, RECONNECT, LATENESS, MUTUAL, GROWTH, SCRATCH)
"""Every row, by the name that asks for it."""

_TARGETED = (500, 2, 25, 1000)
"""Services, pods of each, namespaces and proxies that the targets are for."""
_PUSHES = ("vs", "dr", "service", "serviceentry", "sidecar")
"""Changes that push enough to hold up the loop."""
_LATER = 1000
"""Turns from here on are of another row, so that nothing is told twice."""
_GROWTH, _GROWTH_PROXIES, _GROWTH_CHANGES = 4, 200, 2
_SCRATCH_GROWTH, _LINEAR = 10, 1.2
_FEW_QUERIES_SERVICES = 100


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """Another control plane, which runs already."""

    target: str
    pid: int
    place: Place


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be measured."""

    services: int
    pods: int
    namespaces: int
    proxies: int
    dialect: str
    rows: Sequence[str]
    repeat: int
    at_once: int

    @property
    def title(self) -> str:
        """The sizes, in words; other sizes than those of the targets say so."""
        sizes = (self.services, self.pods, self.namespaces, self.proxies)
        title = f"{_in_words(*sizes)}, dialect {self.dialect}; median of {self.repeat}"
        return title if sizes == _TARGETED else f"{title}; targets are for {_in_words(*_TARGETED)}"


def _in_words(services: int, pods: int, namespaces: int, proxies: int) -> str:
    return f"{services:,} services, {services * pods:,} pods, {namespaces} namespaces; {proxies:,} proxies"


def measure(plan: Plan) -> Iterator[list[Figure]]:
    """All rows that the plan names, one turn after the other."""
    yield from _own_rows(plan)
    if MUTUAL in plan.rows:
        yield _mutual(plan)
    if GROWTH in plan.rows:
        yield _growth(plan)
    if SCRATCH in plan.rows:
        yield _scratch(plan)


def measure_other(plan: Plan, other: Other) -> Iterator[list[Figure]]:
    """The same rows of another control plane; the mesh is given to it first, and left to it."""
    say(f"the other control plane at {other.target}")
    mesh = _Mesh(plan, plan.services, plan.proxies)
    other.place.write(mesh.documents)
    subject = Subject(target=other.target, pid=other.pid, place=other.place)
    with crowd_process.gather() as crowd:
        work = _work(plan, mesh, subject, crowd)
        first = rows.connect(work, other.target)
        if CONNECT in plan.rows:
            yield rows.connect_figures(first, plan.proxies)
        yield from _shared_rows(plan, work, first)


# -- control planes and crowds ----------------------------------------------------------------------------------------


class _Mesh:
    """A generated mesh and the sidecars that connect."""

    def __init__(self, plan: Plan, services: int, proxies: int) -> None:
        self.documents = list(meshes.documents(services, plan.pods, plan.namespaces))
        nodes = list(meshes.nodes(self.documents))
        if plan.dialect != "istio":
            for node in nodes:
                node["metadata"]["MIZZEN_DIALECT"] = plan.dialect
        # More proxies than pods are further replicas of the same.
        self.nodes: list[dict[str, Any]] = list(itertools.islice(itertools.cycle(nodes), proxies))


@contextlib.contextmanager
def _at_work(plan: Plan, mesh: _Mesh) -> Iterator[tuple[Work, serving.ControlPlane]]:
    """A control plane of our own over the mesh, and nobody connected yet."""
    with tempfile.TemporaryDirectory(prefix="mizzen-bench-") as name:
        folder = Folder(pathlib.Path(name) / "config")
        folder.write(mesh.documents)
        state = pathlib.Path(name) / "state"
        with serving.serve(folder.path, state) as plane, crowd_process.gather() as crowd:
            subject = Subject(target=plane.target(), pid=plane.pid, place=folder)
            yield _work(plan, mesh, subject, crowd), plane


def _work(plan: Plan, mesh: _Mesh, subject: Subject, crowd: crowd_process.CrowdProcess) -> Work:
    return Work(
        subject=subject,
        crowd=crowd,
        documents=mesh.documents,
        namespaces=plan.namespaces,
        nodes=mesh.nodes,
        at_once=plan.at_once,
    )


# -- rows -------------------------------------------------------------------------------------------------------------


def _own_rows(plan: Plan) -> Iterator[list[Figure]]:
    """Mizzen is started as often as it is connected to; the last one does the rest."""
    rest = [name for name in plan.rows if name not in (CONNECT, MUTUAL, GROWTH, SCRATCH)]
    if not rest and CONNECT not in plan.rows:
        return
    mesh = _Mesh(plan, plan.services, plan.proxies)
    for left in reversed(range(plan.repeat if CONNECT in plan.rows else 1)):
        with _at_work(plan, mesh) as (work, plane):
            say("connect")
            first = rows.connect(work, work.subject.target)
            if CONNECT in plan.rows:
                yield rows.connect_figures(first, plan.proxies)
            if left == 0:
                yield from _shared_rows(plan, work, first)
                if LATENESS in plan.rows:
                    say(LATENESS)
                    turns = range(_LATER, _LATER + plan.repeat)
                    yield lateness_figures(work, plane, _PUSHES, turns)
    if NOTHING in plan.rows:
        yield _query_runs(plan)


def _shared_rows(plan: Plan, work: Work, first: Connected) -> Iterator[list[Figure]]:
    """The rows that any control plane can be asked for."""
    for name in changes.KINDS:
        if name in plan.rows:
            yield from _repeated(plan, name, functools.partial(rows.change_figures, work, name))
    if NOTHING in plan.rows:
        say(NOTHING)
        yield rows.nothing_figures(work)
    if RECONNECT in plan.rows:
        yield from _repeated(plan, RECONNECT, lambda _: rows.reconnect_figures(work, first))


def _repeated(plan: Plan, name: str, run: Callable[[int], list[Figure]]) -> Iterator[list[Figure]]:
    say(name)
    return (run(turn) for turn in range(1, plan.repeat + 1))


def _query_runs(plan: Plan) -> list[Figure]:
    services = min(plan.services, _FEW_QUERIES_SERVICES)
    runs = compile.count_query_runs(services, plan.pods, plan.namespaces)
    guilty = ", ".join(f"{title} ({count})" for title, count in runs.items() if count)
    return [figure(rows.NOTHING, "query runs", sum(runs.values()), "", Target(exactly=0), note=guilty)]


def _mutual(plan: Plan) -> list[Figure]:
    say(MUTUAL)
    mesh = _Mesh(plan, plan.services, plan.proxies)
    with _at_work(plan, mesh) as (work, plane):
        state = str(plane.log.parent)
        return rows.mutual_figures(rows.connect(work, plane.target(serving.MUTUAL), authority=state))


def _growth(plan: Plan) -> list[Figure]:
    """What a change costs with few and with many services around it; the proxies are as many."""
    costs = []
    for services in (plan.services, _GROWTH * plan.services):
        say(f"{GROWTH}: {services} services")
        mesh = _Mesh(plan, services, min(plan.proxies, _GROWTH_PROXIES))
        with _at_work(plan, mesh) as (work, _):
            rows.connect(work, work.subject.target)
            turns = range(1, _GROWTH_CHANGES * plan.repeat + 1)
            costs.append([rows.measure_cpu(work, "vs", turn) for turn in turns])
    few, many = (sum(each) / len(each) for each in costs)
    row = f"growth, {_GROWTH}× the services"
    note = f"VirtualService change, {min(plan.proxies, _GROWTH_PROXIES)} proxies: {few:.3f} CPU s, then {many:.3f}"
    return [figure(row, "CPU of a change", many / few, "×", Target(most=1.5), note=note)]


def _scratch(plan: Plan) -> list[Figure]:
    """What compiling costs with few and with many services, each in a process of its own; once, for it takes long."""
    say(SCRATCH)
    few, many = (
        _in_new_process(compile.measure_scratch, services, plan.pods, plan.namespaces, plan.dialect)
        for services in (plan.services, _SCRATCH_GROWTH * plan.services)
    )
    row = f"growth, {_SCRATCH_GROWTH}× the services"
    target = Target(most=_SCRATCH_GROWTH * _LINEAR)
    note = f"a proxy of each namespace: {few:.2f} CPU s, then {many:.2f}"
    return [figure(row, "CPU from scratch", many / few, "×", target, note=note)]


def _in_new_process(function: Callable[..., float], *arguments: object) -> float:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *arguments).result()
