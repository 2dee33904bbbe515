"""The recorded cases of the Gateway API through a real API server: what is written back is what the reference wrote."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import golden
import kube_bed
import kube_mesh_kinds
import msgspec
import pytest
from control_planes import FAST, control_plane
from kube_accounts import installed
from kube_bed import Answer, Bed
from kube_objects import path_of
from recorded_statuses import plain, recorded_statuses

from mizzen import settings
from mizzen.api.kinds import kind_of_api
from mizzen.sources.kube.access import from_kubeconfig

pytestmark = pytest.mark.timeout(600)

CASES = golden.case_names("gateway-api")
STATUSES_ALONE = msgspec.structs.replace(
    FAST, features=settings.Features(gateway_deployments=False, gateway_classes=False)
)
_OLDEST_WINS = ("BackendTLSPolicy", "ListenerSet")
_NOT_APPLIED = ("status", "creationTimestamp")


def path(document: dict[str, Any]) -> str:
    group = document["apiVersion"].rpartition("/")[0]
    kind = kind_of_api(group, document["kind"])
    assert kind is not None
    return path_of(document, kind.plural)


def apply(bed: Bed, document: dict[str, Any]) -> None:
    """Everything of a document, its status too, but for its age, which is the server's to give."""
    metadata = {name: value for name, value in document["metadata"].items() if name not in _NOT_APPLIED}
    bed.apply(path(document), {**{k: v for k, v in document.items() if k not in _NOT_APPLIED}, "metadata": metadata})
    if "status" in document:
        body = {"status": document["status"]}
        bed.call("PATCH", f"{path(document)}/status", body, kind="application/merge-patch+json")


@pytest.fixture(scope="module")
def golden_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A server with the base mesh, in which names and addresses are those of the recordings."""
    with kube_bed.running(tmp_path_factory.mktemp("golden")) as bed:
        kube_mesh_kinds.install(bed)
        base = golden.load_case("base")
        for name in ("istio-system", *(d["metadata"]["name"] for d in base.objects if d["kind"] == "Namespace")):
            with contextlib.suppress(Answer):
                bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        mesh = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "istio", "namespace": "istio-system"},
            "data": {"mesh": json.dumps(base.mesh)},
        }
        for document in (mesh, *base.objects):
            apply(bed, document)
        yield bed


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, golden_bed: Bed) -> Iterator[golden.Case]:
    """A case whose objects the server has, besides the base mesh."""
    found = golden.load_case(request.param)
    base = {path(document): document for document in golden.load_case("base").objects}
    own = [document for document in found.objects if base.get(path(document)) != document]
    competing: set[str] = set()
    for document in sorted(own, key=lambda each: each["metadata"]["creationTimestamp"]):
        if document["kind"] in _OLDEST_WINS:
            if document["kind"] in competing:
                time.sleep(1.1)  # The server's times have seconds.
            competing.add(document["kind"])
        apply(golden_bed, document)
    yield found
    for document in own:
        if path(document) in base:
            apply(golden_bed, base[path(document)])
        else:
            golden_bed.call("DELETE", path(document))


def written(bed: Bed, names: list[str]) -> dict[str, Any]:
    """The statuses that the server has, by `Kind/namespace/name`."""
    found = {}
    for name in names:
        kind, namespace, own = name.split("/")
        known = next(one for one in kube_mesh_kinds.mesh_kinds() if (one.kind, one.group) == (kind, GATEWAY_API))
        metadata = {"name": own, **({"namespace": namespace} if namespace else {})}
        document = {"apiVersion": known.api_version, "metadata": metadata}
        found[name] = plain(bed.call("GET", path_of(document, known.plural)).get("status", {}))
    return found


GATEWAY_API = kube_mesh_kinds.GATEWAY_API


async def test_what_is_written_equals_the_recording(golden_bed: Bed, case: golden.Case, tmp_path) -> None:
    want = {name: plain(status) for name, status in recorded_statuses(case).items()}
    assert want
    access = from_kubeconfig(await asyncio.to_thread(installed, golden_bed))
    got: dict[str, Any] = {}
    async with control_plane(tmp_path, STATUSES_ALONE, config=(), kubernetes=access):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                while got != want:
                    await asyncio.sleep(0.2)
                    got = await asyncio.to_thread(written, golden_bed, list(want))
    assert got == want
