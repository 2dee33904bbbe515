"""Objects from a Kubernetes API server, listed once and watched from then on.

    access      where the server is and who we are: kubeconfig, a pod's files, tokens renewed, plugins
    client      requests: documents, paged lists, watches; what the server refused as one kind of error
    served      which of our kinds the server has, and at which version
    selection   which objects are taken, by revision and by namespace
    reading     an object's bytes to an Entry, with what is not read left out
    reflector   one kind: list, watch, list again when the past is gone; changes only
    source      all kinds as one stream of batches, like the file source

A server that is away takes nothing away: what was known stays, and its age is told.
"""
