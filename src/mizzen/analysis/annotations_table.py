"""Annotations that the reference knows: where each may stand, how mature it is, and whether it is deprecated.

A table, nothing else. What is checked by it is `rules.annotations`.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Annotation(NamedTuple):
    """One known annotation."""

    kinds: tuple[str, ...]
    """Where it may stand; `Any` is anywhere."""
    is_alpha: bool = True
    is_deprecated: bool = False


_POD = Annotation(("Pod",))
_OLD = Annotation(("Pod",), is_deprecated=True)

KNOWN: Mapping[str, Annotation] = {
    "alpha.istio.io/canonical-serviceaccounts": Annotation(("Service",), is_deprecated=True),
    "alpha.istio.io/kubernetes-serviceaccounts": Annotation(("Service",), is_deprecated=True),
    "ambient.istio.io/bypass-inbound-capture": _POD,
    "ambient.istio.io/dns-capture": _POD,
    "ambient.istio.io/redirection": Annotation(("Pod",), is_alpha=False),
    "ambient.istio.io/waypoint-inbound-binding": Annotation(
        (
            "GatewayClass",
            "Gateway",
        )
    ),
    "galley.istio.io/analyze-suppress": Annotation(("Any",)),
    "gateway.istio.io/controller-version": Annotation(("Any",)),
    "gateway.istio.io/name-override": Annotation(("Gateway",)),
    "gateway.istio.io/service-account": Annotation(("Gateway",)),
    "inject.istio.io/templates": _POD,
    "istio.io/autoRegistrationGroup": Annotation(("WorkloadEntry",)),
    "istio.io/connectedAt": Annotation(("WorkloadEntry",)),
    "istio.io/disconnectedAt": Annotation(("WorkloadEntry",)),
    "istio.io/dry-run": Annotation(("AuthorizationPolicy",)),
    "istio.io/reroute-virtual-interfaces": _POD,
    "istio.io/rev": _POD,
    "istio.io/use-waypoint-canary-weight": Annotation(
        (
            "Service",
            "ServiceEntry",
            "Namespace",
        )
    ),
    "istio.io/workloadController": Annotation(("WorkloadEntry",)),
    "kubernetes.io/ingress.class": Annotation(("Ingress",), is_alpha=False),
    "networking.istio.io/exportTo": Annotation(("Service",)),
    "networking.istio.io/service-type": Annotation(("Gateway",)),
    "networking.istio.io/traffic-distribution": Annotation(
        (
            "Namespace",
            "Service",
            "ServiceEntry",
        )
    ),
    "prometheus.istio.io/merge-metrics": _POD,
    "proxy.istio.io/config": Annotation(("Pod",), is_alpha=False),
    "proxy.istio.io/overrides": _POD,
    "readiness.status.sidecar.istio.io/applicationPorts": _POD,
    "readiness.status.sidecar.istio.io/failureThreshold": _POD,
    "readiness.status.sidecar.istio.io/initialDelaySeconds": _POD,
    "readiness.status.sidecar.istio.io/periodSeconds": _POD,
    "sidecar.istio.io/agentLogLevel": _POD,
    "sidecar.istio.io/bootstrapOverride": _POD,
    "sidecar.istio.io/componentLogLevel": _POD,
    "sidecar.istio.io/discoveryAddress": _OLD,
    "sidecar.istio.io/extraStatTags": _OLD,
    "sidecar.istio.io/inject": Annotation(("Pod",), is_alpha=False, is_deprecated=True),
    "sidecar.istio.io/interceptionMode": _POD,
    "sidecar.istio.io/logLevel": _POD,
    "sidecar.istio.io/nativeSidecar": _POD,
    "sidecar.istio.io/proxyCPU": _POD,
    "sidecar.istio.io/proxyCPULimit": _POD,
    "sidecar.istio.io/proxyImage": _POD,
    "sidecar.istio.io/proxyImageType": _POD,
    "sidecar.istio.io/proxyMemory": _POD,
    "sidecar.istio.io/proxyMemoryLimit": _POD,
    "sidecar.istio.io/rewriteAppHTTPProbers": _POD,
    "sidecar.istio.io/statsCompression": _OLD,
    "sidecar.istio.io/statsEvictionInterval": _POD,
    "sidecar.istio.io/statsFlushInterval": _POD,
    "sidecar.istio.io/statsHistogramBins": _POD,
    "sidecar.istio.io/statsHistogramBuckets": _POD,
    "sidecar.istio.io/statsInclusionPrefixes": _OLD,
    "sidecar.istio.io/statsInclusionRegexps": _OLD,
    "sidecar.istio.io/statsInclusionSuffixes": _OLD,
    "sidecar.istio.io/status": _POD,
    "sidecar.istio.io/userVolume": _POD,
    "sidecar.istio.io/userVolumeMount": _POD,
    "status.sidecar.istio.io/port": _POD,
    "topology.istio.io/controlPlaneClusters": Annotation(("Namespace",)),
    "traffic.istio.io/nodeSelector": Annotation(("Service",), is_alpha=False),
    "traffic.sidecar.istio.io/excludeInboundPorts": _POD,
    "traffic.sidecar.istio.io/excludeInterfaces": _POD,
    "traffic.sidecar.istio.io/excludeOutboundIPRanges": _POD,
    "traffic.sidecar.istio.io/excludeOutboundPorts": _POD,
    "traffic.sidecar.istio.io/includeInboundPorts": _POD,
    "traffic.sidecar.istio.io/includeOutboundIPRanges": _POD,
    "traffic.sidecar.istio.io/includeOutboundPorts": _POD,
    "traffic.sidecar.istio.io/kubevirtInterfaces": _OLD,
}
