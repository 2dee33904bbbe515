"""Admission by a real API server: objects judged, and webhook configurations that are kept right."""

import asyncio
import contextlib
import json
import pathlib
import ssl
import sys
import time
import urllib.request
from typing import Any

import aiohttp
import eventually as waiting
import pytest
import yaml
from claims import own_port
from control_planes import FAST
from cryptography import x509
from kube_accounts import installed
from kube_admission import PATCH, Mesh, a_pod, is_injected, meshed
from kube_bed import ADMIN, Answer, Bed
from kube_objects import definition, path_of
from kube_webhooks import INJECT, INJECTION, MUTATING, REVISION, injector, validator

from mizzen.api.kinds import KINDS, Kind
from mizzen.ca.authority import start_self_signed
from mizzen.control.options import Address

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SYSTEM = "istio-system"
RULES = pathlib.Path(__file__).parents[1] / "unit" / "api" / "validate" / "rules"
MESH_KINDS = [kind for kind in KINDS if kind.group.endswith(".istio.io")]


def ensure(bed: Bed, path: str, body: dict[str, Any]) -> None:
    with contextlib.suppress(Answer):
        bed.call("POST", path, body)


@pytest.fixture(scope="module", autouse=True)
def surroundings(bed: Bed) -> None:
    """The control plane's namespace, and the mesh's kinds by definitions that take anything: judging is for webhooks."""
    ensure(bed, "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
    for kind in MESH_KINDS:
        document = definition(kind.kind, kind.plural, kind.group, *kind.versions)
        bed.apply(path_of(document, "customresourcedefinitions"), document)
    for kind in MESH_KINDS:
        waiting.eventually_blocking(lambda kind=kind: takes_anything(bed, kind), 60)


@pytest.fixture(scope="module", autouse=True)
def leftovers(bed: Bed, surroundings: None):
    """Tests of other modules meet no CRDs of this one."""
    yield
    names = {f"{kind.plural}.{kind.group}" for kind in MESH_KINDS}
    for name in names:
        bed.call("DELETE", f"{CRDS}/{name}")
    waiting.eventually_blocking(
        lambda: names.isdisjoint(each["metadata"]["name"] for each in bed.call("GET", CRDS)["items"]), 120
    )


def takes_anything(bed: Bed, kind: Kind) -> bool:
    """Whether it is served, and by the definition here where another module has left its own."""
    document = an_object(kind, "default", {"nothing": "like this"})
    try:
        return bool(bed.call("POST", f"{collection(kind, 'default')}&fieldValidation=Strict", document))
    except Answer:
        return False


@pytest.fixture
async def mesh(bed: Bed, tmp_path):
    async with meshed(bed, tmp_path) as mesh:
        yield mesh


# -- validation ---------------------------------------------------------------------------------------------------------


def judged() -> list[Any]:
    """Of each kind an object that is refused, and one beside it that is not."""
    found = []
    for path in sorted(RULES.glob("*.yaml")):
        cases = yaml.safe_load(path.read_text())
        kind = next(kind for kind in MESH_KINDS if kind.kind == path.stem)
        rule = next(
            rule
            for rule in cases["rules"]
            if rule.get("level", "error") == "error" and "quiet" in rule and str(rule["at"]).startswith("spec")
        )
        base = cases["base"]
        found.append(
            pytest.param(kind, {**base, **rule["fires"]}, {**base, **rule["quiet"]}, rule["says"], id=kind.kind)
        )
    return found


def an_object(kind: Kind, namespace: str, spec: dict[str, Any], name: str = "x") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {REVISION: "default"}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def collection(kind: Kind, namespace: str) -> str:
    return f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}?dryRun=All"


@pytest.fixture
async def validating(bed: Bed, tmp_path):
    async with meshed(bed, tmp_path) as mesh:
        await mesh.validates(validator(mesh.url("/validate")))
        yield mesh


async def test_every_kind_of_the_mesh_is_judged(bed, namespace, validating):
    wrong = {}
    for case in judged():
        kind, bad, good, says = case.values
        await validating.call("POST", collection(kind, namespace), an_object(kind, namespace, good))
        try:
            await validating.call("POST", collection(kind, namespace), an_object(kind, namespace, bad))
            wrong[kind.kind] = "admitted"
        except Answer as refusal:
            said = str(refusal)
            if "denied the request: configuration is invalid: " not in said or says.replace("x.shop", "x") not in (
                said.replace(f"x.{namespace}", "x")
            ):
                wrong[kind.kind] = said
    assert not wrong
    assert {case.values[0].kind for case in judged()} == {kind.kind for kind in MESH_KINDS}


async def test_warnings_reach_whoever_writes(bed, namespace, validating):
    kind = next(kind for kind in MESH_KINDS if kind.kind == "ProxyConfig")
    document = an_object(kind, namespace, {"concurrency": 1, "selector": {}})
    warnings = await asyncio.to_thread(warnings_of, bed, collection(kind, namespace), document)
    assert any("workload selector specified without labels" in warning for warning in warnings)
    # By the label the API server knows whose objects these are; others are nobody's business here.
    del document["metadata"]["labels"]
    assert await asyncio.to_thread(warnings_of, bed, collection(kind, namespace), document) == []


