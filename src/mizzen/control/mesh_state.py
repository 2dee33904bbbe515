"""The state of the mesh under Istio's names, worked out when somebody asks for metrics.

In: what queries have observed (`compile.observed`), the connected proxies, the objects, the responses that are kept.
Out: gauges. What Istio counts of its last push is here what is so now, for the proxies that are connected.
"""

from collections.abc import Iterator

from mizzen import observe
from mizzen.api.kube.services import EndpointSlice
from mizzen.api.meta import Key
from mizzen.compile import observed
from mizzen.incremental import Engine, attempt
from mizzen.model import targets
from mizzen.xds.pace import Pace
from mizzen.xds.responses import Responses, Use
from mizzen.xds.status import Connections

_OBSERVED = {
    observed.NO_INSTANCES: "Clusters of connected proxies without any endpoint.",
    observed.NO_DNS_ENDPOINTS: "Clusters left out for want of an endpoint whose name could be resolved.",
    observed.INBOUND_CONFLICT: "Inbound listeners for which services with different protocols ask.",
    observed.OUTBOUND_CONFLICT: "Outbound TCP listeners where a service gives way to an older one.",
    observed.DUPLICATE_DOMAIN: "Virtual hosts for which more than one VirtualService asks.",
}
_GAUGES = {metric: observe.Gauge(metric, text) for metric, text in _OBSERVED.items()}
_NO_SERVICE = observe.Gauge("pilot_no_ip", "Connected sidecars whose workload no service selects.")
_NOT_READY = observe.Gauge("pilot_endpoint_not_ready", "Endpoints of EndpointSlices that are not ready.")
_NO_POD = observe.Gauge("endpoint_no_pod", "Endpoints of EndpointSlices that name a Pod which is not known.")
_PENDING_POD = observe.Gauge("pilot_k8s_endpoints_pending_pod", "The same, under its later name.")
_CACHE_SIZE = observe.Gauge("xds_cache_size", "Parts of responses that are kept encoded.")
_CACHE_READS = observe.Counter("xds_cache_reads", "Parts of responses that were found encoded, or not.", ("type",))
_CACHE_EVICTIONS = observe.Counter("xds_cache_evictions", "Parts of responses that are kept encoded no longer.")


class MeshState:
    """Keeps them, on request."""

    def __init__(self, db: Engine, connections: Connections, responses: Responses) -> None:
        self._db, self._connections, self._responses = db, connections, responses
        self._pace = Pace()
        self._use = Use(0, 0, 0, 0)

    async def refresh(self) -> None:
        """Bring all of it up to date."""
        counts = observed.count(self._db)
        for metric, gauge in _GAUGES.items():
            gauge.set(counts[metric])
        self._count_reads()
        await self._count_proxies()
        await self._count_endpoints()

    async def _count_proxies(self) -> None:
        alone = 0
        for connection in self._connections:
            if connection.proxy.kind == "sidecar":
                alone += not attempt(targets.service_targets, self._db, connection.proxy)
            await self._pace.turn()
        _NO_SERVICE.set(alone)

    async def _count_endpoints(self) -> None:
        not_ready = without_pod = 0
        for key in tuple(self._db.keys("EndpointSlice")):
            found: EndpointSlice | None = self._db.peek(key)
            if found is not None:
                not_ready += sum(endpoint.conditions.ready is False for endpoint in found.endpoints)
                without_pod += sum(self._db.peek(pod) is None for pod in _pods(found))
            await self._pace.turn()
        _NOT_READY.set(not_ready)
        _NO_POD.set(without_pod)
        _PENDING_POD.set(without_pod)

    def _count_reads(self) -> None:
        before, self._use = self._use, self._responses.use
        _CACHE_SIZE.set(self._use.size)
        _CACHE_READS.labels("hit").inc(self._use.hits - before.hits)
        _CACHE_READS.labels("miss").inc(self._use.misses - before.misses)
        _CACHE_EVICTIONS.inc(self._use.evictions - before.evictions)


def _pods(found: EndpointSlice) -> Iterator[Key]:
    """The Pods that endpoints name."""
    for endpoint in found.endpoints:
        ref = endpoint.target_ref
        if ref is not None and ref.kind == "Pod":
            yield Key("Pod", ref.namespace or found.metadata.namespace, ref.name)
