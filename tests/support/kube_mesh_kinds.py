"""The kinds of the mesh in an API server: Istio's as an installation defines them, the Gateway API's as its project does."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from eventually import eventually_blocking
from kube_bed import PARTS, Answer, Bed

from mizzen.install.crds.definitions import mesh_crds

GATEWAY_API = "gateway.networking.k8s.io"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install(bed: Bed) -> None:
    """Make the CRDs that are missing, and the control plane's namespace, and wait until all kinds are served."""
    with contextlib.suppress(Answer):
        bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": "istio-system"}})
    documents = [*mesh_crds(), *_of_gateway_api()]
    for document in documents:
        try:
            bed.call("POST", _CRDS, document)
        except Answer as answer:
            if answer.status != 409:
                raise
    for document in documents:
        spec = document["spec"]
        for version in spec["versions"]:
            path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            eventually_blocking(lambda path=path: _is_served(bed, path), 120)


def _of_gateway_api() -> Iterator[dict[str, Any]]:
    files = sorted((PARTS / "gateway-api").glob("*.yaml"))
    if not files:
        pytest.skip("no definitions of the Gateway API: scripts/test-kube-parts brings them")
    for file in files:
        documents = filter(None, yaml.safe_load_all(file.read_text()))
        yield from (one for one in documents if one["kind"] == "CustomResourceDefinition")


def _is_served(bed: Bed, path: str) -> bool:
    try:
        return bool(bed.call("GET", path))
    except Answer:
        return False
