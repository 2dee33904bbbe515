"""What a proxy really holds, read from what it says about itself; and what it would be told.

    config_dump, clusters?format=json ─> dump ─┬─> tables: clusters, listeners, routes, … ─> Table
                                               └─> diff <─ what the control plane sent
    /debug/syncz ─> sync ─> the rows of proxy-status
    objects ─> snapshot (nodes, references) ─> printing: all that one proxy would be told
    AuthorizationPolicies, a request ─> authorization ─> what becomes of it, and why
    objects or dumps, a request ─> trace: what it will meet on both sides, and why

Dumps are plain JSON from Envoy (snake_case) or from a control plane (camelCase), of any version: what is not known is
passed over, never an error; `spelling` brings both to one. `printing` writes messages as people may see them. Tables
are data (`table.Table`); `mizzen.cli` writes them out. Nothing here fetches: bytes, and the time where certificates
need one, are handed in.
"""
