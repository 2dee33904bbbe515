"""The kinds of Kubernetes that a mesh reads, as far as it reads them.

    services   Service, EndpointSlice, Endpoints
    pods       Pod and its template
    workloads  Deployment, StatefulSet, ReplicaSet, DaemonSet, Job, CronJob
    cluster    Namespace, Node, ServiceAccount
    data       Secret, ConfigMap

What Kubernetes' API has beyond that is listed in each Struct's `unread`, so that a field that is known and not read
differs from one that does not exist: only the second is a Problem.
"""
