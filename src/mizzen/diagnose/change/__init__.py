"""What a change of objects does: to what proxies are told, to requests, and to open connections.

In: two states of the same mesh. Out: changes in words by class of proxies, what has to be pushed, the objects behind
it, probes whose verdict changes, and which open connections real Envoys would cut. `mizzen diff` prints it.

    told ──> clusters, endpoints, listeners, routes ──> classes ──> report
      └────> disruption ──> connections ─────────────────────────────┘
"""
