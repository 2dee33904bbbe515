"""Predictions of the truth suite and what really happened, in the same words.

`predict` asks `trace` about one fault in a world of objects. `observe` sends the request from the pod's own program and
notes when; the faults go one after the other, so that the lines of all Envoys' access logs within those moments are of
that request and of nothing else. `settle` waits until every Envoy has written its lines down, and `read_lines` reads
them. `compare` holds the two against each other: what the caller got, what the first Envoy wrote down, and what the one
wrote down that is said to answer.
"""

import collections
import datetime
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import yaml
from eventually import eventually_blocking
from fault_cases import Fault
from traffic_certificates import ROOT
from traffic_mesh import TrafficMesh
from traffic_programs import Answer

from mizzen.api.mesh.merge import merge_mesh_config
from mizzen.api.meta import Key
from mizzen.diagnose.trace import request, walk, world_objects
from mizzen.diagnose.trace.world import World
from mizzen.incremental import Engine
from mizzen.local import runtime
from mizzen.local.inventory import MESH_CONFIG
from mizzen.model.mesh import MESH
from mizzen.sources import files

_NONE = "-"
_FIELD = re.compile(r'"[^"]*"|\S+')
_PATIENCE = 4.0
_APART = 0.01
"""Seconds between two faults; logs count milliseconds."""
_UNFINISHED = ("tls", "filter_chain", "secret", "listener")
"""Links at which a caller's own TLS ends, so that it sees no answer whatever an Envoy wrote."""
_WRITTEN_SECONDS = 60.0
"""Envoy writes its log every ten."""
_CALLERS = ("client.traffic", "scoped.scoped", "blind.blind")
_STRICT = "locked"
_CLIENT_FIRST = (9001, 9002)
"""Ports whose program waits for its client."""
_DELIVERED = ("delivered", "responded", "redirected")


