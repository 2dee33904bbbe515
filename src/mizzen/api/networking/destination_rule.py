"""DestinationRule: what applies to traffic once it has been routed to a host, and the host's subsets."""

from collections.abc import Mapping

from mizzen.api.message import ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.networking.selectors import MatchLabels
from mizzen.api.networking.traffic_policy import TrafficPolicy


class Subset(ProtoMessage, frozen=True, kw_only=True):
    """A named part of a host's endpoints, by their labels."""

    name: str = ""
    labels: Mapping[str, str] = {}
    traffic_policy: TrafficPolicy | None = None


class DestinationRuleSpec(ProtoMessage, frozen=True, kw_only=True):
    """The policy of a host for the clients that see it."""

    host: str = ""
    traffic_policy: TrafficPolicy | None = None
    subsets: tuple[Subset, ...] = ()
    export_to: tuple[str, ...] = ()
    workload_selector: MatchLabels | None = None


class DestinationRule(Object, frozen=True, kw_only=True):
    """The kind DestinationRule of networking.istio.io."""

    spec: DestinationRuleSpec = DestinationRuleSpec()
