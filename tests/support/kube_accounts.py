"""Service accounts of a real API server: their tokens, pods that run under them, and what a control plane may do."""

import contextlib
import pathlib
from typing import Any

from kube_bed import ISSUER, Answer, Bed
from kube_objects import path_of, pod

from mizzen.install.identity import Identity
from mizzen.install.rbac import rbac_documents

_PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


def token(
    bed: Bed, namespace: str, account: str = "cart", audience: str = "istio-ca", pod_name: str = "", seconds: int = 3600
) -> str:
    spec: dict = {"audiences": [audience], "expirationSeconds": seconds}
    if pod_name:
        spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": pod_name}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    return bed.call("POST", path, {"spec": spec})["status"]["token"]


def make_account(bed: Bed, namespace: str, name: str) -> None:
    bed.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})


def make_pod(bed: Bed, namespace: str, name: str, account: str, node: str = "") -> None:
    """A pod that runs on a node, as far as the API server knows."""
    document = pod(namespace, name)
    document["spec"] |= {"serviceAccountName": account, **({"nodeName": node} if node else {})}
    bed.apply(path_of(document, "pods"), document)


def install_rights(bed: Bed, namespace: str, *more: dict[str, Any]) -> pathlib.Path:
    """A kubeconfig of a control plane in this namespace that may do what an installed one may, and `more` rules."""
    identity = Identity(namespace=namespace)
    documents = rbac_documents(identity)
    for document in documents:
        if document["kind"] == "ClusterRole":
            document["rules"] = [*document["rules"], *more]
        bed.apply(path_of(document, _PLURALS[document["kind"]]), document)
    return bed.kubeconfig(f"kubeconfig-{namespace}", token=token(bed, namespace, identity.name, ISSUER, seconds=86_400))


def installed(bed: Bed) -> pathlib.Path:
    """A kubeconfig of the control plane in the namespace where it is installed, with its rights and no others."""
    namespace = Identity().namespace
    with contextlib.suppress(Answer):
        bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    return install_rights(bed, namespace)
