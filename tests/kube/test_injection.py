"""Injection by a real API server: which pods get a sidecar, from whom, and that it is the one of `mizzen inject`."""

import asyncio
import contextlib
import json
import pathlib
from typing import Any

import eventually as waiting
import pytest
import yaml
from kube_admission import ACCOUNT, PATCH, a_pod, is_injected, meshed
from kube_bed import Answer, Bed
from kube_objects import path_of
from kube_webhooks import INJECT, INJECTION, REVISION, injector

from mizzen.inject.manifests import inject_documents
from mizzen.inject.values import InjectionConfig, decode_values

SYSTEM = "istio-system"
CASES = pathlib.Path(__file__).parents[1] / "unit" / "inject" / "cases"


@pytest.fixture(autouse=True)
def own_namespace(bed: Bed) -> None:
    """The control plane's."""
    with contextlib.suppress(Answer):
        bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})


@pytest.fixture
async def mesh(bed: Bed, tmp_path):
    async with meshed(bed, tmp_path) as mesh:
        yield mesh


async def test_pods_of_labelled_namespaces_are_injected_and_others_are_not(bed, namespace, mesh):
    await mesh.injects(injector(mesh.url()))
    await mesh.mark(namespace, INJECTION, "enabled")
    await mesh.settle(namespace)
    cases = {
        "plain": (a_pod(namespace), True),
        "opted out by its label": (a_pod(namespace, {INJECT: "false"}), False),
        "opted out by its annotation": (a_pod(namespace, annotations={INJECT: "false"}), False),
        "on the host's network": (a_pod(namespace, hostNetwork=True), False),
        "of no labelled namespace": (a_pod("default"), False),
        "that asks itself": (a_pod("default", {INJECT: "true"}), True),
        "that asks by revision": (a_pod("default", {REVISION: "default"}), True),
        "of another revision": (a_pod("default", {REVISION: "other"}), False),
        "of the system that asks": (a_pod("kube-system", {INJECT: "true"}), False),
    }
    found = {name: is_injected(await mesh.create(document)) for name, (document, _) in cases.items()}
    assert found == {name: wanted for name, (_, wanted) in cases.items()}


async def test_revisions_and_tags_ask_their_own_control_plane(bed, namespace, tmp_path):
    async with meshed(bed, tmp_path, "canary") as mesh:
        await mesh.injects(injector(mesh.url(), "canary"))
        await mesh.injects(injector(mesh.url(), "canary", tag="prod", name="istio-revision-tag-prod"))
        foreign = await mesh.configure(injector("https://127.0.0.1:1/inject", "other", "Ignore"))
        await mesh.mark(namespace, REVISION, "canary")
        await mesh.settle(namespace)
        pod = await mesh.create(a_pod(namespace))
        assert pod["metadata"]["annotations"]["istio.io/rev"] == "canary"
        proxy = next(each for each in pod["spec"]["initContainers"] if each["name"] == "istio-proxy")
        assert {"name": "CA_ADDR", "value": "istiod-canary.istio-system.svc:15012"} in proxy["env"]
        # In turn, so that each of them shows that the API server has noticed it.
        await mesh.mark(namespace, REVISION, "other")
        await mesh.settle(namespace, wanted=False)
        await mesh.mark(namespace, REVISION, "prod")
        await mesh.settle(namespace)
        await mesh.mark(namespace, INJECTION, "disabled")
        await mesh.mark(namespace, REVISION, "canary")
        await mesh.settle(namespace, wanted=False)
        assert not any(entry["clientConfig"].get("caBundle") for entry in mesh.entries(foreign))


async def test_the_path_names_cluster_and_network(bed, namespace, mesh):
    await mesh.injects(injector(mesh.url("/inject/cluster/remote/net/far/some_key/a--slash--b")))
    await mesh.mark(namespace, INJECTION, "enabled")
    await mesh.settle(namespace)
    pod = await mesh.create(a_pod(namespace))
    proxy = next(each for each in pod["spec"]["initContainers"] if each["name"] == "istio-proxy")
    values = {each["name"]: each.get("value") for each in proxy["env"]}
    assert (values["ISTIO_META_CLUSTER_ID"], values["ISTIO_META_NETWORK"]) == ("remote", "far")
    assert values["SOME_KEY"] == "a/b"


