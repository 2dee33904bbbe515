"""What a control plane may do: its service account, its roles and their bindings.

The rules are data (`data/rules.yaml`, the same file that the Helm chart reads). Rights that are needed in the control
plane's own namespace alone are a Role there, all others a ClusterRole.
"""

import functools
import importlib.resources
from typing import Any

import msgspec

from mizzen.install.identity import Identity, document

_GROUP = "rbac.authorization.k8s.io"

Rule = dict[str, list[str]]


class Rules(msgspec.Struct, frozen=True):
    """As roles have them."""

    cluster: list[Rule]
    namespaced: list[Rule]


@functools.cache
def load_rules() -> Rules:
    """The rights that a control plane needs."""
    data = importlib.resources.files("mizzen.install").joinpath("data/rules.yaml").read_bytes()
    return msgspec.yaml.decode(data, type=Rules)


def rbac_documents(identity: Identity) -> list[dict[str, Any]]:
    """ServiceAccount, ClusterRole, Role and what binds them."""
    labels, name, namespace = identity.labels(app="istiod"), identity.name, identity.namespace
    wide = f"istiod-clusterrole{identity.suffix}-{namespace}"
    rules = load_rules()
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}

    def bind(kind: str, role: str) -> dict[str, Any]:
        return {"roleRef": {"apiGroup": _GROUP, "kind": kind, "name": role}, "subjects": [subject]}

    return [
        document("v1", "ServiceAccount", name, namespace=namespace, labels=labels),
        document(f"{_GROUP}/v1", "ClusterRole", wide, labels=labels, rules=rules.cluster),
        document(f"{_GROUP}/v1", "ClusterRoleBinding", wide, labels=labels, **bind("ClusterRole", wide)),
        document(f"{_GROUP}/v1", "Role", name, namespace=namespace, labels=labels, rules=rules.namespaced),
        document(f"{_GROUP}/v1", "RoleBinding", name, namespace=namespace, labels=labels, **bind("Role", name)),
    ]
