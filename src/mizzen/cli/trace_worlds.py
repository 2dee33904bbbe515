"""The world that `mizzen trace` looks at: manifests, dumps, or a local mesh that runs.

In: paths on the command line, or the state of a local mesh. Out: a `World`. Manifests are completed as a mesh would
complete them. Of a mesh that runs, objects come from where its control plane reads them, and each proxy's resources
from its Envoy; where the two disagree, that is said once on stderr for each proxy that the request meets.
"""

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from mizzen.cli import offline, targets
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    from mizzen.diagnose.trace.world import Holdings, Workload, World

Dialect = Literal["istio", "envoy"]
_DUMP = "config_dump?include_eds"
_SHOWN = 5


def find_world(paths: Sequence[str], mesh: str, dialect: Dialect) -> "World":
    """The world that the manifests would make, with that mesh config; without any, that of the local mesh."""
    return of_manifests(paths, mesh, dialect) if paths else of_local_mesh(mesh)


def of_manifests(
    paths: Sequence[str], mesh_file: str, dialect: Dialect, now: datetime.datetime | None = None
) -> "World":
    """The world that the manifests would make, at that time or now."""
    from mizzen.diagnose.trace import world_objects
    from mizzen.local import foretold

    with offline.collector_off():
        contents = offline.load_whole(paths)
        offline.tell_excess(contents)
        complete = foretold.complete(contents.objects, dialect)
        db = offline.fill(msgspec.structs.replace(contents, objects=complete), mesh_file)
    return world_objects.of_objects(db, contents.origins, dialect=dialect, now=now or _now())


def of_dumps(paths: Sequence[str]) -> "World":
    """The world of the proxies whose dumps these are; a file may hold one of Envoy's or of a control plane's."""
    from mizzen.diagnose import dump
    from mizzen.diagnose.trace import world_dumps

    return world_dumps.of_dumps([dump.parse_dump(targets.read_file(path)) for path in paths], now=_now())


def of_local_mesh(name: str) -> "World":
    """The world of a local mesh."""
    from mizzen.diagnose.trace import world_objects

    state = targets.read_state(name)
    layout = targets.find_layout(name)
    with offline.collector_off():
        written, added = offline.load(state.manifests), offline.load((str(layout.config),))
        objects = {**written.objects, **added.objects}
        db = offline.fill(msgspec.structs.replace(added, objects=objects), "")
    places = {**added.origins, **written.origins}
    compiled = world_objects.of_objects(db, places, dialect="envoy", now=_now())
    admins = {f"{pod.name}.{pod.namespace}": pod.admin for pod in state.pods if pod.admin}
    return compiled.held_by(Asking(compiled, admins))


class Asking:
    """Asks Envoys for what they hold, and says where that is not what they were told."""

    def __init__(self, compiled: "World", admins: Mapping[str, str]) -> None:
        self._compiled = compiled
        self._admins = admins

    def __call__(self, pod: "Workload") -> "Holdings":
        from mizzen.diagnose import dump
        from mizzen.diagnose.trace import world_dumps, world_objects

        told = self._compiled.holdings(pod)
        admin = self._admins.get(pod.reference)
        if not admin:
            return told
        try:
            answer = targets.Proxy(name=pod.reference, admin=admin).get(_DUMP)
        except MizzenError as failed:
            click.echo(f"warning: {failed}; what the control plane would tell it is taken instead", err=True)
            return told
        dumped = dump.parse_dump(answer)
        who = world_dumps.read_proxy(dumped)
        if who.on_demand and self._compiled.db is not None:
            told = world_objects.compile_holdings(self._compiled.db, who)
        actual = world_dumps.complete(world_dumps.read_holdings(dumped, told.names), told)
        for line in _short(world_dumps.differences(told, actual)):
            click.echo(f"warning: {pod.reference}: {line}", err=True)
        return actual


def _short(lines: tuple[str, ...]) -> tuple[str, ...]:
    more = (f"and {len(lines) - _SHOWN} more; see `mizzen proxy-status POD`",) if len(lines) > _SHOWN else ()
    return (*lines[:_SHOWN], *more)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
