"""Serving: what `compile` makes, told to proxies over ADS, in both variants of the protocol.

    sources ─> push.Pusher ──────────> generator (engine) ─> roots.Roots
                 debounce, commit          resources            who follows what
                                                                  │ changed
    grpc <── discovery ── stream.Stream <── session.Session <─────┘
              who may       read, write       what to say next      responses: each difference encoded once

- `session` with `watch` is one stream's state machine: requests in, responses out, no I/O; `requests` decodes,
  `responses` compares and encodes, and keeps both for everybody who needs the same; `kinds` holds the order of types.
- `generator` is the seam to engine and compiler; `roots` holds what connected proxies need of it and knows the streams
  behind each root.
- `push` collects changes, waits for quiet, commits them to the engine in one step and wakes the streams they reached.
- `stream` moves bytes between a session and its transport; `pace` keeps a crowd of streams from holding the loop.
- `discovery` is the gRPC service: `admission` lets streams in at a rate, `identity` decides whether a caller is the
  proxy it says it is; `server` holds ports and limits.
- `debugging` answers the debug types beside all subscriptions; what they tell comes from outside.
- `status` is what proxy-status and /debug read; `metrics` has Istio's names.

Everything runs on one event loop. The engine changes only in `Pusher`, so that all that a stream is told in one go
belongs to one state of the mesh.
"""
