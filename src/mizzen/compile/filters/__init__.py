"""What stands inside a filter chain: filters, access logs, tracing and TLS contexts, in both dialects.

Pure builders: small frozen values in, protobuf messages out. Nothing here reads the engine, so clusters, listeners and
routes may all use it. What differs between the dialects is decided here and nowhere above:

    peers              who the other side is: istio.metadata_exchange, or headers and filter state
    alpn               the ALPN words of the mesh, and who writes them upstream
    metrics            istio.stats
    metric_loggers, metric_labels   the access loggers that count the same on upstream Envoy
    access_logs        access loggers
    formats, expressions   the formats and CEL expressions that upstream Envoy reads
    tracing, tracers   the tracing block of a connection manager, and where its spans go
    http               one HTTP connection manager, with its filters in order
    network            tcp_proxy and the network filters before it
    listener_filters   what looks at a connection before a chain is chosen
    sds, tls           secrets by name, and the TLS contexts of servers
    stat_names         names under which Envoy counts, by the mesh's patterns
"""
