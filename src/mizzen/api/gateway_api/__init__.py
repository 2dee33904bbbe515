"""The kinds of the Gateway API.

    references      how objects name each other: parents, backends, certificates
    listeners       GatewayClass, Gateway, ListenerSet
    filters         what a route does to requests besides forwarding them
    http_route      HTTPRoute            grpc_route  GRPCRoute
    stream_routes   TCPRoute, TLSRoute, UDPRoute
    policies        ReferenceGrant, BackendTLSPolicy
    experimental    XBackend, XBackendTrafficPolicy, XMesh

The defaults of the fields are those that the CRDs declare, so that an object from a file equals the one that an API
server completed. A kind's `status` is written by Mizzen and not read here.
"""