class Foretold(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the prediction file."""

    name: str
    outcome: str
    status: int
    flag: str
    details: str
    side: str
    """Who is said to answer."""
    first: tuple[int, str, str]
    """Status, flag and details of the first proxy."""
    certain: bool
    depends_on: tuple[str, ...]
    link: str
    cause: str
    reason: str


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an access log."""

    pod: str
    at: float
    status: int
    flags: frozenset[str]
    details: str
    text: str


class Met(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller got, and when."""

    name: str
    status: int
    heard: bool
    """Whether a connection below HTTP gave what the program says."""
    error: str
    began: float
    ended: float


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction beside what happened."""

    fault: Fault
    foretold: Foretold
    met: Met
    lines: tuple[Line, ...]
    wrong: tuple[str, ...]
    """In what they differ: `caller`, `status`, `flag` or `details`, with the values."""

    @property
    def agrees(self) -> bool:
        """Whether status and flags are the same everywhere."""
        return all(text.startswith("details") for text in self.wrong)

    @property
    def predicted_class(self) -> str:
        status, flag, _ = self.foretold.first
        return _class(status, _flags(flag))

    @property
    def observed_class(self) -> str:
        first = self.lines[0] if self.lines else None
        return _class(first.status, first.flags) if first else _class(self.met.status, frozenset())


def _class(status: int, flags: frozenset[str]) -> str:
    return f"{status or 'none'} {','.join(sorted(flags)) or _NONE}"


def _flags(text: str) -> frozenset[str]:
    return frozenset(text.split(",")) - {_NONE, ""}


# -- before -----------------------------------------------------------------------------------------------------------


def load_world(mesh: TrafficMesh) -> World:
    """The world as the mesh's control plane reads it: the manifests, then what the mesh adds to them."""
    written, added = files.load([str(mesh.local.manifests)]), files.load([str(mesh.local.layout.config)])
    objects: dict[Key, Any] = {**written.objects, **added.objects}
    db = Engine()
    for key, value in objects.items():
        db.set(key, value)
    db.set(MESH, merge_mesh_config(yaml.safe_load(objects[MESH_CONFIG].data["mesh"]))[0])
    places = {**added.origins, **written.origins}
    return world_objects.of_objects(db, places, now=datetime.datetime.now(datetime.UTC))


def predict(mesh: TrafficMesh, world: World, fault: Fault) -> Foretold:
    """What the request will meet."""
    scheme, host, port, path = request.parse_target(fault.url)
    pod = mesh.pod(fault.source)
    called = fault.door.partition(":")[0] or fault.address
    headers = {**fault.headers, **({"host": fault.host} if fault.host else {})}
    found = walk.trace(
        world,
        request.Request(
            source=walk.OUTSIDE if fault.door else f"{pod.name}.{pod.namespace}",
            scheme=scheme,
            host=host,
            port=port,
            path=path,
            method=fault.method,
            headers=tuple(headers.items()),
            address=mesh.pod(called).address if called else "",
            client=pod.address if fault.door else "",
            takes=fault.takes,
            answers=fault.answers,
            earlier=fault.earlier,
            at_once=fault.at_once,
            gives_up=fault.gives_up,
            authorizer=fault.authorizer,
            certificate=fault.papers.get("certificate", "").encode(),
        ),
    )
    cause = found.cause
    return Foretold(
        name=fault.name,
        outcome=found.outcome,
        status=found.status,
        flag=found.flag,
        details=found.details,
        side=found.side,
        first=found.seen_by_client,
        certain=found.certain,
        depends_on=found.depends_on,
        link=found.link,
        cause=f"{cause.kind}/{cause.namespace}/{cause.name}" if cause is not None else "",
        reason=found.reason,
    )


# -- the request ------------------------------------------------------------------------------------------------------


def observe(mesh: TrafficMesh, fault: Fault) -> Met:
    """Sends it, after those that come before it."""
    if fault.earlier:
        _send(mesh, fault, count=fault.earlier)
    time.sleep(_APART)
    began = time.time()
    if not fault.url.startswith("http"):
        heard, error = (_call if fault.url.startswith("grpc") else _connect)(mesh, fault)
        return Met(name=fault.name, status=0, heard=heard, error=error, began=began, ended=_after())
    answers = _send(mesh, fault, count=fault.at_once)
    ended = _after()
    status = collections.Counter(answer.status for answer in answers).most_common(1)[0][0]
    return Met(name=fault.name, status=status, heard=False, error=answers[0].error, began=began, ended=ended)


def _after() -> float:
    """Until when an Envoy may still begin what belongs to a fault."""
    time.sleep(_APART)
    return time.time()


def _send(mesh: TrafficMesh, fault: Fault, *, count: int) -> list[Answer]:
    wishes = {"x-delay": str(fault.takes)} if fault.takes else {}
    wishes |= {"x-close": "yes"} if not fault.answers else {}
    wishes |= {"x-answer": str(fault.answers)} if fault.answers not in (0, 200) else {}
    wishes |= {"x-answer": str(fault.authorizer)} if fault.authorizer else {}
    wishes |= {"host": fault.host} if fault.host else {}
    options: dict[str, Any] = {"tls": _own_tls(fault)} if fault.url.startswith("https") else {}
    return mesh[fault.source].send(
        fault.url,
        count=count,
        workers=count,
        method=fault.method,
        headers={**fault.headers, **wishes},
        address=_address(mesh, fault),
        timeout=fault.gives_up or _PATIENCE + fault.takes,
        reuse=False,
        **options,
    )


def _own_tls(fault: Fault) -> dict[str, str]:
    return {**({"ca": ROOT.pem} if fault.is_wary else {}), **fault.papers}


def _connect(mesh: TrafficMesh, fault: Fault) -> tuple[bool, str]:
    _, host, port, _ = request.parse_target(fault.url)
    tls = {"tls": {"sni": host, **_own_tls(fault)}} if fault.url.startswith("tls") else {}
    address = _address(mesh, fault) or f"{host}:{port}"
    said = "hello\n" if port in _CLIENT_FIRST else ""
    (line,) = mesh[fault.source].connect(address, say=said, timeout=_PATIENCE, **tls)
    return bool(line.lines), line.error


def _call(mesh: TrafficMesh, fault: Fault) -> tuple[bool, str]:
    """A call of gRPC."""
    _, host, port, _ = request.parse_target(fault.url)
    (call,) = mesh[fault.source].grpc(f"{host}:{port}", seconds=_PATIENCE)
    return call.code == "OK", call.code


def _address(mesh: TrafficMesh, fault: Fault) -> str:
    """Where the program connects to; empty where the host's name says it."""
    if fault.door:
        pod, _, port = fault.door.partition(":")
        return f"{mesh.pod(pod).address}:{port}"
    port = request.parse_target(fault.url)[2]
    return f"{mesh.pod(fault.address).address}:{port}" if fault.address else ""


# -- what was written down ---------------------------------------------------------------------------------------------


def settle(mesh: TrafficMesh) -> None:
    """Waits until every Envoy has written down a request that came after all others."""
    mark = f"last-{uuid.uuid4().hex}"
    for pod in mesh.local.proxies():
        headers = {"user-agent": mark}
        if pod.name == _STRICT:  # Only who has a certificate is heard there.
            mesh["client"].send(f"http://settled.{_STRICT}/", headers=headers, timeout=_PATIENCE)
        else:
            address = f"{pod.address}:8080"
            mesh["outer"].send(f"http://{mark}.example.com/", headers=headers, address=address, timeout=_PATIENCE)
    for pod in mesh.local.proxies():
        _wait_for(mesh, pod, mark)


def _wait_for(mesh: TrafficMesh, pod: runtime.Pod, mark: str) -> None:
    eventually_blocking(lambda: mark in _read_log(mesh, pod.namespace, pod.name), _WRITTEN_SECONDS)


def _read_log(mesh: TrafficMesh, namespace: str, name: str) -> str:
    return mesh.local.layout.log(namespace, name, "istio-proxy").read_text(errors="replace")


def read_lines(mesh: TrafficMesh) -> list[Line]:
    """All lines of all Envoys, the earliest first; at the same moment those of callers come first."""
    found = []
    for pod in mesh.local.proxies():
        whole, _, _ = _read_log(mesh, pod.namespace, pod.name).rpartition("\n")  # Envoy may be in the midst of a line.
        for text in whole.splitlines():
            if text.startswith("[20") and "] " in text:
                found.append(_read_line(f"{pod.name}.{pod.namespace}", text))
    return sorted(found, key=lambda line: (line.at, line.pod not in _CALLERS, not line.pod.endswith(".gateways")))


def _read_line(pod: str, text: str) -> Line:
    moment, _, rest = text.removeprefix("[").partition("] ")
    _, status, flags, details, termination = _FIELD.findall(rest)[:5]
    return Line(
        pod=pod,
        at=datetime.datetime.fromisoformat(moment).timestamp(),
        status=int(status),
        flags=_flags(flags),
        details=next((each for each in (details, termination) if each != _NONE), ""),
        text=text,
    )


# -- after ------------------------------------------------------------------------------------------------------------


def compare(fault: Fault, foretold: Foretold, met: Met, lines: Iterable[Line]) -> Compared:
    """A prediction beside what happened."""
    own = tuple(line for line in lines if int(met.began * 1000) / 1000 <= line.at <= met.ended)
    wrong = [*_caller(fault, foretold, met)]
    if fault.at_once > 1:
        own = tuple(_prevailing(own))
    if own:
        wrong += _written(own[0], *foretold.first)
    elif _flags(foretold.first[1]):
        wrong.append(f"flag {foretold.first[1]} of {foretold.side}, and no Envoy wrote anything down")
    answering = [line for line in own[1:] if line.pod == foretold.side]
    if answering and own[0].pod != foretold.side and foretold.outcome != "delivered":
        wrong += _written(answering[-1], foretold.status, foretold.flag, foretold.details)
    return Compared(fault=fault, foretold=foretold, met=met, lines=own, wrong=tuple(wrong))


def _prevailing(lines: Sequence[Line]) -> list[Line]:
    """One line of the most frequent kind for each Envoy, of many requests at once."""
    by_pod: dict[str, list[Line]] = {}
    for line in lines:
        by_pod.setdefault(line.pod, []).append(line)
    found = []
    for own in by_pod.values():
        kind = collections.Counter((line.status, line.flags) for line in own).most_common(1)[0][0]
        found.append(next(line for line in own if (line.status, line.flags) == kind))
    return found


def _caller(fault: Fault, foretold: Foretold, met: Met) -> list[str]:
    if not fault.url.startswith("http"):
        expected = foretold.outcome in _DELIVERED
        return [] if met.heard == expected else [f"caller heard {met.heard} ({met.error}), said was {foretold.outcome}"]
    expected = 0 if fault.url.startswith("https") and foretold.link in _UNFINISHED else foretold.status
    return [] if met.status == expected else [f"caller got {met.status} ({met.error}) for {expected}"]


def _written(line: Line, status: int, flag: str, details: str) -> list[str]:
    wrong = []
    if line.status != status:
        wrong.append(f"status {line.status} at {line.pod} for {status}")
    if line.flags != _flags(flag):
        wrong.append(f"flag {','.join(sorted(line.flags)) or _NONE} at {line.pod} for {flag}")
    if _plain(line.details) != _plain(details):
        wrong.append(f"details {line.details!r} at {line.pod} for {details!r}")
    return wrong


def _plain(details: str) -> str:
    """Without the other names in a workload's certificate, which are the authority's to choose."""
    return re.sub(r"(SANs_are_\[spiffe:[^],]*)[^]]*", r"\1", details)


# -- the matrix -------------------------------------------------------------------------------------------------------


def confusion(compared: Iterable[Compared]) -> str:
    """What was said, row by row, and what happened."""
    counts: dict[str, collections.Counter[str]] = {}
    for each in compared:
        counts.setdefault(each.predicted_class, collections.Counter())[each.observed_class] += 1
    rows = [f"{'foretold':<16} {'number':>6}  happened"]
    for said, happened in sorted(counts.items()):
        listed = ", ".join(f"{kind}: {number}" for kind, number in sorted(happened.items()))
        rows.append(f"{said:<16} {sum(happened.values()):>6}  {listed}")
    return "\n".join(rows)


def by_family(compared: Sequence[Compared]) -> str:
    """How many of each family, and how many of them were right."""
    totals: Mapping[str, list[Compared]] = collections.defaultdict(list)
    for each in compared:
        totals[each.fault.family].append(each)
    return "\n".join(
        f"{family:<16} {len(own):>4} agree {sum(e.agrees for e in own):>4}"
        f" certain {sum(e.foretold.certain for e in own):>4}"
        f" blamed {sum(e.foretold.cause == e.fault.cause for e in own):>4}"
        for family, own in totals.items()
    )