def templates() -> list[Any]:
    """Pods of injection's own cases, with what else was given there."""
    found = []
    for path in sorted(CASES.glob("*/input.yaml")):
        values = path.with_name("values.yaml")
        chosen = yaml.safe_load(values.read_text()) if values.exists() else {}
        chosen.pop("revision", None)  # Here it is the control plane's.
        mesh = path.with_name("mesh.yaml")
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            template = document and (document if document["kind"] == "Pod" else document["spec"].get("template"))
            if template and "containers" in template.get("spec", {}):
                given = (template, chosen, yaml.safe_load(mesh.read_text()) if mesh.exists() else {})
                found.append(pytest.param(*given, id=f"{path.parent.name}-{number}"))
    return found


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": SYSTEM}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
async def config_maps(bed: Bed):
    """Applies ConfigMaps of the control plane that go with the test."""
    made = []

    async def apply(document: dict[str, Any]) -> None:
        made.append(path_of(document, "configmaps"))
        await asyncio.to_thread(bed.apply, made[-1], document)

    yield apply
    for path in made:
        await asyncio.to_thread(bed.call, "DELETE", path)


@pytest.mark.parametrize(("template", "values", "mesh_config"), templates())
async def test_admission_makes_of_a_pod_what_the_command_line_does(
    bed, namespace, tmp_path, config_maps, template, values, mesh_config
):
    await config_maps(config_map("istio-sidecar-injector", values=json.dumps(values), config="policy: enabled\n"))
    await config_maps(config_map("istio", mesh=yaml.safe_dump(mesh_config, sort_keys=False)))
    async with meshed(bed, tmp_path) as mesh:
        asks = "sidecar.istio.io/inject" in str(template)
        raw = {"apiVersion": "v1", "kind": "Pod", **template}
        raw["metadata"] = {**template.get("metadata", {}), "generateName": "p-", "namespace": namespace}
        raw["metadata"].pop("name", None)
        raw["spec"] = {**ACCOUNT, **raw["spec"]}
        stored = await mesh.create(raw)
        await mesh.injects(injector(mesh.url()))
        await mesh.mark(namespace, INJECTION, "enabled")
        await mesh.settle(namespace, **({"labels": {INJECT: "true"}} if asks else {}))
        injected = await mesh.create(raw)
        config = decode_values(values, InjectionConfig(revision="default", native_sidecars=True))
        expected = inject_documents([stored_as_asked(stored)], mesh=mesh_config, config=config).documents[0]
        reference = await mesh.create({**expected, "metadata": {**expected["metadata"], "labels": off(expected)}})
        assert injected["spec"] == reference["spec"]
        assert injected["metadata"]["annotations"] == reference["metadata"]["annotations"]
        assert injected["metadata"]["labels"] == expected["metadata"]["labels"]


def stored_as_asked(stored: dict[str, Any]) -> dict[str, Any]:
    """A pod as the API server shows it to a webhook: with its defaults, and without what it adds at the end."""
    kept = {name: value for name, value in stored["metadata"].items() if name in ("labels", "annotations", "namespace")}
    return {**stored, "metadata": {**kept, "generateName": "p-"}, "status": {}}


def off(document: dict[str, Any]) -> dict[str, str]:
    """Labels by which nobody injects again."""
    return {**document["metadata"]["labels"], INJECT: "false"}


async def test_what_cannot_be_injected_is_refused_with_the_reason(bed, namespace, mesh):
    await mesh.injects(injector(mesh.url()))
    await mesh.mark(namespace, INJECTION, "enabled")
    await mesh.settle(namespace)
    with pytest.raises(Answer, match=r"sidecar\.istio\.io/interceptionMode"):
        await mesh.create(a_pod(namespace, annotations={"sidecar.istio.io/interceptionMode": "SOMEHOW"}))


async def test_the_nodes_decide_whether_sidecars_are_native(bed, namespace, mesh):
    await mesh.injects(injector(mesh.url()))
    await mesh.mark(namespace, INJECTION, "enabled")
    await mesh.settle(namespace)
    made = []
    try:
        for name, version in (("new", "v1.34.1"), ("old", "v1.32.9")):
            document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            await mesh.call("POST", "/api/v1/nodes", document)
            made.append(name)
            status = {"status": {"nodeInfo": {"kubeletVersion": version}}}
            await mesh.call("PATCH", f"/api/v1/nodes/{name}/status", status, kind=PATCH)
        await waiting.eventually(lambda: len(list(mesh.plane.control_plane.cluster.source.of_kind("Node"))) == 2, 60)
        await mesh.until(lambda: not is_native(mesh.bed.call("POST", *creation(namespace))))
        bound = await mesh.create(a_pod(namespace, nodeName="new"))
        assert is_native(bound)
        assert not is_native(await mesh.create(a_pod(namespace, nodeName="old")))
    finally:
        for name in made:
            await mesh.call("DELETE", f"/api/v1/nodes/{name}")


def creation(namespace: str) -> tuple[str, dict[str, Any]]:
    return f"/api/v1/namespaces/{namespace}/pods?dryRun=All", a_pod(namespace)


def is_native(pod: dict[str, Any]) -> bool:
    return any(container["name"] == "istio-proxy" for container in pod["spec"].get("initContainers", ()))
