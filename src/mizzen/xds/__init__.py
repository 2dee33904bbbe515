"""Serving: what `compile` makes, told to proxies over ADS, in both variants of the protocol.

    sources ─> push.Pusher ──────────> generator (engine) ─> roots.Roots
                 debounce, commit          resources            who follows what
                                                                  │ changed
    grpc <── server ── stream.Stream <── session.Session <────────┘
                 bytes    read, write      what to say next        responses: each difference encoded once

- `session` with `watch` is one stream's state machine: requests in, responses out, no I/O; `requests` decodes,
  `responses` compares and encodes, and keeps both for everybody who needs the same.
- `roots` holds the engine's roots that connected proxies need and knows the streams behind each.
- `push` collects changes, waits for quiet, commits them to the engine in one step and wakes the streams they reached.
- `stream` moves bytes between a session and its transport; `server` is the transport: ports, TLS, admission.
- `identity` decides whether a caller is the proxy it says it is. `status` is what proxy-status and /debug read.

Everything runs on one event loop. The engine changes only in `Pusher`, so that all that a stream is told in one go
belongs to one state of the mesh.
"""
