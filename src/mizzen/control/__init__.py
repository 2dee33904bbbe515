"""The control plane as a process: everything put together, and what operators ask it over HTTP.

    options     what the command line says, as values
    mesh        the mesh config in force: ConfigMap, file or defaults
    inputs      from the batches of the sources to the engine's inputs, and the list of what is wrong
    jwks        key sets of token issuers, fetched and refreshed
    fetching    documents from addresses that users write
    callers     one way to believe callers for the certificate service, the discovery servers and the debug pages
    authority   the certificate authority with its files, kept running; in Secrets, for all replicas: `shared_authority`
    issuing     the certificate service: who signs (`kubernetes_signer`), who may ask for others (`node_accounts`)
    debug       istiod's debug documents as plain data
    http        the HTTP servers: readiness, metrics, version, debug pages and who may see them
    main        the composition root

Nothing here knows what a resource means: that is `model` and `compile`; nor how a stream goes: that is `xds`.
"""