def warnings_of(bed: Bed, path: str, document: dict[str, Any]) -> list[str]:
    """The headers by which an API server warns."""
    request = urllib.request.Request(
        bed.url + path,
        json.dumps(document).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {ADMIN}"},
        method="POST",
    )
    context = ssl.create_default_context(cadata=bed.authority.pem)
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return answer.headers.get_all("Warning", [])


async def test_updates_are_judged_and_deletions_are_not(bed, namespace, validating):
    kind = next(kind for kind in MESH_KINDS if kind.kind == "Sidecar")
    document = an_object(kind, namespace, {"egress": [{"hosts": ["*/*"]}]})
    path = path_of(document, kind.plural)
    await validating.call("POST", collection(kind, namespace).partition("?")[0], document)
    with pytest.raises(Answer, match="denied the request"):
        await validating.call("PATCH", path, {"spec": {"egress": [{"hosts": ["no"]}]}}, kind=PATCH)
    await validating.call("DELETE", path)


# -- configurations -----------------------------------------------------------------------------------------------------


async def test_whoever_overwrites_the_roots_is_corrected_and_nothing_is_written_for_nothing(bed, namespace, mesh):
    path = await mesh.injects(injector(mesh.url()))
    settled = mesh.version(path)
    await asyncio.sleep(1)
    assert mesh.version(path) == settled
    for _ in range(2):
        await mesh.call("PATCH", path, {"webhooks": injector(mesh.url())["webhooks"]}, kind=PATCH)
        await mesh.until(lambda: mesh.has_roots(path))
    await mesh.mark(namespace, INJECTION, "enabled")
    await mesh.settle(namespace)


