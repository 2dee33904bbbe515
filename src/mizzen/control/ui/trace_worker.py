"""The process that works out traces, beside the control plane and behind it in priority.

In: on stdin, the state of the mesh by its changes, and questions. Out: on stdout, a verdict for each question, as JSON.
It has an engine of its own over copies of the objects, so that neither its work nor its memory holds up those that
serve proxies, and it can be killed. What it has compiled stays until the mesh changes. It ends with its stdin.

A proxy that is connected is compiled for as it described itself, a pod whose proxy is not as its manifest says.
"""

import contextlib
import datetime
import gc
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from mizzen.control.ui import trace_messages
from mizzen.control.ui.trace_messages import Changes, Question
from mizzen.diagnose.trace import told, verdict, walk, world_objects
from mizzen.diagnose.trace.world import Holdings, Workload, World
from mizzen.errors import MizzenError
from mizzen.incremental import Engine
from mizzen.model import mesh
from mizzen.model.proxy import Proxy

_NICE = 10
_NODES = 1_000_000
"""Values that the engine may remember beyond what changes."""


class Mirror:
    """The state of the mesh, as far as it was told."""

    def __init__(self) -> None:
        self.engine = Engine()
        self._places: dict[Any, Any] = {}
        self._proxies: dict[str, Proxy] = {}
        self._world: World | None = None

    def follow(self, changes: Changes) -> None:
        """Take changes in."""
        self._world = None
        if changes.table == "inputs":
            for key, value in changes.entries.items():
                # The control plane's engine could not take in such an object either, and says so.
                with contextlib.suppress(Exception):
                    _ = self.engine.remove(key) if value is None else self.engine.set(key, value)
        else:
            held: dict[Any, Any] = self._places if changes.table == "places" else self._proxies
            held.update(changes.entries)
            for key in [key for key, value in changes.entries.items() if value is None]:
                del held[key]

    def world(self, now: float) -> World:
        """The world as it is told to be."""
        if self._world is None:
            if len(self.engine) > _NODES:
                self.engine.collect()
            self._world = build_world(self.engine, self._places, self._proxies)
        self._world.now = datetime.datetime.fromtimestamp(now, datetime.UTC)
        return self._world


def build_world(engine: Engine, places: Mapping[Any, Any], proxies: Mapping[str, Proxy]) -> World:
    """The objects' world; connected proxies are as they are, and those of no pod stand beside the pods."""
    planned = world_objects.of_objects(engine, places)
    pods = [_with_proxy(pod, proxies.get(pod.reference)) for pod in planned.pods]
    known = {pod.reference for pod in pods}
    others = [_workload(name, who) for name, who in sorted(proxies.items()) if name not in known]
    printer = told.Printer()

    def hold(pod: Workload) -> Holdings:
        who = proxies.get(pod.reference)
        return world_objects.compile_holdings(engine, who, printer) if who is not None else planned.holdings(pod)

    return World(
        (*pods, *others),
        hold,
        db=engine,
        places=places,
        trust_domain=mesh.trust_domain(engine),
        domain=mesh.domain(engine),
    )


def _with_proxy(pod: Workload, who: Proxy | None) -> Workload:
    """The pod; one whose proxy is connected has a proxy, even where its manifest shows none."""
    return pod if who is None or pod.proxy else msgspec.structs.replace(pod, proxy=who.kind)


def _workload(reference: str, who: Proxy) -> Workload:
    name, _, namespace = reference.rpartition(".")
    return Workload(
        name=name,
        namespace=namespace,
        addresses=who.ip_addresses,
        labels=dict(who.labels),
        account=who.service_account or "default",
        proxy=who.kind,
        dns_capture=who.dns_capture,
    )


def describe(found: verdict.Trace, refusals: Mapping[str, str]) -> dict[str, Any]:
    """The document of `mizzen trace -o json`, with what the page shows beside it."""
    return {
        **verdict.to_json(found),
        "side": found.side,
        "reason": found.reason,
        "destination": found.destination,
        "warnings": list(_warnings(found, refusals)),
    }


def _warnings(found: verdict.Trace, refusals: Mapping[str, str]) -> Iterator[str]:
    """Where a proxy on the way does not hold what it should: the verdict is of what it should."""
    for side in dict.fromkeys(step.side for step in found.steps):
        if side in refusals:
            yield f"{side} has refused what it was sent, and works by older configuration: {refusals[side]}"


def answer(mirror: Mirror, question: Question) -> dict[str, Any]:
    """`verdict`, or `refused` with a status and a sentence."""
    try:
        found = walk.trace(mirror.world(question.now), question.request)
        return {"verdict": describe(found, question.refusals)}
    except MizzenError as bad:
        return {"refused": [422, str(bad)]}
    except Exception as error:  # A fault of ours about one request must not end the worker; the log has the place.
        traceback.print_exc()
        return {"refused": [500, f"the trace failed: {type(error).__name__}: {error}"]}


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the control plane has gone."""
    mirror = Mirror()
    while (message := trace_messages.read(source)) is not None:
        if isinstance(message, Changes):
            mirror.follow(message)
        else:
            sink.write(trace_messages.frame(msgspec.json.encode(answer(mirror, message))))
            sink.flush()


if __name__ == "__main__":
    os.nice(_NICE)
    gc.set_threshold(200_000, 20, 100)
    serve(sys.stdin.buffer, sys.stdout.buffer)
