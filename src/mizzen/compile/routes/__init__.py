"""Route configurations (RDS): which virtual host takes a request, and what each of its routes does with it.

One concept a module: `matches`, `actions`, `headers`, `retries`, `faults` build the parts of one route;
`virtual_service` puts the routes of one VirtualService together for a client, encoded and shared by all who see the
same; `domains` names virtual hosts; `sidecar` and `gateway` assemble route configurations from the encoded parts.
"""
