"""The network of a local mesh.

One hub namespace holds a bridge, the resolver and the rules that make Service addresses reachable for pods without a
sidecar; it is the namespace in which the mesh's own process and the control plane run. Every pod has a namespace of
its own, one address and one cable to the bridge. Pods know no neighbours: each packet passes the hub, where connection
tracking undoes what the Service rules did.

`namespaces` makes and enters them, `network` lays the cables, `vips` writes the Service rules, `dns` answers names as
a cluster's resolver would, `forward` carries connections between the host and the inside, `broker` obtains sockets of
the host's namespace for a process that has left it.
"""
