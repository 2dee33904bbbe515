"""One run of `diff`: from two states of manifests to a report.

In: two paths, the mesh config, probes. Out: a `Report`. Both states go through one engine, the older first, so that
only what changed is compiled again; the edits are then undone one by one in it to see whose doing a change is. What a
cluster would add is foretold: pods that are not replaced keep their addresses from the one state to the other.
"""

import datetime
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import msgspec

from mizzen import settings
from mizzen.analysis import reports
from mizzen.api.meta import Key, Object
from mizzen.cli import analysis_run, offline
from mizzen.compile.resource import ResourceSet
from mizzen.diagnose import nodes
from mizzen.diagnose.change import blame, classes, connections, disruption, probes, report, stand_ins, told
from mizzen.diagnose.change.probes import Probe, Probed
from mizzen.diagnose.change.told import Dialect, Names, Told
from mizzen.diagnose.trace import walk, world_objects
from mizzen.diagnose.trace.verdict import Trace
from mizzen.incremental import Engine
from mizzen.local import foretold, inventory, workloads
from mizzen.model import mesh
from mizzen.sources.files import Contents
from mizzen.xds.responses import Responses

_MOST_UNDONE = 60
"""Of more edits than this all are named for every class: each is undone and compiled by itself."""
_MAKE_OTHERS = frozenset(
    {"ConfigMap", "DaemonSet", "Deployment", "Endpoints", "EndpointSlice", "Namespace", "Node", "Pod", "ReplicaSet"}
    | {"Service", "ServiceEntry", "StatefulSet"}
)
"""Kinds from which a cluster makes further objects."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    old: str
    new: str
    old_title: str
    new_title: str
    old_mesh: str = ""
    new_mesh: str = ""
    dialect: Dialect = "envoy"
    probes: tuple[Probe, ...] = ()


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """One state, complete."""

    contents: Contents
    mesh: foretold.Foretold
    config: Any
    """The mesh config in force."""
    told: Mapping[str, Told]
    pods: Mapping[str, Any]
    """What each pod is made of, with a proxy or without."""
    twins: Mapping[str, tuple[str, ...]]
    """For each pod the others of its labels and namespace."""
    traces: tuple[Trace, ...]


def compare(asked: Asked) -> report.Report:
    """Everything that differs."""
    with offline.collector_off():
        reader = told.Reader()
        before = offline.load_whole((asked.old,))
        contents = before, offline.load_whole((asked.new,), before)
        offline.tell_excess(*contents)
        bed = _Bed(asked.dialect, reader, _stand_ins(contents))
        old = bed.enter(contents[0], asked.old_mesh, asked.probes, None)
        new = bed.enter(contents[1], asked.new_mesh, asked.probes, old)
        found = classes.compare(old.told, new.told, reader, measure())
        edited = blame.edits(old.contents.objects, new.contents.objects)
        found = _blamed(bed, found, edited, old, new)
        pods = _pods(old, new)
        made = report.Report(
            old=asked.old_title,
            new=asked.new_title,
            proxies=len(new.told),
            edited=blame.say(edited, old.contents.objects, new.contents.objects),
            classes=found,
            pods=pods,
            probes=tuple(_probed(asked.probes, old, new, reader, pods)),
        )
    return _with_findings(asked, made)


def _stand_ins(contents: Iterable[Contents]) -> dict[Key, Object]:
    """What stands in, in both states, where neither has a proxy."""
    objects = {key: item for each in contents for key, item in each.objects.items()}
    if _has_proxy(objects):
        return {}
    injected = stand_ins.inject(objects, (planned.key.namespace for planned in workloads.expand(objects.values())))
    if injected and _has_proxy({**objects, **injected}):
        names = ", ".join(key.name for key in injected)
        click.echo(f"warning: no Namespace asks for injection: it is taken for granted in {names}", err=True)
        return injected
    made = stand_ins.make(objects)
    if made:
        click.echo(f"warning: there are no proxies: {len(made)} pods stand in for what is behind Services,", err=True)
        click.echo("warning: for clients in each namespace and for gateways; real ones may be told more", err=True)
    return made


def _has_proxy(objects: Mapping[Key, Object]) -> bool:
    return any(nodes.has_proxy(running.pod) for running in foretold.foretell(objects).pods.values())


class _Bed:
    """The engine that goes through the states."""

    def __init__(self, dialect: Dialect, reader: told.Reader, stand_in: Mapping[Key, Object]) -> None:
        self._dialect = dialect
        self._stand_in = stand_in
        self._reader = reader
        self._db: Engine | None = None
        self._held: dict[Key, Any] = {}

    def enter(self, contents: Contents, mesh_file: str, asked: Sequence[Probe], before: _State | None) -> _State:
        """Go on to this state."""
        complete = self._foretell(contents.objects, before.mesh if before is not None else foretold.Foretold())
        whole = msgspec.structs.replace(contents, objects=dict(complete.objects))
        if self._db is None:
            self._db = offline.fill(whole, mesh_file)
            self._held = dict(whole.objects)
            config = self._db.input(mesh.MESH)
        else:
            config = offline.mesh_config(whole, mesh_file, settings.load(os.environ)[0])
            self.put(whole.objects, config)
        db = self._db
        world = world_objects.of_objects(db, contents.origins, dialect=self._dialect, now=_now())
        return _State(
            contents=contents,
            mesh=complete,
            config=config,
            told=told.read(db, self._reader, self._dialect, before.told if before is not None else {}),
            pods={told.reference(pod): pod.spec for _, pod in told.pods(db)},
            twins=told.twins(db),
            traces=tuple(walk.trace(world, each.request) for each in asked),
        )

    def _foretell(self, objects: Mapping[Key, Object], before: foretold.Foretold) -> foretold.Foretold:
        return foretold.foretell({**objects, **self._stand_in}, self._dialect, before)

    def put(self, objects: Mapping[Key, Object], config: Any) -> None:
        """Hold these objects and no others."""
        assert self._db is not None
        self._db.set(mesh.MESH, config)
        for key in self._held.keys() - objects.keys():
            self._db.remove(key)
        for key, value in objects.items():
            self._db.set(key, value)
        self._held = dict(objects)

    def tell(self, references: Iterable[str]) -> dict[str, Mapping[str, ResourceSet]]:
        """What these proxies are told now."""
        assert self._db is not None
        wanted = set(references)
        return {
            told.reference(pod): told.read_one(self._db, self._reader, pod, self._dialect).sets
            for _, pod in told.pods(self._db)
            if told.reference(pod) in wanted and nodes.has_proxy(pod)
        }

    def undo(self, key: Key, old: _State, new: _State) -> None:
        """The new state without one edit."""
        before = old.contents.objects.get(key)
        written = {k: v for k, v in new.contents.objects.items() if k != key}
        if before is not None:
            written[key] = before
        config = old.config if key == inventory.MESH_CONFIG else new.config
        if key.kind in _MAKE_OTHERS:
            self.put(self._foretell(written, old.mesh).objects, config)
            return
        complete = {k: v for k, v in new.mesh.objects.items() if k != key}
        if before is not None:
            complete[key] = before
        self.put(complete, config)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def measure() -> classes.Measure:
    """The size of what the control plane would send over delta ADS."""
    responses = Responses()

    def measure(held: ResourceSet | None, target: ResourceSet, scope: Names | None, again: Names) -> int:
        difference = responses.difference(held, target, scope, again)
        return len(responses.delta(difference, "")) if difference else 0

    return measure


def _blamed(
    bed: _Bed, found: tuple[classes.ProxyClass, ...], edited: tuple[Key, ...], old: _State, new: _State
) -> tuple[classes.ProxyClass, ...]:
    first = {each.proxies[0]: new.told[each.proxies[0]].sets for each in found}
    sides = old.contents.objects, new.contents.objects

    def without(key: Key) -> Mapping[str, Mapping[str, ResourceSet]]:
        bed.undo(key, old, new)
        return bed.tell(first)

    if len(edited) > _MOST_UNDONE:
        owners: Mapping[str, tuple[Key, ...]] = dict.fromkeys(first, edited)
    else:
        owners = blame.assign(edited, first, without)
    return tuple(msgspec.structs.replace(each, objects=blame.say(owners[each.proxies[0]], *sides)) for each in found)


def _pods(old: _State, new: _State) -> report.Pods:
    """Pods that go and come; one that is replaced under its name does both."""
    replaced = {name for name, spec in old.pods.items() if name in new.pods and new.pods[name] != spec}
    replaced |= {n for n, t in old.told.items() if n in new.told and new.told[n].incarnation != t.incarnation}
    come = sorted((new.pods.keys() - old.pods.keys()) | replaced)
    size = measure()
    fresh = [new.told[name] for name in come if name in new.told and name not in replaced]
    return report.Pods(
        gone=tuple(sorted((old.pods.keys() - new.pods.keys()) | replaced)),
        new=tuple(come),
        pushed=sum(classes.pushed_bytes(None, each, size) for each in fresh),
    )


def _probed(
    asked: Sequence[Probe], old: _State, new: _State, reader: told.Reader, pods: report.Pods
) -> Iterable[Probed]:
    forecasts = (
        {
            name: disruption.forecast(reader, old.told[name], new.told[name])
            for name in old.told.keys() & new.told.keys()
        }
        if asked
        else {}
    )
    for probe, before, after in zip(asked, old.traces, new.traces, strict=True):
        gone = set(pods.gone)
        delivered = before.outcome == "delivered"
        named = {name: others for name, others in old.twins.items() if name != probe.request.source}
        fate = connections.judge(before.ways, forecasts, gone, delivered=delivered, twins=named)
        yield Probed(
            name=probe.name,
            before=probes.read_verdict(before),
            after=probes.read_verdict(after),
            connection=fate,
        )


def _with_findings(asked: Asked, made: report.Report) -> report.Report:
    """The report with what the analysis finds in the new state and did not find in the old."""
    sides = ((asked.old, asked.old_mesh), (asked.new, asked.new_mesh))
    old, new = (
        analysis_run.analyze(analysis_run.Asked(paths=(path,), all_namespaces=True, mesh_file=mesh_file)).findings
        for path, mesh_file in sides
    )
    known, now = [each.finding for each in old], [each.finding for each in new]
    fresh = reports.only_new(now, Counter(map(reports.fingerprint, known)))
    gone = reports.only_new(known, Counter(map(reports.fingerprint, now)))
    places = {id(each.finding): each.reference for each in new}
    return msgspec.structs.replace(
        made,
        resolved=len(gone),
        findings=tuple(
            report.NewFinding(
                level=each.level, code=each.code, object=each.origin, message=each.message, place=places[id(each)]
            )
            for each in fresh
        ),
    )
