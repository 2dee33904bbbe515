"""What an installation puts into a cluster, as plain documents.

    identity   how a control plane's objects are called and labelled
    rbac       what it may do
    webhooks   which pods and objects the API server asks it about, by revision or tag
    crds       the mesh's kinds: CustomResourceDefinitions made from the Structs that we decode

Everything here is pure: documents out, nothing is asked of a cluster.
"""
