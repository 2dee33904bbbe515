"""Deprecations: fields and kinds that Istio no longer reads, or soon will not.

In: VirtualServices, Sidecars, CustomResourceDefinitions. Out: IST0002.
"""

from mizzen.analysis import catalogue
from mizzen.analysis.cluster import CustomResourceDefinition
from mizzen.analysis.findings import Finding, report
from mizzen.api.meta import Key
from mizzen.api.networking.sidecar import Sidecar
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.incremental import Engine, query

_REMOVED_KINDS = frozenset({"ClusterRbacConfig", "RbacConfig", "ServiceRole", "ServiceRoleBinding"})


@query
def check_virtual_service(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A delay with a whole number of percent."""
    found: VirtualService | None = db.input(key)
    detail = "HTTPRoute.fault.delay.percent is deprecated; use HTTPRoute.fault.delay.percentage"
    return tuple(
        report(catalogue.DEPRECATED, key, detail, path=f"spec.http[{index}].fault.delay.percent")
        for index, route in enumerate(found.spec.http if found is not None else ())
        if route.fault is not None and route.fault.delay is not None and route.fault.delay.percent > 0
    )


@query
def check_sidecar(db: Engine, key: Key) -> tuple[Finding, ...]:
    """An egress proxy, which nobody reads."""
    found: Sidecar | None = db.input(key)
    policy = found.spec.outbound_traffic_policy if found is not None else None
    if policy is None or policy.egress_proxy is None:
        return ()
    detail = "OutboundTrafficPolicy.EgressProxy ignored"
    return (report(catalogue.DEPRECATED, key, detail, path="spec.outboundTrafficPolicy.egressProxy"),)


@query
def check_definition(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A kind of the old access control."""
    found: CustomResourceDefinition | None = db.input(key)
    if found is None or found.spec.group != "rbac.istio.io" or found.spec.names.kind not in _REMOVED_KINDS:
        return ()
    detail = f"Custom resource type rbac.istio.io {found.spec.names.kind} is removed"
    return (report(catalogue.DEPRECATED, key, detail),)
