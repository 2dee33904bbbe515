"""What an installation puts into a cluster, as plain documents.

    crds   the mesh's kinds: CustomResourceDefinitions made from the Structs that we decode

Everything here is pure: documents out, nothing is asked of a cluster.
"""
