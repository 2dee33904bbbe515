"""What an installation puts into a cluster, as plain documents.

    values         what an installation is told: the defaults, files and `--set` over them
    operators      a file of values, or an IstioOperator, as a layer of them
    assignments    a `--set` flag as a map
    manifests      all documents, in the order in which they are applied
    identity       how a control plane's objects are called and labelled
    rbac           what it may do
    webhooks       which pods and objects the API server asks it about, by revision or tag
    tags           a tag of a revision that is there already
    config_maps    the mesh config, what injection is told, dashboards
    control_plane  its Deployment, Service and what goes with them
    gateways       gateways that run beside it
    crds           the mesh's kinds: CustomResourceDefinitions made from the Structs that we decode

The folder `data` holds links into the Helm chart, `charts/mizzen`, whose templates make the same documents from the
same values and rules. Everything here is pure: documents out, nothing is asked of a cluster.
"""
