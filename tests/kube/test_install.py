"""`mizzen install` and `mizzen uninstall` at a real API server, which nothing else uses."""

import asyncio
import base64
import contextlib
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from cli_runs import run
from click.testing import Result
from control_planes import FAST, control_plane
from eventually import eventually_blocking
from kube_accounts import token, until_installed
from kube_bed import ISSUER, Answer, Bed, running

from mizzen import settings
from mizzen.control.options import Address
from mizzen.install.crds.definitions import mesh_crds
from mizzen.install.identity import Identity
from mizzen.install.manifests import manifests
from mizzen.install.values import lay_over
from mizzen.sources.kube.access import from_kubeconfig
from mizzen.sources.kube.objects import PLACES, Name, name_of

pytestmark = pytest.mark.timeout(600)

NO_WAIT = ("-y", "--readiness-timeout=0s")
EVERYTHING: dict[str, Any] = {
    "revisionTags": ["prod"],
    "dashboards": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "gateways": {"istio-ingressgateway": {"enabled": True}, "edge": {"namespace": "default"}},
}


@pytest.fixture(scope="module")
def own_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """Webhooks that fail closed would be in the way of everybody else."""
    with running(tmp_path_factory.mktemp("installed")) as bed:
        yield bed


class Cluster:
    """The program at work on a cluster, and what became of that."""

    def __init__(self, bed: Bed, folder: pathlib.Path) -> None:
        self.bed, self._folder = bed, folder
        self._flags = ("--kubeconfig", bed.kubeconfig())

    def run(self, *arguments: object, stdin: str | None = None) -> Result:
        return run(*arguments, *self._flags, stdin=stdin)

    def install(self, values: dict[str, Any], *arguments: str) -> Result:
        file = self._folder / "values.json"
        file.write_bytes(msgspec.json.encode(values))
        return self.run("install", "-f", file, *(arguments or NO_WAIT))

    def read(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        return self.bed.call("GET", Name(kind, namespace, name).path)

    def all_of(self, selector: str = "app.kubernetes.io/part-of=mizzen") -> dict[Name, str]:
        """Every object of the kinds of an installation, with its version."""
        found = {}
        for kind, (root, plural) in PLACES.items():
            if kind != "ServiceMonitor":  # The bed has none.
                items = self.bed.call("GET", f"{root}/{plural}?labelSelector={selector}")["items"]
                metadata = [item["metadata"] for item in items]
                found |= {
                    Name(kind, each.get("namespace", ""), each["name"]): each["resourceVersion"] for each in metadata
                }
        return found

    def set_status(self, name: str, **status: Any) -> None:
        """Play the Deployment's controller."""
        found = self.read("Deployment", name, "istio-system")
        status = {"observedGeneration": found["metadata"]["generation"], **status}
        path = f"{Name('Deployment', 'istio-system', name).path}/status"
        self.bed.call("PATCH", path, {"status": status}, kind="application/merge-patch+json")


@pytest.fixture
def cluster(own_bed: Bed, tmp_path: pathlib.Path) -> Iterator[Cluster]:
    cluster = Cluster(own_bed, tmp_path)
    yield cluster
    for revision in ("default", "canary", "first"):
        assert cluster.run("uninstall", "--revision", revision, "-y").exit_code == 0
    assert cluster.all_of() == {}


def wanted(values: dict[str, Any]) -> set[Name]:
    documents = manifests(lay_over([values]))
    return {name_of(each) for each in documents if each["kind"] != "ServiceMonitor"}


DEFINITIONS = {Name("CustomResourceDefinition", "", each["metadata"]["name"]) for each in mesh_crds()}


def everything(cluster: Cluster) -> set[str]:
    """All objects of all kinds that the server lists; asked again if one of the kinds has just gone."""
    while True:
        with contextlib.suppress(Answer):
            return set(listed(cluster.bed))


def listed(bed: Bed) -> Iterator[str]:
    groups = [group["preferredVersion"]["groupVersion"] for group in bed.call("GET", "/apis")["groups"]]
    for version in ("/api/v1", *(f"/apis/{group}" for group in groups)):
        for kind in bed.call("GET", version)["resources"]:
            if "list" in kind["verbs"] and kind["name"] not in ("componentstatuses", "events"):
                for item in bed.call("GET", f"{version}/{kind['name']}")["items"]:
                    metadata = item["metadata"]
                    yield "/".join((kind["name"], metadata.get("namespace", ""), metadata["name"]))


SERVERS_OWN = {
    "services/default/kubernetes",
    "endpoints/default/kubernetes",
    "endpointslices/default/kubernetes",
    "ipaddresses//10.96.0.1",
    "servicecidrs//kubernetes",
    "configmaps/kube-system/extension-apiserver-authentication",
    "configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
    *(f"namespaces//{name}" for name in ("default", "kube-node-lease", "kube-public", "kube-system")),
}
"""What the API server makes for itself, each when it comes to it, and maybe after it has said that it is ready."""


def test_a_purge_leaves_nothing(cluster: Cluster) -> None:
    eventually_blocking(lambda: has_servers_own(everything(cluster)), 120)
    before = everything(cluster)
    cluster.install(EVERYTHING)
    cluster.install({"revision": "canary"})
    answered = cluster.run("uninstall", "--purge", stdin="y\n")
    assert answered.exit_code == 0, answered.output
    assert f"{len(DEFINITIONS)} definitions (CRDs): every object of these kinds goes with them" in answered.stdout
    assert cluster.all_of() == {}
    eventually_blocking(lambda: not definitions(cluster), 120)
    again = cluster.run("uninstall", "--purge", "-y")
    assert (again.exit_code, again.stdout) == (0, "Nothing of Mizzen is installed.\n")
    eventually_blocking(lambda: everything(cluster) - before == {"namespaces//istio-system"}, 120)


def has_servers_own(found: set[str]) -> bool:
    """Whether all is there, the Lease by which servers know each other included."""
    return found >= SERVERS_OWN and any(each.startswith("leases/kube-system/apiserver-") for each in found)


def definitions(cluster: Cluster) -> set[Name]:
    return {name for name in cluster.all_of("") if name in DEFINITIONS}


def test_everything_is_there_after_an_installation_and_the_same_again_changes_nothing(cluster: Cluster) -> None:
    first = cluster.install(EVERYTHING)
    assert first.exit_code == 0, first.output
    assert "ServiceMonitor/istio-system/istiod is left out: the cluster has no ServiceMonitors" in first.stdout
    names = wanted(EVERYTHING)
    there = versions_of_operators(cluster)
    assert names <= set(cluster.all_of(""))
    assert set(cluster.all_of()) == names - DEFINITIONS

    second = cluster.install(EVERYTHING)
    assert second.exit_code == 0, second.output
    assert f"✔ Installation complete: {len(names)} unchanged" in second.stdout
    assert versions_of_operators(cluster) == there
    verified = cluster.install(EVERYTHING, *NO_WAIT, "--verify")
    assert "✔ Verified" in verified.stdout


def test_what_is_no_longer_wanted_is_pruned_and_what_others_wrote_stays(cluster: Cluster) -> None:
    cluster.install(EVERYTHING)
    injector = Name("MutatingWebhookConfiguration", "", "istio-sidecar-injector").path
    validator = Name("ValidatingWebhookConfiguration", "", "istio-validator-istio-system").path
    bundle = base64.b64encode(b"roots").decode()
    for path in (injector, validator):
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
        if path == validator:
            patch.append({"op": "add", "path": "/webhooks/0/failurePolicy", "value": "Fail"})
        cluster.bed.call("PATCH", path, patch, kind="application/json-patch+json")
    deployment = Name("Deployment", "istio-system", "istiod").path
    cluster.bed.call("PATCH", f"{deployment}/scale", {"spec": {"replicas": 4}}, kind="application/merge-patch+json")

    changed = cluster.install({"pilot": {"env": {"PILOT_HTTP10": "true"}}})
    assert changed.exit_code == 0, changed.output
    assert "Deployment/default/edge pruned" in changed.stdout
    assert set(cluster.all_of()) == wanted({}) - DEFINITIONS
    assert cluster.bed.call("GET", injector)["webhooks"][0]["clientConfig"]["caBundle"] == bundle
    closed = cluster.bed.call("GET", validator)["webhooks"][0]
    assert (closed["clientConfig"]["caBundle"], closed["failurePolicy"]) == (bundle, "Fail")
    found = cluster.bed.call("GET", deployment)["spec"]
    assert found["replicas"] == 4
    (container,) = found["template"]["spec"]["containers"]
    assert {"name": "PILOT_HTTP10", "value": "true"} in container["env"]


def test_a_second_revision_stands_beside_and_goes_without_a_trace_of_the_first(cluster: Cluster) -> None:
    cluster.install({})
    first = versions_of_operators(cluster)
    canary = cluster.run("install", *NO_WAIT, "--revision", "canary", "--set", "revisionTags={next}")
    assert canary.exit_code == 0, canary.output
    both = versions_of_operators(cluster)
    assert {name: both[name] for name in first} == first
    added = {name.name for name in both.keys() - first.keys() if name.kind != "Service"}
    assert {"istiod-canary", "istio-canary", "istio-sidecar-injector-canary", "istio-revision-tag-next"} <= added
    for name, selected in (("shop", "canary"), ("tagged", "next"), ("other", "default")):
        cluster.bed.apply(Name("Namespace", "", name).path, namespace(name, {"istio.io/rev": selected}))

    declined = cluster.run("uninstall", "--revision", "canary", stdin="n\n")
    assert (declined.exit_code, declined.stdout.splitlines()[-1][-10:]) == (0, "Cancelled.")
    assert "Namespaces that still select it, whose pods keep their sidecars: shop, tagged." in declined.stdout
    assert {name.kind for name in versions_of_operators(cluster).keys() - both.keys()} == {"Namespace"}

    removed = cluster.run("uninstall", "--revision", "canary", "-y")
    assert removed.exit_code == 0, removed.output
    assert "  Removed Deployment/istio-system/istiod-canary." in removed.stdout
    assert set(cluster.all_of()) == wanted({}) - DEFINITIONS
    assert definitions(cluster) == DEFINITIONS


def test_what_the_tag_default_has_taken_over_stays_so(cluster: Cluster) -> None:
    cluster.install({})
    cluster.install({"revision": "canary"})
    tagged = cluster.run("tag", "set", "default", "--revision", "canary", "--overwrite", "-y")
    assert tagged.exit_code == 0, tagged.output
    await_next_second()
    assert cluster.install({}).exit_code == 0
    before = versions_of_operators(cluster)
    again = cluster.install({})
    assert again.exit_code == 0, again.output
    assert versions_of_operators(cluster) == before
    for entry in cluster.read("MutatingWebhookConfiguration", "istio-sidecar-injector")["webhooks"]:
        assert entry["namespaceSelector"] == {"matchLabels": {"istio.io/deactivated": "never-match"}}
    validator = cluster.read("ValidatingWebhookConfiguration", "istiod-default-validator")
    assert validator["metadata"]["labels"]["istio.io/rev"] == "canary"


def versions_of_operators(cluster: Cluster) -> dict[Name, str]:
    """The versions of what the API server does not write to by itself, as it does to definitions and kube-system."""
    every = cluster.all_of("").items()
    return {
        name: version
        for name, version in every
        if name.kind != "CustomResourceDefinition" and name.namespace != "kube-system"
    }


def await_next_second() -> None:
    """Until two field managers' entries can no longer bear the same time.

    The API server keeps entries in the order of their times, which are whole seconds. Of two that are equal it writes
    the object anew at the next apply, whatever that says, since the order turns.
    """
    time.sleep(1 - time.time() % 1)


def namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def test_an_installation_waits_until_its_deployments_are_available(cluster: Cluster) -> None:
    values = {"gateways": {"istio-ingressgateway": {"enabled": True}}, "pilot": {"autoscaleEnabled": False}}
    done = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    seen: list[set[str]] = []

    def control() -> None:
        for name in ("istiod", "istio-ingressgateway"):
            eventually_blocking(lambda name=name: is_there(cluster, name), 120)
            seen.append({each.name for each in cluster.all_of() if each.kind == "Deployment"})
            cluster.set_status(name, **done)

    controller = threading.Thread(target=control)
    controller.start()
    result = cluster.install(values, "-y", "--readiness-timeout=200s")
    controller.join()
    assert result.exit_code == 0, result.output
    assert seen == [{"istiod"}, {"istiod", "istio-ingressgateway"}], "gateways need the injector"
    assert "✔ Istiod installed" in result.stdout
    assert "✔ Ingress gateways installed" in result.stdout


def is_there(cluster: Cluster, name: str) -> bool:
    with contextlib.suppress(Answer):
        return bool(cluster.read("Deployment", name, "istio-system"))
    return False


def test_who_waits_in_vain_is_told_why(cluster: Cluster) -> None:
    cluster.install({})
    condition = {"type": "Progressing", "status": "False", "reason": "Late", "message": "nothing progresses"}
    cluster.set_status("istiod", conditions=[condition])
    pod = {"metadata": {"name": "istiod-0", "namespace": "istio-system", "labels": {}}, "spec": {"containers": []}}
    pod["metadata"]["labels"] = {"app": "istiod", "istio.io/rev": "default", "sidecar.istio.io/inject": "false"}
    pod["spec"]["containers"] = [{"name": "discovery", "image": "nowhere"}]
    cluster.bed.call("POST", "/api/v1/namespaces/istio-system/pods", pod)
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    status = {"containerStatuses": [{"name": "discovery", "state": waiting, "ready": False, **CONTAINER}]}
    path = "/api/v1/namespaces/istio-system/pods/istiod-0"
    cluster.bed.call("PATCH", f"{path}/status", {"status": status}, kind="application/merge-patch+json")
    result = cluster.install({}, "-y", "--readiness-timeout=1s")
    cluster.bed.call("DELETE", f"{path}?gracePeriodSeconds=0")
    assert result.exit_code == 1
    assert "Waiting for Deployment/istio-system/istiod" in result.stdout
    assert "failed to wait for resource: resources not ready after 1s" in result.stderr
    assert "Deployment/istio-system/istiod: nothing progresses" in result.stderr
    assert "istiod-0 container discovery: ImagePullBackOff: no such image" in result.stderr


def test_who_still_asks_for_a_tag_is_told_in_whatever_namespace_the_control_plane_is(cluster: Cluster) -> None:
    for name, labels in (("far", {}), ("asking", {"istio.io/rev": "away"})):
        cluster.bed.apply(Name("Namespace", "", name).path, namespace(name, labels))
    values = {"revision": "there", "global": {"istioNamespace": "far"}, "revisionTags": ["away"]}
    done = cluster.install(values)
    assert done.exit_code == 0, done.output
    declined = cluster.run("uninstall", "--revision", "there", stdin="n\n")
    assert "Namespaces that still select it, whose pods keep their sidecars: asking." in declined.stdout
    removed = cluster.run("uninstall", "--revision", "there", "-y")
    assert removed.exit_code == 0, removed.output


CONTAINER = {"image": "nowhere", "imageID": "", "restartCount": 0}


def test_a_dry_run_stores_nothing(cluster: Cluster) -> None:
    before, names = versions_of_operators(cluster), set(cluster.all_of(""))
    result = cluster.install(EVERYTHING, "--dry-run")
    assert result.exit_code == 0, result.output
    assert (versions_of_operators(cluster), set(cluster.all_of(""))) == (before, names)
    cluster.install({})
    there = versions_of_operators(cluster)
    changed = cluster.install({"pilot": {"traceSampling": 5}}, "--dry-run")
    assert "Deployment/istio-system/istiod configured (dry run)" in changed.stdout
    assert "ConfigMap/istio-system/istio unchanged (dry run)" in changed.stdout
    removed = cluster.run("uninstall", "--purge", "--dry-run")
    assert "Removed Deployment/istio-system/istiod (dry run)." in removed.stdout
    assert versions_of_operators(cluster) == there


def test_a_dry_run_tells_of_every_object_where_there_is_no_namespace_yet(cluster: Cluster) -> None:
    result = cluster.install(EVERYTHING, "--dry-run", "--istioNamespace=nowhere")
    assert result.exit_code == 0, result.output
    names = wanted({**EVERYTHING, "global": {"istioNamespace": "nowhere"}})
    told = {line.split()[0]: line for line in result.stdout.splitlines() if "(dry run" in line}
    assert set(told) == {str(name) for name in names} | {"Namespace/nowhere"}
    unseen = {name for name, line in told.items() if line.endswith("(dry run; unchecked, since nowhere is not there)")}
    assert unseen == {str(name) for name in names if name.namespace == "nowhere"}
    assert "MutatingWebhookConfiguration/istio-sidecar-injector-nowhere created (dry run)" in result.stdout
    assert "Deployment/default/edge created (dry run)" in result.stdout
    with pytest.raises(Answer):
        cluster.read("Namespace", "nowhere")
    assert cluster.all_of() == {}


def test_a_webhook_that_somebody_aimed_at_an_address_stays_so(cluster: Cluster) -> None:
    elsewhere = "https://elsewhere.example/inject"
    remote = {"istiodRemote": {"injectionURL": elsewhere}, "base": {"validationURL": elsewhere}}
    names = {
        "istio-sidecar-injector": "MutatingWebhookConfiguration",
        "istio-validator-istio-system": "ValidatingWebhookConfiguration",
    }
    assert cluster.install(remote).exit_code == 0
    assert cluster.install({}).exit_code == 0, "what a value has aimed at an address another value takes back"
    for name, kind in names.items():
        config = cluster.read(kind, name)["webhooks"][0]["clientConfig"]
        assert "url" not in config
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig", "value": {"url": elsewhere}}]
        cluster.bed.call("PATCH", Name(kind, "", name).path, patch, kind="application/json-patch+json")

    again = cluster.install({"pilot": {"traceSampling": 5}}, *NO_WAIT, "--verify")
    assert again.exit_code == 0, again.output
    for name, kind in names.items():
        assert f"{kind}/{name} still asks where somebody else has pointed it" in again.stdout
        first, *others = cluster.read(kind, name)["webhooks"]
        assert first["clientConfig"] == {"url": elsewhere}
        assert all("service" in each["clientConfig"] for each in others)


def test_a_control_plane_of_somebody_else_is_refused_and_its_definitions_stay(cluster: Cluster) -> None:
    cluster.install({"revision": "first"})
    foreign = cluster.read("Deployment", "istiod-first", "istio-system")
    metadata = {"name": "istiod", "namespace": "istio-system", "labels": {"app": "istiod"}}
    body = {"metadata": metadata, "spec": foreign["spec"]}
    path = "/apis/apps/v1/namespaces/istio-system/deployments"
    cluster.bed.call("POST", path, body)
    refused = cluster.install({})
    assert refused.exit_code == 1
    assert "Deployment/istio-system/istiod is another control plane's; install beside it" in refused.stderr
    gateway = {"revision": "own", "gateways": {"istiod": {"enabled": True}}}
    refused = cluster.install(gateway)
    assert "Deployment/istio-system/istiod is another gateway's; give yours another name" in refused.stderr
    purged = cluster.run("uninstall", "--purge", "-y")
    assert "The definitions (CRDs) stay, since other control planes read them" in purged.stdout
    assert definitions(cluster) == DEFINITIONS
    cluster.bed.call("DELETE", f"{path}/istiod")


def test_what_helm_installed_is_helm_s(cluster: Cluster) -> None:
    cluster.install({})
    path = Name("Deployment", "istio-system", "istiod").path
    mark = {"metadata": {"annotations": {"meta.helm.sh/release-name": "mesh"}}}
    cluster.bed.call("PATCH", path, mark, kind="application/merge-patch+json")
    assert "belongs to the Helm release mesh" in cluster.install({}).stderr
    refused = cluster.run("uninstall", "--revision", "default", "-y")
    assert (refused.exit_code, "remove it with `helm uninstall`" in refused.stderr) == (1, True)
    mark["metadata"]["annotations"]["meta.helm.sh/release-name"] = None  # type: ignore[assignment]
    cluster.bed.call("PATCH", path, mark, kind="application/merge-patch+json")


def test_who_declines_gets_nothing_and_who_names_nothing_is_told(cluster: Cluster) -> None:
    before = versions_of_operators(cluster)
    for answer in ("n\n", "\n", ""):
        declined = cluster.run("install", stdin=answer)
        assert declined.exit_code == 1
        assert declined.stdout.splitlines()[-1].endswith("Cancelled.")
    assert versions_of_operators(cluster) == before
    nothing = cluster.run("uninstall")
    assert (nothing.exit_code, "at least one of the --revision" in nothing.stderr) == (1, True)


async def test_what_is_installed_works_together(
    cluster: Cluster, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A control plane with the installed rights alone leads; the server asks it, and believes it by what it wrote."""
    before = await asyncio.to_thread(everything, cluster)
    assert (await asyncio.to_thread(cluster.install, {})).exit_code == 0
    identity = Identity()
    await asyncio.to_thread(until_installed, cluster.bed, identity)
    account = token(cluster.bed, identity.namespace, identity.name, ISSUER, seconds=86_400)
    access = from_kubeconfig(cluster.bed.kubeconfig("installed", token=account))
    tuned = msgspec.structs.replace(
        FAST,
        instance=settings.Instance(namespace=identity.namespace, name="istiod-0"),
        authority=msgspec.structs.replace(FAST.authority, custom_hosts=("127.0.0.1",)),
    )
    caplog.set_level("INFO")
    options = {"config": (), "token_keys": (), "ca_dir": "", "https": Address("127.0.0.1", 0)}
    async with control_plane(tmp_path, tuned, kubernetes=access, **options) as plane:
        address = f"https://127.0.0.1:{plane.control_plane.ports['--httpsAddr']}"
        await asyncio.to_thread(work_with, cluster, address)
    assert "forbidden" not in caplog.text
    assert "cannot start while no control plane answers" not in caplog.text
    await asyncio.to_thread(is_gone_but_for_the_authority, cluster, before)


def is_gone_but_for_the_authority(cluster: Cluster, before: set[str]) -> None:
    """What is left is what a later installation goes on with."""
    assert cluster.run("uninstall", "--purge", "-y").exit_code == 0
    staying = {
        "namespaces//istio-system",
        "namespaces//injected",
        "secrets/istio-system/istio-ca-secret",
        "secrets/istio-system/mizzen-authority",
    }

    def rest() -> set[str]:
        left = everything(cluster) - before - staying
        return {each for each in left if "leases/istio-system/" not in each and "/istio-ca-root-cert" not in each}

    eventually_blocking(lambda: not rest() and not definitions(cluster), 120)
    assert staying <= everything(cluster)


def work_with(cluster: Cluster, address: str) -> None:
    """The bed reaches no Service, so the webhooks are installed by address; all else is as by default."""
    values = {
        "istiodRemote": {"injectionURL": f"{address}/inject"},
        "base": {"validationURL": f"{address}/validate"},
        "global": {"hub": "registry.example", "tag": "own"},
    }
    assert cluster.install(values).exit_code == 0

    def is_closed() -> bool:
        found = cluster.read("ValidatingWebhookConfiguration", "istio-validator-istio-system")["webhooks"][0]
        return found["failurePolicy"] == "Fail" and bool(found["clientConfig"].get("caBundle"))

    def leads() -> bool:
        leases = "/apis/coordination.k8s.io/v1/namespaces/istio-system/leases"
        return len(cluster.bed.call("GET", leases)["items"]) >= 3

    eventually_blocking(is_closed, 120)
    eventually_blocking(leads, 120)
    assert cluster.install(values).exit_code == 0
    assert is_closed(), "another installation opens nothing"

    injected = namespace("injected", {"istio-injection": "enabled"})
    cluster.bed.apply(Name("Namespace", "", "injected").path, injected)
    spec = {"serviceAccountName": "default", "containers": [{"name": "app", "image": "app"}]}
    pod = {"metadata": {"name": "cart"}, "spec": spec}
    pods = "/api/v1/namespaces/injected/pods"

    def is_injected() -> bool:
        with contextlib.suppress(Answer):  # The roots may not have reached every entry.
            made = cluster.bed.call("POST", f"{pods}?dryRun=All", pod)["spec"]
            containers = [*made.get("initContainers", ()), *made["containers"]]
            return "registry.example/proxyv2:own" in [each["image"] for each in containers]
        return False

    eventually_blocking(is_injected, 120)
    bad = {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": "bad"}}
    path = "/apis/networking.istio.io/v1/namespaces/injected/virtualservices"
    with pytest.raises(Answer, match="denied the request"):
        cluster.bed.call("POST", path, {**bad, "spec": {"hosts": ["a"], "http": [{"route": []}]}})


def test_helm_installs_the_same_and_takes_it_away(cluster: Cluster, helm: pathlib.Path, tmp_path: pathlib.Path) -> None:
    values = tmp_path / "values.json"
    values.write_bytes(msgspec.json.encode({**EVERYTHING, "serviceMonitor": {"enabled": False}}))

    def run(*arguments: object) -> str:
        flags = ("--namespace", "istio-system", "--kubeconfig", cluster.bed.kubeconfig())
        environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        command = [helm, *map(str, arguments), *map(str, flags)]
        answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    chart = helm.parents[2] / "charts" / "mizzen"
    run("install", "mesh", chart, "-f", values, "--create-namespace")
    there = cluster.all_of()
    assert set(there) == wanted(EVERYTHING) - DEFINITIONS
    assert "belongs to the Helm release mesh" in cluster.install({}).stderr
    run("upgrade", "mesh", chart, "-f", values)
    assert cluster.all_of() == there
    run("uninstall", "mesh")
    assert cluster.all_of() == {}
