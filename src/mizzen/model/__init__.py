"""What is true now: queries over the objects, from the services of the mesh to what one proxy may see.

Data flows in this order, each module reading those before it: `mesh` (configuration) and `names`, `proxy` (who asks),
`workloads` (pods, nodes, localities), `services` and `endpoints`, `scope` (Sidecar and visibility), then the rules that
apply inside a scope: `destination_rules`, `virtual_services`, `gateways`, `policies`.
Nothing here makes protobuf messages; that is `compile`.
"""