async def test_validation_fails_open_until_it_is_reached(bed, namespace, mesh):
    document = validator("https://127.0.0.1:1/validate")
    path = await mesh.configure(document)
    await mesh.until(lambda: mesh.has_roots(path))
    assert mesh.entries(path)[0]["failurePolicy"] == "Ignore"
    kind = next(kind for kind in MESH_KINDS if kind.kind == "Sidecar")
    bad = an_object(kind, namespace, {"egress": [{"hosts": ["no"]}]})
    await mesh.call("POST", collection(kind, namespace), bad)
    url = [{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": mesh.url("/validate")}]
    await mesh.call("PATCH", path, url, kind="application/json-patch+json")
    await mesh.until(lambda: mesh.entries(path)[0]["failurePolicy"] == "Fail")
    with pytest.raises(Answer, match="denied the request"):
        await mesh.call("POST", collection(kind, namespace), bad)


async def test_a_new_certificate_and_a_new_root_cost_no_request(bed, namespace, mesh):
    path = await mesh.injects(injector(mesh.url()))
    await mesh.mark(namespace, INJECTION, "enabled")
    await mesh.settle(namespace)
    plane, counts = mesh.plane.control_plane, {"made": 0}
    done = asyncio.Event()

    async def keep_creating() -> None:
        while not done.is_set():
            assert is_injected(await mesh.create(a_pod(namespace)))
            counts["made"] += 1

    async def reach(more: int) -> None:
        target = counts["made"] + more
        await waiting.eventually(lambda: counts["made"] >= target or creating.done(), 120)

    creating = asyncio.ensure_future(keep_creating())
    shown = set()
    for _ in range(3):
        plane._certificate.renew()
        shown.add(await asyncio.to_thread(serial_of, mesh))
        await reach(5)
    assert len(shown) == 3
    before = plane.authority.bundle
    plane.authority.plug_in(start_self_signed("another.example", FAST.authority, time.time()).current)
    await waiting.eventually(lambda: plane.authority.bundle != before, 60)
    await mesh.until(lambda: mesh.has_roots(path))
    await reach(5)
    done.set()
    await creating


def serial_of(mesh: Mesh) -> str:
    """Which certificate a new connection is shown."""
    port = mesh.plane.control_plane.ports["--httpsAddr"]
    text = ssl.get_server_certificate(("127.0.0.1", port))
    return str(x509.load_pem_x509_certificate(text.encode()).serial_number)


async def test_an_absent_control_plane_stops_neither_itself_nor_the_system(bed, namespace, tmp_path):
    async with meshed(bed, tmp_path) as mesh:
        path = await mesh.injects(injector(mesh.url()))
        await mesh.mark(namespace, INJECTION, "enabled")
        await mesh.settle(namespace)
        gone = mesh.url()
        document = await mesh.call("GET", path)
    document["webhooks"] = [
        {**entry, "clientConfig": {**entry["clientConfig"], "url": gone}} for entry in document["webhooks"]
    ]
    for name in ("resourceVersion", "uid", "managedFields"):
        document["metadata"].pop(name, None)
    call = lambda method, at, body=None, **more: asyncio.to_thread(bed.call, method, at, body, **more)  # noqa: E731
    await call("POST", MUTATING, document)
    try:
        creations = "/api/v1/namespaces/{}/pods?dryRun=All"
        await refused(call, creations.format(namespace), a_pod(namespace))
        own = a_pod(SYSTEM, {"app": "istiod", INJECT: "false"})
        for made in (own, a_pod(SYSTEM), a_pod("kube-system"), a_pod(namespace, {INJECT: "false"})):
            await call("POST", creations.format(made["metadata"]["namespace"]), made)
        opened = [{"op": "replace", "path": f"/webhooks/{at}/failurePolicy", "value": "Ignore"} for at in range(4)]
        await call("PATCH", path, opened, kind="application/json-patch+json")
        await admitted(call, creations.format(namespace), a_pod(namespace))
    finally:
        await call("DELETE", path)


async def refused(call: Any, path: str, body: dict[str, Any]) -> None:
    """Until the API server has noticed, and refuses for want of an answer."""

    async def refusal() -> str:
        try:
            await call("POST", path, body)
        except Answer as answer:
            return str(answer)
        return ""

    assert "failed calling webhook" in await waiting.eventually(refusal, 120, 0.1)


async def admitted(call: Any, path: str, body: dict[str, Any]) -> None:
    """Until the API server has noticed, and admits the pod as it is."""

    async def made() -> dict[str, Any]:
        with contextlib.suppress(Answer):
            return await call("POST", path, body)
        return {}

    assert not is_injected(await waiting.eventually(made, 120, 0.1))


async def test_a_configuration_that_would_stop_the_system_is_told_of(bed, mesh, caplog):
    await mesh.call("GET", "/api/v1/namespaces/kube-system")
    document = injector(mesh.url(), name="too-wide")
    document["webhooks"] = [document["webhooks"][0] | {"namespaceSelector": {}, "objectSelector": {}}]
    await mesh.injects(document)
    (told,) = [record.getMessage() for record in caplog.records if "cannot start" in record.getMessage()]
    assert told.startswith("too-wide: what the system runs in namespace kube-")


# -- requests that come from elsewhere ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "kind", "status", "says"),
    [
        ("/inject", b"", "application/json", 400, "no body found"),
        ("/validate", b"", "application/json", 400, "no body found"),
        ("/inject", b"{}", "text/plain", 415, "invalid Content-Type, want `application/json`"),
        ("/validate", b"{}", "text/plain", 415, "invalid Content-Type, want `application/json`"),
        ("/inject", b"{}", "application/json", 400, "no AdmissionReview"),
        ("/validate", b"{", "application/json", 400, "no AdmissionReview"),
    ],
)
async def test_what_is_no_review_is_answered_by_http(bed, mesh, path, body, kind, status, says):
    context = ssl.create_default_context(cadata=mesh.plane.control_plane.authority.bundle.decode())
    async with (
        aiohttp.ClientSession() as session,
        session.post(mesh.url(path), data=body, headers={"Content-Type": kind}, ssl=context) as answer,
    ):
        assert answer.status == status
        assert says in await answer.text()
    async with aiohttp.ClientSession() as session, session.get(mesh.url("/ready"), ssl=context) as answer:
        assert answer.status == 200


# -- starts -------------------------------------------------------------------------------------------------------------


async def test_a_control_plane_that_comes_back_with_another_root_is_believed_again(bed, namespace, tmp_path):
    port = Address("127.0.0.1", own_port())
    folders = [tmp_path / "before", tmp_path / "after"]
    for folder in folders:
        folder.mkdir()
    async with meshed(bed, folders[0], port=port) as mesh:
        await mesh.injects(injector(mesh.url()))
        await mesh.validates(validator(mesh.url("/validate")))
        await mesh.mark(namespace, INJECTION, "enabled")
        await mesh.settle(namespace)
        kept, mesh._made = mesh._made, []
    try:
        assert all(entry["failurePolicy"] == "Fail" for path in kept for entry in mesh.entries(path))
        async with meshed(bed, folders[1], port=port) as mesh:
            await mesh.until(lambda: all(mesh.has_roots(path) for path in kept))
            await mesh.settle(namespace)
    finally:
        for path in kept:
            await mesh.call("DELETE", path)


async def test_the_command_serves_webhooks_where_it_follows_an_api_server(bed, tmp_path):
    port, log = own_port(), tmp_path / "log"
    off = ("--grpcAddr", "", "--secureGRPCAddr", "", "--mutualGRPCAddr", "", "--monitoringAddr", "", "--httpAddr", "")
    command = (sys.executable, "-m", "mizzen", "discovery", "--kubeconfig", str(installed(bed)), *off)
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *command, "--httpsAddr", f"127.0.0.1:{port}", "--ctrlz_port", "0", stdout=file, stderr=file, cwd=tmp_path
        )
    try:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        async def is_ready() -> bool:
            assert process.returncode is None, log.read_text()
            async with aiohttp.ClientSession() as session:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"https://127.0.0.1:{port}/ready", ssl=context) as answer:
                        return answer.status == 200
            return False

        await waiting.eventually(is_ready, 120, 0.1)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
