"""What Istio counts of the state of the mesh, noted by the queries that meet it.

In: a metric's name and what is counted. Out: remarks of the engine (`Engine.remark`), which live as long as a connected
proxy needs the query. A metric's value is the number of distinct things that are noted under it.
"""

from collections import Counter
from typing import Any, NamedTuple

from mizzen.incremental import Engine

NO_INSTANCES = "pilot_eds_no_instances"
NO_DNS_ENDPOINTS = "pilot_dns_cluster_without_endpoints"
INBOUND_CONFLICT = "pilot_conflict_inbound_listener"
OUTBOUND_CONFLICT = "pilot_conflict_outbound_listener_tcp_over_current_tcp"
DUPLICATE_DOMAIN = "pilot_vservice_dup_domain"


class Observed(NamedTuple):
    """One thing to be counted."""

    metric: str
    about: str
    """A cluster, a listener, a virtual host."""


def observe(db: Engine, metric: str, about: str) -> None:
    """Note it for the running query."""
    db.remark(Observed(metric, about))


def count(db: Engine) -> Counter[str]:
    """Metric → how much is noted now."""
    remarks: list[Any] = db.remarks()
    return Counter(each.metric for each in remarks if isinstance(each, Observed))
