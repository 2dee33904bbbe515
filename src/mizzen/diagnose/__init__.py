"""What a proxy really holds, read from what it says about itself.

    config_dump, clusters?format=json ─> dump ─┬─> clusters, listeners, routes, endpoints, secrets, … ─> Table
                                               └─> diff <─ what the control plane would send
    /debug/syncz ─> sync ─> rows of proxy-status

Dumps are plain JSON from Envoy (snake_case) or from a control plane (camelCase), of any version: what is not known is
passed over, never an error. Each module turns one section of a dump into one `table.Table`, column for column what
istioctl prints, and says which resources a filter keeps; `mizzen.cli` writes them out. Nothing here fetches: bytes,
and the time where certificates need one, are handed in.
"""
