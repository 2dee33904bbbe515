"""Whether clients and servers agree about TLS: for one pair, and for every pair of a mesh.

    servers     what a server's port demands by its policies, and what its listener really takes
    clients     what a client's proxy speaks to a Service's port, and the rule by which it does
    gateways    the same of a gateway, whatever its routes
    checks      one client against one port: the verdict, the reason, the objects behind both sides
    looks       what a walk looked at of what a proxy holds
    reuse       one port, and clients for whom what was found of another holds
    matrix      all clients against all ports; pairs that are alike stand together
    report      rows and JSON

How a connection fares is asked of `trace`, so that the two can never differ. In: a `World` with objects.
"""
