"""`mizzen tag` at a real API server: what it refuses, applies, lists and removes."""

import asyncio
import contextlib
import json
from typing import Any

import cli_runs
import pytest
import yaml
from click.testing import Result
from kube_bed import Answer, Bed
from kube_webhooks import INJECTION, MUTATING, REVISION, VALIDATING

from mizzen.install.identity import Identity
from mizzen.install.webhooks import Injector, injector_configuration

SYSTEM = "istio-system"
SERVICES = f"/api/v1/namespaces/{SYSTEM}/services"
PATCH = "application/merge-patch+json"


class Cluster:
    """Revisions as an installer leaves them, without a control plane behind."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    def install(self, revision: str, name: str = "", namespace: str = SYSTEM) -> None:
        identity = Identity(namespace=namespace, revision="" if revision == "default" else revision)
        document = injector_configuration(
            Injector(identity=identity, ca_bundle="Um9vdHM=", reinvocation_policy="Never")
        )
        document["metadata"]["name"] = name or document["metadata"]["name"]
        self.bed.call("POST", MUTATING, document)
        labels = {"app": "istiod", REVISION: identity.revision_label}
        spec = {"ports": [{"name": "https-webhook", "port": 443, "targetPort": 15017}], "selector": labels}
        metadata = {"name": identity.name, "labels": labels}
        with contextlib.suppress(Answer):
            self.bed.call("POST", SERVICES.replace(SYSTEM, namespace), {"metadata": metadata, "spec": spec})

    def run(self, *arguments: str, stdin: str = "") -> Result:
        config = self.bed.kubeconfig()
        return cli_runs.run("tag", arguments[0], "--kubeconfig", config, *arguments[1:], stdin=stdin)

    async def tag(self, *arguments: str, stdin: str = "", code: int = 0) -> Result:
        result = await asyncio.to_thread(self.run, *arguments, stdin=stdin)
        assert result.exit_code == code, result.output
        return result

    def find(self, collection: str, tag: str) -> list[dict[str, Any]]:
        return self.bed.call("GET", f"{collection}?labelSelector=istio.io/tag%3D{tag}")["items"]

    def clean(self) -> None:
        for collection in (MUTATING, VALIDATING, SERVICES):
            for each in self.bed.call("GET", f"{collection}?labelSelector=istio.io/rev")["items"]:
                self.bed.call("DELETE", f"{collection}/{each['metadata']['name']}")


@pytest.fixture
def cluster(bed: Bed):
    with contextlib.suppress(Answer):
        bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
    cluster = Cluster(bed)
    cluster.clean()
    for left in bed.call("GET", f"/api/v1/namespaces?labelSelector={REVISION}%3Dprod")["items"]:
        label(bed, left["metadata"]["name"], revision=None)  # Of other tests; here it is known who asks for the tag.
    yield cluster
    cluster.clean()


def label(bed: Bed, namespace: str, **labels: str | None) -> None:
    named = {REVISION if name == "revision" else INJECTION: value for name, value in labels.items()}
    bed.call("PATCH", f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": named}}, kind=PATCH)


async def test_a_tag_is_set_moved_listed_and_removed(bed, namespace, cluster):
    cluster.install("blue")
    cluster.install("green")
    set_it = await cluster.tag("set", "prod", "--revision", "blue")
    assert set_it.stdout == (
        'Revision tag "prod" created, referencing control plane revision "blue". To enable injection using this\n'
        "revision tag, use 'kubectl label namespace <NAMESPACE> istio.io/rev=prod'\n"
    )
    (injector,) = cluster.find(MUTATING, "prod")
    assert injector["metadata"]["name"] == "istio-revision-tag-prod"
    assert {each["clientConfig"]["service"]["name"] for each in injector["webhooks"]} == {"istiod-blue"}
    assert {each["clientConfig"]["caBundle"] for each in injector["webhooks"]} == {"Um9vdHM="}
    label(bed, namespace, revision="prod")
    listed = await cluster.tag("list")
    assert [line.split() for line in listed.stdout.splitlines()] == [
        ["TAG", "REVISION", "NAMESPACES"],
        ["prod", "blue", namespace],
        ["green"],
    ]
    refused = await cluster.tag("set", "prod", "--revision", "green", code=1)
    assert refused.stderr == 'Error: revision tag "prod" already exists, and --overwrite is false\n'
    await cluster.tag("set", "prod", "--revision", "green", "--overwrite")
    (injector,) = cluster.find(MUTATING, "prod")
    assert {each["clientConfig"]["service"]["name"] for each in injector["webhooks"]} == {"istiod-green"}
    (service,) = cluster.find(SERVICES, "prod")
    assert service["spec"]["selector"] == {"app": "istiod", REVISION: "green"}
    declined = await cluster.tag("remove", "prod", stdin="n\n")
    assert declined.stdout == (
        f'Caution, found 1 namespace(s) still injected by tag "prod": {namespace}\n'
        "Proceed with operation? [y/N] Aborting operation.\n"
    )
    assert cluster.find(MUTATING, "prod")
    removed = await cluster.tag("remove", "prod", "-y")
    assert removed.stdout == "Revision tag prod removed\n"
    assert not cluster.find(MUTATING, "prod") + cluster.find(SERVICES, "prod")
    gone = await cluster.tag("remove", "prod", code=1)
    assert gone.stderr == (
        'Error: cannot remove tag "prod": cannot find MutatingWebhookConfiguration or Service for tag\n'
    )


async def test_what_cannot_be_a_tag_is_refused_and_nothing_is_written(bed, cluster):
    assert (await cluster.tag("list")).stdout == "No Istio revision tags found.\n"
    cluster.install("blue")
    cluster.install("green")
    cluster.install("green", name="another-green")
    for arguments, says in (
        (("green", "-r", "blue"), 'cannot create revision tag "green": found existing control plane revision'),
        (("prod", "-r", "red"), 'cannot find MutatingWebhookConfiguration or Service with revision "red"'),
        (("prod", "-r", "green"), 'found multiple canonical webhooks or services with revision "green"'),
        ((), "must provide a tag for modification"),
        (("a", "b", "-r", "blue"), "must provide a single tag for creation"),
    ):
        result = await cluster.tag("set", *arguments, code=1)
        assert says in result.stderr
    await cluster.tag("set", "prod", code=64)
    assert not bed.call("GET", f"{MUTATING}?labelSelector=istio.io/tag")["items"]
    # Who prints, or knows, may.
    await cluster.tag("generate", "green", "-r", "blue", "-y")
    assert not cluster.find(MUTATING, "green")
    await cluster.tag("set", "green", "-r", "blue", "--overwrite", "-y")
    assert cluster.find(MUTATING, "green")


async def test_the_default_tag_takes_over_from_the_revision_that_was_the_default(bed, namespace, cluster):
    cluster.install("default")
    cluster.install("blue")
    printed = await cluster.tag("generate", "default", "-r", "blue")
    assert "creating tag would conflict, pass --skip-confirmation to proceed:" in printed.stderr
    assert "Error [IST0139] (MutatingWebhookConfiguration istio-revision-tag-default)" in printed.stderr
    kinds = [each["kind"] for each in yaml.safe_load_all(printed.stdout)]
    assert kinds == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Service"]
    assert not cluster.find(VALIDATING, "default")

    # The older injector steps back, so there is no conflict.
    done = await cluster.tag("set", "default", "-r", "blue")
    assert done.stderr == ""
    older = bed.call("GET", f"{MUTATING}/istio-sidecar-injector")
    never = {"matchLabels": {"istio.io/deactivated": "never-match"}}
    assert all(each["namespaceSelector"] == each["objectSelector"] == never for each in older["webhooks"])
    (validator,) = cluster.find(VALIDATING, "default")
    assert validator["webhooks"][0]["failurePolicy"] == "Ignore"
    closed = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]
    path = f"{VALIDATING}/istiod-default-validator"
    bed.call("PATCH", path, closed, kind="application/json-patch+json")
    await cluster.tag("set", "default", "-r", "blue", "--overwrite")
    assert bed.call("GET", path)["webhooks"][0]["failurePolicy"] == "Fail"
    label(bed, namespace, revision="default")
    listed = json.loads((await cluster.tag("list", "-o", "json")).stdout)
    assert {"tag": "default", "revision": "blue", "namespaces": [namespace]} in listed
    await cluster.tag("remove", "default", "-y")
    assert not cluster.find(VALIDATING, "default") + cluster.find(MUTATING, "default")


async def test_a_conflict_is_told_and_applied_only_if_somebody_says_so(bed, cluster):
    cluster.install("blue")
    cluster.install("green")
    await cluster.tag("set", "prod", "-r", "green", "--webhook-name", "somebodys")
    declined = await cluster.tag("set", "prod", "-r", "blue", "--overwrite", stdin="n\n")
    assert "creating tag would conflict, pass --skip-confirmation to proceed:" in declined.stderr
    assert declined.stdout.endswith("Apply anyways? [y/N] ")
    assert [each["metadata"]["name"] for each in cluster.find(MUTATING, "prod")] == ["somebodys"]
    await cluster.tag("set", "prod", "-r", "blue", "--overwrite", stdin="y\n")
    assert len(cluster.find(MUTATING, "prod")) == 2


async def test_a_conflict_is_found_wherever_the_control_planes_are(bed, namespace, cluster):
    for revision in ("blue", "green"):
        cluster.install(revision, namespace=namespace)
    await cluster.tag("set", "prod", "-r", "green", "-i", namespace, "--webhook-name", "somebodys")
    declined = await cluster.tag("set", "prod", "-r", "blue", "-i", namespace, "--overwrite", stdin="n\n")
    assert "creating tag would conflict" in declined.stderr
