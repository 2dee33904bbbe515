"""A mesh on one machine: real sidecars in network namespaces, from the manifests of a directory.

    manifests ──workloads──> pods that should exist ──plan──> starts and stops ──> pods.sandbox: processes
        │                                                                              │ ready, address
        └──> control plane (its first source)      publish <───────────────────────────┘
                        ^───────── generated objects ─┘└──directory──> resolver, Service rules, published ports

What runs: the process that the user starts (`launcher`) keeps the host's network and hands out its sockets; it starts
the mesh's own process (`mesh`) in fresh namespaces, and that one supervises all others: the control plane, an agent
with its Envoy for every sidecar, the programs of the containers. `isolation` decides how the namespaces are had: by
root, by a user namespace with or without subordinate ids, or not at all (`--no-capture`). Because the mesh's process
is the first of a process namespace and network namespaces are held by its descriptors alone, its death, however it
comes, leaves no process, interface, rule or mount; files are swept by the next start.

Pure are `workloads`, `plan`, `addresses`, `publish.build`, `directory`, `pods.containers` and
`pods.volumes.build_files`. The command line finds a running mesh through `runtime`: `select_mesh`, `read_state` and
`State`.
"""
