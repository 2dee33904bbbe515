"""What to do next so that the pods that run become those that should.

A pure function of what is wanted and what is there, called again after every change: it never waits, it just leaves
out what must wait. A new generation of a Deployment starts beside the old one, which goes when the new one is ready;
the pods of a StatefulSet are replaced in place, one at a time, the highest number first, each only when all others are
ready; a pod that nobody wants goes at once.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mizzen.api.meta import Key
from mizzen.local.workloads import PlannedPod


class RunningPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that exists, ready or not."""

    key: Key
    owner: Key
    ordinal: int
    revision: str
    ready: bool
    stopping: bool = False


class Start(msgspec.Struct, frozen=True):
    """Make this pod."""

    planned: PlannedPod


class Stop(msgspec.Struct, frozen=True):
    """Take this pod away, after its endpoints."""

    key: Key
    reason: str


Action = Start | Stop


def plan(desired: Iterable[PlannedPod], running: Iterable[RunningPod]) -> tuple[Action, ...]:
    """Stops before starts, each by namespace and name; empty when all that can be done is done."""
    wanted = {planned.key: planned for planned in desired}
    present = {pod.key: pod for pod in running}
    stops = [*_unwanted(wanted, present), *_outdated(wanted, present)]
    starts = [Start(wanted[key]) for key in sorted(wanted.keys() - present.keys())]
    return (*sorted(stops, key=lambda stop: stop.key), *starts)


def _unwanted(wanted: Mapping[Key, PlannedPod], present: Mapping[Key, RunningPod]) -> list[Stop]:
    """Pods whose names nobody asks for; an old generation stays until the new one is ready."""
    stops = []
    for key in present.keys() - wanted.keys():
        pod = present[key]
        if pod.stopping:
            continue
        successors = [planned for planned in wanted.values() if planned.owner == pod.owner]
        replaced = [planned for planned in successors if planned.revision != pod.revision]
        if not replaced:
            stops.append(Stop(key, "no longer wanted" if successors else f"{pod.owner} is gone"))
        elif all(_serves(planned, present) for planned in replaced):
            stops.append(Stop(key, f"replaced by revision {replaced[0].revision}"))
    return stops


def _outdated(wanted: Mapping[Key, PlannedPod], present: Mapping[Key, RunningPod]) -> list[Stop]:
    """Pods that keep their name and change: one an owner, and for StatefulSets only while the others are ready."""
    changed: dict[Key, list[RunningPod]] = {}
    for key in wanted.keys() & present.keys():
        if present[key].revision != wanted[key].revision:
            changed.setdefault(present[key].owner, []).append(present[key])
    stops = []
    for owner, pods in changed.items():
        siblings = [pod for pod in present.values() if pod.owner == owner]
        expected = [planned for planned in wanted.values() if planned.owner == owner]
        candidate = max(pods, key=lambda pod: pod.ordinal)
        if candidate.stopping or not _all_others_ready(candidate, siblings, expected):
            continue
        stops.append(Stop(candidate.key, f"changes to revision {wanted[candidate.key].revision}"))
    return stops


def _all_others_ready(candidate: RunningPod, siblings: Sequence[RunningPod], expected: Sequence[PlannedPod]) -> bool:
    """A pod that does not work itself holds nobody up: it is replaced whatever the others do."""
    if not candidate.ready:
        return not any(pod.stopping for pod in siblings)
    others = [pod for pod in siblings if pod.key != candidate.key]
    return len(others) + 1 >= len(expected) and all(pod.ready and not pod.stopping for pod in others)


def _serves(planned: PlannedPod, present: Mapping[Key, RunningPod]) -> bool:
    pod = present.get(planned.key)
    return pod is not None and pod.ready and pod.revision == planned.revision and not pod.stopping
