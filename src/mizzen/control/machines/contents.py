"""What is written of a workload outside Kubernetes, and who may have it written.

In: a proxy that names a WorkloadGroup (or a WorkloadEntry that there is), the group, an entry as it stands. Out: the
entry's name and document, the annotations that say who looks after it, the condition of its health. Names, labels and
annotations are Istio's, so that entries change hands between istiod and Mizzen.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.workload_group import WorkloadGroup
from mizzen.control.times import format_micro_time, parse_time
from mizzen.model.proxy import Proxy
from mizzen.model.spiffe import Identity

GROUP = "istio.io/autoRegistrationGroup"
CONTROLLER = "istio.io/workloadController"
CONNECTED_AT = "istio.io/connectedAt"
DISCONNECTED_AT = "istio.io/disconnectedAt"
HEALTH_CHECKS = "proxy.istio.io/health-checks-enabled"
HEALTHY = "Healthy"
"""The type of the condition."""

_NAMES = ("AUTO_REGISTER_GROUP", "WORKLOAD_ENTRY")
_LOCALITY = "istio-locality"
_TUNNEL = "networking.istio.io/tunnel"
_LONGEST_NAME = 253
_PRECISION = 1e-5
"""Seconds by which a moment that was written down may differ from itself."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What a proxy says of the workload that it stands for."""

    namespace: str
    group: str = ""
    """The WorkloadGroup that it is to be registered by."""
    entry: str = ""
    """The WorkloadEntry that somebody wrote for it."""
    address: str
    network: str = ""
    locality: str = ""
    labels: Mapping[str, str] = {}
    tunnels: bool = False
    probes: bool = False
    """Whether its agent probes the workload's health."""

    @property
    def key(self) -> Key:
        """Its entry."""
        return Key("WorkloadEntry", self.namespace, self._name() if self.group else self.entry)

    @property
    def group_key(self) -> Key:
        """Its group."""
        return Key("WorkloadGroup", self.namespace, self.group)

    def _name(self) -> str:
        parts = (self.group, self.address.replace(":", "-"), self.network)
        # The end tells machines of one group apart.
        return "-".join(part for part in parts if part)[-_LONGEST_NAME:].lstrip("-.")


def read_machine(proxy: Proxy) -> Machine | None:
    """None for a proxy that stands for nothing outside Kubernetes."""
    if not any(name in proxy.metadata for name in _NAMES):
        return None  # Most are pods.
    metadata: Mapping[str, Any] = msgspec.json.decode(proxy.metadata)
    group, entry = (str(metadata.get(name) or "") for name in _NAMES)
    if not group and not entry:
        return None
    config = metadata.get("PROXY_CONFIG")
    return Machine(
        namespace=proxy.namespace,
        group=group,
        entry=entry,
        address=proxy.ip_addresses[0],
        network=proxy.network,
        locality=str(proxy.locality),
        labels=dict(proxy.labels),
        tunnels=str(metadata.get("ENABLE_HBONE", "")).lower() == "true",
        probes=isinstance(config, Mapping) and bool(config.get("readinessProbe")),
    )


def build_entry(machine: Machine, group: WorkloadGroup, version: str) -> dict[str, Any]:
    """The document of a new entry; `version` is the one at which the group is read."""
    given, template = group.spec.metadata, group.spec.template
    labels = dict(template.labels) if template is not None else {}
    labels |= given.labels if given is not None else {}
    labels |= machine.labels
    labels.pop(_LOCALITY, None)
    if machine.tunnels:
        labels[_TUNNEL] = "http"
    annotations = {GROUP: group.metadata.name, **(given.annotations if given is not None else {})}
    if machine.probes:
        annotations[HEALTH_CHECKS] = "true"
    spec: dict[str, Any] = {
        "address": machine.address,
        "ports": dict(template.ports) if template is not None else {},
        "labels": labels,
        "network": machine.network or (template.network if template is not None else ""),
        "locality": machine.locality or (template.locality if template is not None else ""),
        "weight": template.weight if template is not None else 0,
        "serviceAccount": group_account(group),
    }
    owner = {
        "apiVersion": f"networking.istio.io/{version}",
        "kind": "WorkloadGroup",
        "name": group.metadata.name,
        "uid": group.metadata.uid,
        "controller": True,
    }
    metadata = {
        "name": machine.key.name,
        "namespace": machine.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner],
    }
    return {
        "apiVersion": f"networking.istio.io/{version}",
        "kind": "WorkloadEntry",
        "metadata": metadata,
        "spec": {name: value for name, value in spec.items() if value},
    }


