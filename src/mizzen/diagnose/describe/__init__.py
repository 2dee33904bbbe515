"""`describe`: what the mesh does with one pod or Service, in istioctl's words.

    objects (an engine) ─┬─> pods: the pod itself ──────────────────────────────┐
                         ├─> services ─> destination_rules, virtual_services ───┼─> lines of text
    dumps of proxies ────┴─> told: which objects a proxy's configuration names ─┤
                         ├─> peers: mutual TLS ──────────────────────────────────┤
                         └─> gateways: where the pod is reached from outside ────┘

Which DestinationRule and VirtualService are in force is read from the proxy's own dump, what they say from the
objects; so a proxy that lags behind shows. Beyond istioctl's lines there are notes on what it passes over in silence:
ports whose names say no protocol, VirtualServices of the host that the proxy does not follow, and why.
"""
