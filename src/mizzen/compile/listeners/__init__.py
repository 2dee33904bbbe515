"""Listeners of sidecars and gateways.

What a proxy is told is worked out in two steps. First its *plan*: small frozen values that say which listeners there
are, which chains they have and where each leads (queries over the model). Then each plan is built into an encoded
`Resource` by a query of its own, so that all proxies with an equal plan share the message:

    profiles    what of a proxy its filters depend on
    telemetry   which logs, metrics and traces hold for it
    log_sinks, traces   providers of logs and traces as values that filters are built from
    settings    what mesh and proxy decide for all filters of one side
    plans       the values between the two steps
    destinations, streams   TLS and TCP routes of VirtualServices as chains
    conflicts   several services on one address and port
    outbound    the per-port listeners of a sidecar, planned
    inbound     the chains of a sidecar's workload, planned
    servers, server_tls     the servers of Gateways, planned
    matches     matches and addresses as protobuf
    building, inbound_settings, inbound_building, gateway_building   plans as messages
    sidecar, gateway        what one proxy gets: the entry points
"""
