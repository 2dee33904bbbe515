"""What users write, as typed and frozen values: Kubernetes, Istio and Gateway API objects and the mesh config.

One `Message` (a msgspec Struct) per shape, one top-level Struct with `metadata` and `spec` per kind:

    scalars     Duration, Quantity, integers of protobuf's widths
    message     the base of all Structs, and what it promises
    meta        Key (the one key of objects), ObjectMeta, label selectors
    kube        Service, EndpointSlice, Pod, Node, Namespace, Secret, ConfigMap, workloads
    networking  VirtualService, DestinationRule, Gateway, ServiceEntry, Sidecar, EnvoyFilter, ...
    policy      PeerAuthentication, RequestAuthentication, AuthorizationPolicy, Telemetry, WasmPlugin, ...
    gateway_api GatewayClass, Gateway, ListenerSet, the routes, ReferenceGrant, BackendTLSPolicy, ...
    mesh        MeshConfig, ProxyConfig, MeshNetworks, their defaults and merging
    kinds       every kind that is read: its groups, versions, scope and Struct
    decode      plain data in; an object, or Problems with the path of each fault, out
    closed      what is enforced in place of a policy that cannot be read
    careful     the slow way of decoding: field by field, forgiving, with every fault
    shape       what decoding knows of each Struct, worked out once
    problems    what is wrong with an object, as a value

Everything here is pure. Nothing is looked up in other objects and no rule is enforced beyond types: what the
objects mean is the model's affair.
"""
