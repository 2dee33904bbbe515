"""Predictions held against a real mesh: what `trace` says of a request, and what the request then met.

`Situation` is one request with the manifests around it. `load_world` reads the objects that the mesh's control plane
reads and asks nobody else. `observe` sends the request and reads the first proxy's access log; a line tells its call by
the user agent, which goes into every request.
"""

import datetime
import shlex
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import yaml
from eventually import eventually_blocking
from traffic_certificates import ROOT
from traffic_mesh import TrafficMesh

from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.api.meta import Key
from mizzen.diagnose.trace import request, walk, world_objects
from mizzen.diagnose.trace.verdict import Trace
from mizzen.diagnose.trace.world import World
from mizzen.incremental import Engine
from mizzen.local.inventory import MESH_CONFIG
from mizzen.model.mesh import MESH
from mizzen.sources import files

_NONE = "-"


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A request and what is around it."""

    name: str
    url: str
    manifests: tuple[str, ...] = ()
    source: str = "client"
    headers: dict[str, str] = {}
    method: str = "GET"
    address: str = ""
    """The pod that is called, whatever the host resolves to."""
    door: str = ""
    """`POD:PORT` of a gateway that the request enters, so that it comes from outside."""
    certain: bool = True
    foretold: bool = True
    """False where what happens is the program's to choose."""
    takes: float = 0.0
    answers: int = 200
    """What the program is asked to take, and to answer."""
    earlier: int = 0
    """Requests before the one that counts."""
    link: str = ""
    """The link that breaks."""
    cause: str = ""
    """`Kind/name` of the object to blame."""


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What the source got, and what its proxy wrote down."""

    status: int
    flags: frozenset[str]
    details: str
    line: str = ""


def load_world(mesh: TrafficMesh) -> World:
    """The world as the mesh's control plane reads it: the manifests, then what the mesh adds."""
    written, added = files.load([str(mesh.local.manifests)]), files.load([str(mesh.local.layout.config)])
    objects: dict[Key, Any] = {**written.objects, **added.objects}
    db = Engine()
    for key, value in objects.items():
        db.set(key, value)
    db.set(MESH, merge_mesh_config(yaml.safe_load(objects[MESH_CONFIG].data["mesh"]))[0])
    places = {**added.origins, **written.origins}
    return world_objects.of_objects(db, places, now=datetime.datetime.now(datetime.UTC))


def predict(mesh: TrafficMesh, world: World, situation: Situation) -> Trace:
    """What the request will meet."""
    scheme, host, port, path = request.parse_target(situation.url)
    pod = mesh.pod(situation.source)
    called = situation.door.partition(":")[0] or situation.address
    return walk.trace(
        world,
        request.Request(
            source=walk.OUTSIDE if situation.door else f"{pod.name}.{pod.namespace}",
            scheme=scheme,
            host=host,
            port=port,
            path=path,
            method=situation.method,
            headers=tuple(situation.headers.items()),
            address=mesh.pod(called).address if called else "",
            takes=situation.takes,
            answers=situation.answers,
            earlier=situation.earlier,
        ),
    )


def observe(mesh: TrafficMesh, situation: Situation) -> Observed:
    """What it met."""
    _, host, port, _ = request.parse_target(situation.url)
    logger = situation.door.partition(":")[0] or situation.source
    if situation.earlier:
        mesh[situation.source].send(situation.url, count=situation.earlier)
    seen = len(_log(mesh, logger))
    agent = uuid.uuid4().hex
    program = mesh[situation.source]
    status = 0
    if situation.url.startswith("tcp://"):
        program.connect(f"{host}:{port}", timeout=2)
    else:
        options = {"tls": {"ca": ROOT.pem}} if situation.url.startswith("https") else {}
        status = program.get(
            situation.url,
            method=situation.method,
            headers={**situation.headers, **_wishes(situation), "user-agent": agent},
            address=_address(mesh, situation, port),
            **options,
        ).status
    if not mesh.pod(logger).sidecar or (situation.door and not status):
        return Observed(status=status, flags=frozenset(), details="")
    return _read(eventually_blocking(_finder(mesh, logger, seen, agent, port)))


def _wishes(situation: Situation) -> dict[str, str]:
    """The headers by which the program knows how to answer."""
    slow = {"x-delay": str(situation.takes)} if situation.takes else {}
    return {**slow, **({"x-answer": str(situation.answers)} if situation.answers != 200 else {})}


def _address(mesh: TrafficMesh, situation: Situation, port: int) -> str:
    """Where the program connects to; empty where the host's name says it."""
    if situation.door:
        pod, _, own = situation.door.partition(":")
        return f"{mesh.pod(pod).address}:{own}"
    return f"{mesh.pod(situation.address).address}:{port}" if situation.address else ""


def _finder(mesh: TrafficMesh, source: str, seen: int, agent: str, port: int) -> Callable[[], str]:
    """The new line of the call: the one with its agent, or that of a connection to the port."""

    def find() -> str:
        new = _log(mesh, source)[seen:]
        return next((line for line in new if agent in line or ('"- - -"' in line and f":{port} " in line)), "")

    return find


def _log(mesh: TrafficMesh, source: str) -> list[str]:
    pod = mesh.pod(source)
    if not pod.sidecar:
        return []
    path = mesh.local.layout.log(pod.namespace, pod.name, "istio-proxy")
    return path.read_text(errors="replace").splitlines()


def _read(line: str) -> Observed:
    values = shlex.split(line.partition("] ")[2])
    _, status, flags, details = values[:4]
    return Observed(
        status=int(status),
        flags=frozenset(flags.split(",")) - {_NONE},
        details="" if details == _NONE else details,
        line=line,
    )
