"""Managed Gateways: what the control plane runs for a Gateway, as manifests.

    model's Deployment ──pods──> a pod with the proxy alone ──manifests──> ServiceAccount, Deployment, Service
        ──strategic──> each with the patches of ConfigMaps laid over it

The one entry is `manifests.gateway_manifests(wanted, config, mesh) -> Rendered`. An autoscaler and a disruption budget
are there only where a patch asks for one. The proxy is the one that `inject` gives gateways, so that a managed Gateway
and an injected one run alike.
"""
