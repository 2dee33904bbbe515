"""Settings of the mesh as a whole: MeshConfig, the ProxyConfig in it, and MeshNetworks.

    config      MeshConfig
    proxy       ProxyConfig, the settings of one proxy (`defaultConfig`, the annotation proxy.istio.io/config)
    providers   what telemetry and external authorization refer to by name (`extensionProviders`)
    networks    MeshNetworks, the networks of a mesh and their gateways
    merge       the defaults in force, and settings that a user wrote laid over them

A Struct's own defaults are protobuf's zeros; what is in force where nobody wrote anything is `default_mesh_config`.
"""
