"""Admission webhooks: what the API server asks before it stores pods and the mesh's objects.

reviews         AdmissionReview in and out
patches         the difference of two documents as a JSON Patch
addresses       what the path of `/inject/…` says about the cluster and the network
installation    what the cluster's ConfigMaps and nodes say about injection
injection       a pod's review to its answer
validation      a review of one of the mesh's objects to its answer
tls             the server's certificate, taken anew at every handshake
server          `/inject`, `/validate`, `/ready` over HTTPS
configurations  CA bundle and failure policy in the webhook configurations of our revision, kept right
probe           whether the API server reaches our validation
guards          configurations by which an absent control plane would stop the cluster
webhooks        all of it together, as the control plane runs it
"""
