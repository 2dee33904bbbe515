"""WorkloadEntry: one workload outside Kubernetes, or one endpoint written into a ServiceEntry."""

from collections.abc import Mapping
from typing import ClassVar

from mizzen.api.message import Message, ProtoMessage, names
from mizzen.api.meta import Object
from mizzen.api.scalars import UInt32


class WorkloadEntrySpec(ProtoMessage, frozen=True, kw_only=True):
    """An address and what is known of it."""

    address: str = ""
    ports: Mapping[str, UInt32] = {}
    labels: Mapping[str, str] = {}
    network: str = ""
    locality: str = ""
    weight: UInt32 = 0
    service_account: str = ""


class Condition(Message, frozen=True, kw_only=True):
    """A condition as far as it is acted on; `Healthy` decides whether the workload gets traffic."""

    type: str = ""
    status: str = ""

    unread: ClassVar[frozenset[str]] = names(
        "lastProbeTime lastTransitionTime lastUpdateTime message reason observedGeneration"
    )


class WorkloadEntryStatus(Message, frozen=True, kw_only=True):
    """What the control plane has written of a workload's health."""

    conditions: tuple[Condition, ...] = ()

    unread: ClassVar[frozenset[str]] = names("observedGeneration validationMessages")


class WorkloadEntry(Object, frozen=True, kw_only=True):
    """The kind WorkloadEntry of networking.istio.io."""

    spec: WorkloadEntrySpec = WorkloadEntrySpec()
    status: WorkloadEntryStatus | None = None
