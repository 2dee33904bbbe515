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
            until_served(bed, f"{spec['group']}/{version['name']}", spec["names"]["plural"])


def _of_gateway_api() -> Iterator[dict[str, Any]]:
    files = sorted((PARTS / "gateway-api").glob("*.yaml"))
    if not files:
        pytest.skip("no definitions of the Gateway API: scripts/test-kube-parts brings them")
    for file in files:
        documents = filter(None, yaml.safe_load_all(file.read_text()))
        yield from (one for one in documents if one["kind"] == "CustomResourceDefinition")


def until_served(bed: Bed, version: str, plural: str) -> None:
    """Wait until the server serves a kind and lists it among those that it serves: it comes to the one after the other."""
    eventually_blocking(lambda: _is_served(bed, version, plural), 120)


def _is_served(bed: Bed, version: str, plural: str) -> bool:
    group = version.partition("/")[0]
    with contextlib.suppress(Answer):
        listed = [each["groupVersion"] for each in bed.call("GET", f"/apis/{group}")["versions"]]
        names = [each["name"] for each in bed.call("GET", f"/apis/{version}")["resources"]]
        return version in listed and plural in names and bool(bed.call("GET", f"/apis/{version}/{plural}"))
    return False
