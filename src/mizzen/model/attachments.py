"""Attachment: whether an object that selects workloads, by labels or by target reference, is for one workload.

In: the object's selector and references, the workload's labels and namespace. Out: yes or no. A reference names what
the workload stands for, such as the Gateway of a managed gateway; an object with references is for these only.
Rules: selection of EnvoyFilter, WasmPlugin and TrafficExtension. Golden cases: networking/ef-scope-and-order,
networking/wasm-plugins.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mizzen.api.networking.selectors import PolicyTargetReference
from mizzen.model import names, workloads
from mizzen.model.proxy import Kind, Labels

_GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"
_GATEWAY_GROUP = "gateway.networking.k8s.io"


class Audience(NamedTuple):
    """A workload as selectors and references see it."""

    kind: Kind
    namespace: str
    labels: Labels

    @property
    def gateway(self) -> str:
        """The Gateway of the Gateway API that the workload implements, as its label says; empty for others."""
        return dict(self.labels).get(_GATEWAY_NAME, "")


def is_for(
    audience: Audience,
    namespace: str,
    selector: Mapping[str, str] | None,
    references: Sequence[PolicyTargetReference],
) -> bool:
    """Whether an object of `namespace` is for this workload; an absent or empty selector selects every workload.

    Waypoints are reached by reference only.
    """
    if references:
        return any(_names(reference, audience, namespace) for reference in references)
    if audience.kind == "waypoint":
        return False
    return not selector or workloads.selects(workloads.freeze(selector), audience.labels)


def _names(reference: PolicyTargetReference, audience: Audience, namespace: str) -> bool:
    named = (reference.group, reference.kind, names.label_value(reference.name))
    return (
        named == (_GATEWAY_GROUP, "Gateway", audience.gateway)
        and (reference.namespace or namespace) == audience.namespace
        and bool(audience.gateway)
    )
