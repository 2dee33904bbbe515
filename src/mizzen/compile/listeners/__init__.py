"""Listeners of sidecars and gateways.

What a proxy is told is worked out in two steps. First its *plan*: small frozen values that say which listeners there
are, which chains they have and where each leads (queries over the model). Then each plan is built into an encoded
`Resource` by a query of its own, so that all proxies with an equal plan share the message:

    settings     what mesh and proxy decide for all filters of one side
    addresses    binds, address families, and the address of a service for a proxy
    plans        the values between the two steps
    streams      TLS and TCP routes of VirtualServices as chains
    conflicts    several services on one address and port
    outbound     the per-port listeners of a sidecar, planned
    inbound      the chains of a sidecar's workload, planned
    servers      the servers of Gateways, merged by port and planned
    building     plans as messages
    sidecar, gateway   what one proxy gets: the entry points
"""
