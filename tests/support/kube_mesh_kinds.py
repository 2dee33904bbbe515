"""The kinds of the mesh in an API server: CRDs that take anything, with the defaults of status that real ones have."""

import contextlib
from typing import Any

from eventually import eventually_blocking
from kube_bed import Answer, Bed
from kube_objects import definition

from mizzen.api.kinds import KINDS, Kind

GATEWAY_API = "gateway.networking.k8s.io"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WAITING = {
    "status": "Unknown",
    "reason": "Pending",
    "message": "Waiting for controller",
    "lastTransitionTime": "1970-01-01T00:00:00Z",
}
_CONDITIONS = {
    "GatewayClass": ("Accepted",),
    "Gateway": ("Accepted", "Programmed"),
    "ListenerSet": ("Accepted", "Programmed"),
}
_LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def mesh_kinds() -> list[Kind]:
    """Those that are no part of Kubernetes itself."""
    return [kind for kind in KINDS if kind.group.endswith(".istio.io") or kind.group == GATEWAY_API]


def crd(kind: Kind) -> dict[str, Any]:
    """The CRD of a kind; the group is one that Kubernetes protects against strangers."""
    schema: dict[str, Any] = dict(_LOOSE)
    if kind.group == GATEWAY_API and kind.kind in _CONDITIONS:
        default = {"conditions": [_WAITING | {"type": one} for one in _CONDITIONS[kind.kind]]}
        schema["properties"] = {"status": _LOOSE | {"default": default}}
    document = definition(kind.kind, kind.plural, kind.group, *kind.versions, schema=schema)
    document["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    if not kind.namespaced:
        document["spec"]["scope"] = "Cluster"
    return document


def install(bed: Bed) -> None:
    """Make the CRDs that are missing, and the control plane's namespace, and wait until all kinds are served."""
    with contextlib.suppress(Answer):
        bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": "istio-system"}})
    for kind in mesh_kinds():
        try:
            bed.call("POST", _CRDS, crd(kind))
        except Answer as answer:
            if answer.status != 409:
                raise
    for kind in mesh_kinds():
        path = f"/apis/{kind.api_version}/{kind.plural}"
        eventually_blocking(lambda path=path: _is_served(bed, path), 120)


def _is_served(bed: Bed, path: str) -> bool:
    try:
        return bool(bed.call("GET", path))
    except Answer:
        return False
