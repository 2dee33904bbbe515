"""The rules of the mesh's settings, which are no objects: MeshConfig, the settings of proxies, MeshNetworks.

    settings   `validate_mesh_config`, `validate_mesh_networks`: the verdicts, as Problems without a key
    config     what holds for the whole mesh
    proxy      the settings of one proxy
    providers  extension providers, whose faults are warnings: one that nobody uses does no harm
    networks   endpoints and gateways of each network

In: settings as they are in force, the defaults merged in.
"""
