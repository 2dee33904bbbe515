"""Conversion: the Gateway API and Ingress as queries that give Istio's own objects, and what their statuses say.

    names          internal names: how generated objects are called, and what a name was made of
    faults         what is wrong with something a user wrote, by the reason that a condition carries
    grants         who may refer across namespaces
    certificates   what a Secret or ConfigMap holds, checked before anything refers to it
    gateways/      GatewayClass, Gateway and ListenerSet to Istio Gateways, one a listener, and Deployments
    routes/        HTTPRoute, GRPCRoute, TCPRoute and TLSRoute to VirtualServices
    policies       BackendTLSPolicy to DestinationRules
    ingress        Ingress to Gateways and VirtualServices
    status/        the same findings as conditions

Data flow: a route's head (parents and host names) decides what it attaches to (`routes.parents`), its rules become
Istio's rules by themselves (`routes.rules`), and generated VirtualServices put the rules of all routes of one listener
and host together (`routes.objects`). A change of a route's rules reruns its own conversion and the VirtualServices
that hold it, nothing else. Whoever compiles asks `model.gateways`, `model.virtual_services` and
`model.destination_rules`, which hold generated and native objects alike and know of no conversion.

Everything here depends on services, never on scopes or proxies. Golden cases: gateway-api/*.
"""
