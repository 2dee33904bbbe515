"""PeerAuthentication: what a pod's proxy takes, and which objects say so.

In: the objects in an engine, and a Pod. Out: lines.
"""

from collections.abc import Iterator

from mizzen.api.kube.pods import Pod
from mizzen.api.policy import PeerAuthentication
from mizzen.diagnose.describe.text import indent
from mizzen.incremental import Engine
from mizzen.model import mesh, objects, policies, workloads


def describe_peers(db: Engine, pod: Pod) -> Iterator[str]:
    """The mode that is in force, then the names of the policies that select the pod, the mesh's first."""
    labels = workloads.freeze(pod.metadata.labels)
    modes = policies.peer_modes(db, pod.metadata.namespace, labels)
    yield "Effective PeerAuthentication:"
    yield from indent((f"Workload mTLS mode: {modes.default}",))
    if modes.by_port:
        yield from indent(("Port Level mTLS mode:",))
        yield from indent((f"{port}: {mode}" for port, mode in modes.by_port), 2)
    applied = [f"{each.metadata.name}.{each.metadata.namespace}" for each in _applied(db, pod)]
    if applied:
        yield "Applied PeerAuthentication:"
        yield from indent((", ".join(applied),))


def _applied(db: Engine, pod: Pod) -> Iterator[PeerAuthentication]:
    root, own = mesh.root_namespace(db), pod.metadata.namespace
    for namespace in dict.fromkeys((root, own)):
        for key in objects.in_namespace(db, "PeerAuthentication", namespace):
            policy: PeerAuthentication = db.input(key)
            selector = policy.spec.selector.match_labels if policy.spec.selector is not None else {}
            # In the root namespace, a policy with a selector is in force nowhere.
            if selector.items() <= pod.metadata.labels.items() and (namespace != root or not selector):
                yield policy
