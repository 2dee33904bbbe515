"""Clusters (CDS): one for each service, port and subset a proxy may call, those it serves itself, and the static ones.

`outbound` builds the clusters of one service as the client's DestinationRule shapes them, from parts of one concept
each: `pools` (connection limits, outlier detection), `balancing`, `transport` (TLS), `protocol` (HTTP options), `dns`.
`inbound` and `static` build the rest; `sidecar` and `gateway` select what one proxy gets.
"""
