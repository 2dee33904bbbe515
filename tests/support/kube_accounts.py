"""Service accounts of a real API server: their tokens, pods that run under them, and what a control plane may do."""

import contextlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from eventually import eventually_blocking
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


_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


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
    until_installed(bed, identity, more)
    return bed.kubeconfig(f"kubeconfig-{namespace}", token=token(bed, namespace, identity.name, ISSUER, seconds=86_400))


def until_installed(bed: Bed, identity: Identity, more: Iterable[Mapping[str, Any]] = ()) -> None:
    """Wait until the server grants what an installation does, and `more` rules."""
    rules = [rule for document in rbac_documents(identity) for rule in document.get("rules", ())]
    user = f"system:serviceaccount:{identity.namespace}:{identity.name}"
    until_granted(bed, user, (*rules, *more), identity.namespace)


def until_granted(bed: Bed, user: str, rules: Iterable[Mapping[str, Any]], namespace: str = "") -> None:
    """Wait until the server grants rights in a namespace, or in all: it hears of roles some time after it has taken them."""
    for rule in rules:
        resource, _, below = rule["resources"][-1].partition("/")
        attributes = {"verb": rule["verbs"][-1], "group": rule["apiGroups"][-1], "resource": resource}
        attributes |= {"subresource": below, "namespace": namespace, "name": rule.get("resourceNames", [""])[-1]}
        asked = {"spec": {"user": user, "resourceAttributes": attributes}}
        eventually_blocking(lambda asked=asked: bed.call("POST", _REVIEWS, asked)["status"]["allowed"], 120)


def installed(bed: Bed) -> pathlib.Path:
    """A kubeconfig of the control plane in the namespace where it is installed, with its rights and no others."""
    namespace = Identity().namespace
    with contextlib.suppress(Answer):
        bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    return install_rights(bed, namespace)
