"""What a control plane may do: its service account, its roles and their bindings.

The rules are data (`data/rules.yaml`, the same file that the Helm chart reads). Rights that are needed in the control
plane's own namespace alone are a Role there, all others a ClusterRole.
"""

import functools
import importlib.resources
from collections.abc import Sequence
from typing import Any

import msgspec

from mizzen.install.identity import Identity, document

_GROUP = "rbac.authorization.k8s.io"

Rule = dict[str, list[str]]


class Rules(msgspec.Struct, frozen=True):
    """As roles have them."""

    cluster: list[Rule]
    namespaced: list[Rule]
    signing: list[Rule]
    """Of the cluster too, where Kubernetes signs certificates; the last rule is for the signers."""


@functools.cache
def load_rules() -> Rules:
    """The rights that a control plane needs."""
    data = importlib.resources.files("mizzen.install").joinpath("data/rules.yaml").read_bytes()
    return msgspec.yaml.decode(data, type=Rules)


def rbac_documents(identity: Identity, signers: Sequence[str] = ()) -> list[dict[str, Any]]:
    """ServiceAccount, ClusterRole, Role and what binds them; `signers` are those of Kubernetes that may be used."""
    labels, name, namespace = identity.labels(app="istiod"), identity.name, identity.namespace
    wide = f"istiod-clusterrole{identity.suffix}-{namespace}"
    rules = load_rules()
    wide_rules = [*rules.cluster, *(_signing_rules(signers) if signers else ())]
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}

    def bind(kind: str, role: str) -> dict[str, Any]:
        return {"roleRef": {"apiGroup": _GROUP, "kind": kind, "name": role}, "subjects": [subject]}

    return [
        document("v1", "ServiceAccount", name, namespace=namespace, labels=labels),
        document(f"{_GROUP}/v1", "ClusterRole", wide, labels=labels, rules=wide_rules),
        document(f"{_GROUP}/v1", "ClusterRoleBinding", wide, labels=labels, **bind("ClusterRole", wide)),
        document(f"{_GROUP}/v1", "Role", name, namespace=namespace, labels=labels, rules=rules.namespaced),
        document(f"{_GROUP}/v1", "RoleBinding", name, namespace=namespace, labels=labels, **bind("Role", name)),
    ]


def _signing_rules(signers: Sequence[str]) -> list[Rule]:
    *requests, approval = load_rules().signing
    return [*requests, {**approval, "resourceNames": list(signers)}]
