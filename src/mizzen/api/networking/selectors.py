"""Which workloads an object of Istio is for: label selectors and references to what it targets."""

from collections.abc import Mapping

from mizzen.api.message import ProtoMessage


class WorkloadSelector(ProtoMessage, frozen=True, kw_only=True):
    """Workloads with all of these labels; this spelling belongs to networking kinds."""

    labels: Mapping[str, str] = {}


class MatchLabels(ProtoMessage, frozen=True, kw_only=True):
    """Workloads with all of these labels; this spelling belongs to policy kinds and DestinationRule."""

    match_labels: Mapping[str, str] = {}


class PolicyTargetReference(ProtoMessage, frozen=True, kw_only=True):
    """The object (Gateway, Service, ServiceEntry, GatewayClass) that a policy attaches to."""

    group: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
