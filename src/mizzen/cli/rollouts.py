"""How far a Deployment is, and what holds it up.

In: Deployments and pods of an API server. Out: whether all replicas of the newest template are available, and lines
for an operator who waits in vain.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mizzen.errors import SourceError
from mizzen.sources.kube.client import Client
from mizzen.sources.kube.objects import Name

_TOLD_PODS = 5


class Rollout(NamedTuple):
    """A Deployment as it was seen."""

    name: Name
    found: Mapping[str, Any]

    def __str__(self) -> str:
        return str(self.name)

    @property
    def is_done(self) -> bool:
        """Whether what was asked last is available, and nothing older runs."""
        spec, status = self.found.get("spec") or {}, self.found.get("status") or {}
        wanted = spec.get("replicas", 1)
        return (
            bool(self.found)
            and status.get("observedGeneration", 0) >= self.found["metadata"].get("generation", 0)
            and status.get("updatedReplicas", 0) >= wanted
            and status.get("availableReplicas", 0) >= wanted
            and status.get("replicas", 0) <= status.get("updatedReplicas", 0)
        )

    @property
    def trouble(self) -> str:
        """What the Deployment's own conditions complain of, or how far it is."""
        status = self.found.get("status") or {}
        conditions = status.get("conditions") or ()
        bad = [each for each in conditions if each.get("status") == "False" or each.get("type") == "ReplicaFailure"]
        if bad:
            return "; ".join(str(each.get("message") or each.get("reason") or each.get("type")) for each in bad)
        wanted = (self.found.get("spec") or {}).get("replicas", 1)
        updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
        return f"{updated} of {wanted} replicas are updated, {available} are available"


async def describe_trouble(client: Client, rollout: Rollout) -> list[str]:
    """What the pods wait for; empty where they cannot be read."""
    labels = ((rollout.found.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    query = {"labelSelector": ",".join(f"{name}={value}" for name, value in labels.items())}
    try:
        body = await client.get(f"/api/v1/namespaces/{rollout.name.namespace}/pods", query)
    except SourceError as error:
        return [f"its pods cannot be read: {error}"]
    pods = msgspec.json.decode(body).get("items") or []
    return [line for pod in pods[:_TOLD_PODS] for line in _troubles(pod)]


def _troubles(pod: Mapping[str, Any]) -> Iterator[str]:
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield f"{name} is not scheduled: {condition.get('message') or condition.get('reason')}"
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = container.get("state") or {}
        halted = state.get("waiting") or state.get("terminated")
        if halted:
            why = ": ".join(text for text in (halted.get("reason"), halted.get("message")) if text)
            yield f"{name} container {container.get('name')}: {why or 'not running'}"
        elif not container.get("ready"):
            yield f"{name} container {container.get('name')}: not ready"
