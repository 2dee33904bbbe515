"""The kinds of networking.istio.io, one module a kind, beside the shapes that several of them share.

    selectors       which workloads an object is for
    destination     a host, a subset and a port of it
    traffic_policy  load balancing, connection pools, outlier detection, client TLS (DestinationRule, Sidecar, mesh)
    virtual_service destination_rule gateway service_entry workload_entry workload_group sidecar envoy_filter
    proxy_config    one kind each; a kind's Struct has `metadata` and `spec`

All versions of a kind that are served (v1, v1beta1, v1alpha3) have the same shape.
"""