def group_account(group: WorkloadGroup) -> str:
    """The service account of a group's workloads; empty where it leaves that open."""
    return group.spec.template.service_account if group.spec.template is not None else ""


def refusal(identity: Identity | None, namespace: str, account: str) -> str:
    """Why a caller may not have the entry of this namespace and account; empty if it may."""
    if identity is None:
        return "registration of WorkloadEntry requires a verified identity"
    if identity.namespace != namespace:
        return f'registration of WorkloadEntry namespace mismatch: "{identity.namespace}" vs "{namespace}"'
    if account and identity.service_account != account:
        return f'registration of WorkloadEntry service account mismatch: "{identity.service_account}" vs "{account}"'
    return ""


# -- who looks after an entry -------------------------------------------------------------------------------------


def connected(instance: str, at: float) -> dict[str, str | None]:
    """A merge patch of annotations: the machine is connected to this instance."""
    return {CONTROLLER: instance, CONNECTED_AT: format_micro_time(at), DISCONNECTED_AT: None}


def disconnected(at: float) -> dict[str, str | None]:
    """A merge patch of annotations: it is connected no more."""
    return {CONNECTED_AT: None, DISCONNECTED_AT: format_micro_time(at)}


def is_connected(instance: str, at: float, annotations: Mapping[str, str]) -> bool:
    """Whether an entry says that its machine is connected to this instance, since that time."""
    since = parse_time(annotations.get(CONNECTED_AT, ""))
    return since is not None and abs(since - at) < _PRECISION and annotations.get(CONTROLLER) == instance


def is_older(at: float, annotations: Mapping[str, str]) -> bool:
    """Whether something is known of the entry that happened after a connection of that time began."""
    known = (parse_time(annotations.get(name, "")) for name in (CONNECTED_AT, DISCONNECTED_AT))
    return any(moment is not None and moment > at + _PRECISION for moment in known)


def is_abandoned(annotations: Mapping[str, str], now: float, *, grace: float, longest: float) -> bool:
    """Whether a machine has not come back in time; or is said to be connected for longer than connections live,
    since whom it was connected to went with it. `longest` 0 means that they live forever."""
    since = annotations.get(CONNECTED_AT, "")
    if since:
        began = parse_time(since)
        return began is not None and 0 < longest < now - began
    left = annotations.get(DISCONNECTED_AT, "")
    ended = parse_time(left)
    return bool(left) and (ended is None or now - ended >= grace)


# -- health -------------------------------------------------------------------------------------------------------


def merge_condition(
    conditions: Iterable[Mapping[str, Any]], healthy: bool, message: str, now: float
) -> list[Mapping[str, Any]] | None:
    """The conditions with the one of health as it is now; None where it is there already."""
    status = "True" if healthy else "False"
    found = {str(each.get("type")): each for each in conditions}
    before = found.get(HEALTHY, {})
    if (before.get("status"), before.get("message", "")) == (status, message):
        return None
    same = before.get("status") == status and before.get("lastTransitionTime")
    condition = {
        "type": HEALTHY,
        "status": status,
        "lastProbeTime": format_micro_time(now),
        "lastTransitionTime": before["lastTransitionTime"] if same else format_micro_time(now),
        **({"message": message} if message else {}),
    }
    return list({**found, HEALTHY: condition}.values())


def without_health(conditions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The conditions but for the one of health."""
    return [each for each in conditions if each.get("type") != HEALTHY]
