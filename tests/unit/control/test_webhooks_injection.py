"""Reviews of pods: the patch, what passes unchanged, what is refused, and what a cluster says about it."""

import json
from typing import Any

import pytest
from injected_pods import build_pod, container, environment, names
from kube_webhooks import apply_patch, review

from mizzen.api.kube.cluster import Node, NodeInfo, NodeStatus
from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import Key, ObjectMeta
from mizzen.control.webhooks import addresses, injection
from mizzen.control.webhooks.injection import Injector
from mizzen.control.webhooks.installation import Installation
from mizzen.control.webhooks.reviews import Answer, decode
from mizzen.inject.pod import inject_pod
from mizzen.inject.values import InjectionConfig

BASE = InjectionConfig(revision="default")
KEY = Key("ConfigMap", "istio-system", "istio-sidecar-injector")


class Hook:
    """An injector over objects that a test sets."""

    def __init__(self, native: bool | None = False, base: InjectionConfig = BASE) -> None:
        self.objects: dict[Key, Any] = {}
        self.mesh: dict[str, Any] = {}
        self._base = base
        installation = Installation(self.objects, self._nodes, base, native)
        self._injector = Injector(installation, lambda: self.mesh)

    def _nodes(self) -> list[Any]:
        return [found for key, found in self.objects.items() if key.kind == "Node"]

    def node(self, name: str, version: str) -> None:
        status = NodeStatus(node_info=NodeInfo(kubelet_version=version))
        self.objects[Key("Node", "", name)] = Node(metadata=ObjectMeta(name=name), status=status)

    def config(self, values: str = "{}", config: str = "{}", key: Key = KEY) -> None:
        metadata = ObjectMeta(name=key.name, namespace=key.namespace)
        self.objects[key] = ConfigMap(metadata=metadata, data={"values": values, "config": config})

    def ask(self, pod: dict[str, Any] | None, path: str = "", **request: Any) -> Answer:
        asked = decode(json.dumps(review({"kind": "Pod", **pod} if pod else None, **request)).encode())
        return self._injector.review(asked.request, path)

    def inject(self, pod: dict[str, Any], path: str = "", **request: Any) -> dict[str, Any]:
        answer = self.ask(pod, path, **request)
        assert answer.allowed, answer.message
        return apply_patch({"kind": "Pod", **pod}, list(answer.patch))


def test_the_patch_makes_of_a_pod_what_injection_does() -> None:
    pod = {"kind": "Pod", **build_pod({"name": "a", "image": "i", "readinessProbe": {"httpGet": {"port": 80}}})}
    assert Hook().inject(pod) == inject_pod(pod, config=BASE).pod


def test_the_patch_says_no_more_than_what_is_new() -> None:
    pod = build_pod({"name": "a", "image": "i"}, labels={"app": "a"}, volumes=[{"name": "data", "emptyDir": {}}])
    paths = [operation["path"] for operation in Hook().ask(pod).patch]
    assert "/metadata/labels" not in paths
    assert "/spec" not in paths
    assert "/spec/containers/1" in paths
    assert not any(path.startswith("/spec/containers/0") for path in paths)
    assert {operation["op"] for operation in Hook().ask(pod).patch} <= {"add", "move"}


def test_an_injected_pod_needs_nothing() -> None:
    hook = Hook()
    assert hook.ask(hook.inject(build_pod())).patch == ()


def test_a_pod_of_a_controller_is_injected_for_the_namespace_it_is_made_in() -> None:
    pod = build_pod()
    metadata = {"generateName": "web-", "labels": {"app": "web"}}
    injected = Hook().inject({**pod, "metadata": metadata}, namespace="shop")
    assert "namespace" not in injected["metadata"]
    assert "/namespaces/shop/" in environment(injected)["ISTIO_META_OWNER"]


def test_a_pod_without_metadata_is_patched_as_well() -> None:
    pod = {"spec": build_pod()["spec"]}
    assert names(Hook().inject(pod, namespace="shop")) == ["app", "istio-proxy"]


@pytest.mark.parametrize("name", ["kube-system", "kube-public", "kube-node-lease", "local-path-storage"])
def test_the_systems_pods_pass_whatever_they_say(name: str) -> None:
    pod = build_pod(labels={"sidecar.istio.io/inject": "true"}, annotations={"status.sidecar.istio.io/port": "no"})
    pod["metadata"]["namespace"] = name
    answer = Hook().ask(pod, namespace=name)
    assert (answer.allowed, answer.patch) == (True, ())


def test_who_asks_for_a_sidecar_and_gets_none_is_told() -> None:
    pod = build_pod(labels={"sidecar.istio.io/inject": "true"}, hostNetwork=True)
    assert Hook().ask(pod).warnings == ("no sidecar is injected: Pod uses the host's network",)
    assert Hook().ask(build_pod(hostNetwork=True)).warnings == ()


def test_what_cannot_be_injected_is_refused() -> None:
    answer = Hook().ask(build_pod(annotations={"sidecar.istio.io/interceptionMode": "SOMEHOW"}))
    assert not answer.allowed
    assert "interceptionMode" in answer.message


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT"])
def test_pods_that_exist_are_left_alone(operation: str) -> None:
    assert Hook().ask(build_pod(), operation=operation) == Answer(allowed=True)


def test_every_pod_is_counted_once() -> None:
    def counts() -> list[float]:
        return [
            each.value() for each in (injection._REQUESTS, injection._SUCCESSES, injection._SKIPS, injection._FAILURES)
        ]

    before = counts()
    for pod in (
        build_pod(),
        build_pod(hostNetwork=True),
        build_pod(annotations={"sidecar.istio.io/interceptionMode": "SOMEHOW"}),
    ):
        Hook().ask(pod)
    assert counts() == [now + more for now, more in zip(before, (3, 1, 1, 1), strict=True)]


@pytest.mark.parametrize("request_", [{"object": None}, {"object": {"spec": {}}}])
def test_a_review_without_a_pod_is_refused(request_: dict[str, Any]) -> None:
    assert not Hook().ask(build_pod(), **request_).allowed


# -- what the cluster says ----------------------------------------------------------------------------------------------


def test_the_config_map_is_read_whenever_it_is_another_one() -> None:
    hook = Hook()
    hook.config('{"global": {"hub": "registry.example", "tag": "1"}}')
    assert container(hook.inject(build_pod()))["image"] == "registry.example/proxyv2:1"
    hook.config('{"global": {"hub": "other.example", "tag": "1"}}', "policy: disabled")
    assert hook.ask(build_pod()).patch == ()
    asks = build_pod(labels={"sidecar.istio.io/inject": "true"})
    assert container(hook.inject(asks))["image"] == "other.example/proxyv2:1"
    del hook.objects[KEY]
    assert container(hook.inject(build_pod()))["image"] == "docker.io/istio/proxyv2:1.32.0"


def test_values_that_cannot_be_read_leave_the_last_good_ones_in_force() -> None:
    hook = Hook()
    hook.config('{"global": {"hub": "good.example", "tag": "1"}}')
    hook.inject(build_pod())
    hook.config('{"global": ')
    assert container(hook.inject(build_pod()))["image"] == "good.example/proxyv2:1"


def test_a_revision_reads_its_own_config_map_and_keeps_its_name() -> None:
    hook = Hook(base=InjectionConfig(revision="canary"))
    hook.config('{"global": {"hub": "wrong.example"}}')
    hook.config('{"global": {"hub": "r.example"}, "revision": ""}', key=KEY._replace(name=f"{KEY.name}-canary"))
    injected = hook.inject(build_pod())
    assert container(injected)["image"].startswith("r.example/")
    assert injected["metadata"]["annotations"]["istio.io/rev"] == "canary"


def test_the_mesh_config_of_now_is_the_one_that_counts() -> None:
    hook = Hook()
    hook.mesh = {"defaultConfig": {"holdApplicationUntilProxyStarts": True}}
    assert names(hook.inject(build_pod())) == ["istio-proxy", "app"]
    hook.mesh = {}
    assert names(hook.inject(build_pod())) == ["app", "istio-proxy"]


@pytest.mark.parametrize(
    ("versions", "native"),
    [
        ([], True),
        (["v1.33.0"], True),
        (["v1.33.0", "v1.40.1-gke.7", "2.0"], True),
        (["v1.33.0", "v1.32.11"], False),
        (["v1.33.0", "unknown"], False),
    ],
)
def test_sidecars_are_native_where_every_node_keeps_them(versions: list[str], native: bool) -> None:
    hook = Hook(native=None)
    for number, version in enumerate(versions):
        hook.node(f"n{number}", version)
    assert ("istio-proxy" in names(hook.inject(build_pod()), "initContainers")) == native


def test_a_pod_that_has_its_node_goes_by_that_one() -> None:
    hook = Hook(native=None)
    hook.node("new", "v1.33.0")
    hook.node("old", "v1.30.0")
    assert "istio-proxy" in names(hook.inject(build_pod(nodeName="new")), "initContainers")
    assert "istio-proxy" not in names(hook.inject(build_pod(nodeName="old")), "initContainers")
    assert "istio-proxy" not in names(hook.inject(build_pod(nodeName="unknown")), "initContainers")


def test_the_operators_word_on_native_sidecars_is_above_the_nodes() -> None:
    hook = Hook(native=True)
    hook.node("old", "v1.30.0")
    assert "istio-proxy" in names(hook.inject(build_pod()), "initContainers")


# -- paths --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        ("", {}),
        ("cluster/c/net/n", {"ISTIO_META_CLUSTER_ID": "c", "ISTIO_META_NETWORK": "n"}),
        ("cluster/c/", {"ISTIO_META_CLUSTER_ID": "c"}),
        ("CLUSTER/c", {"ISTIO_META_CLUSTER_ID": "c"}),
        ("some_key/a--slash--b", {"SOME_KEY": "a/b"}),
        ("cluster/c/net", {"ISTIO_META_CLUSTER_ID": "c"}),
        (
            ":ENV:cluster=c:ENV:net=n:ENV:root=/a/b",
            {"ISTIO_META_CLUSTER_ID": "c", "ISTIO_META_NETWORK": "n", "ROOT": "/a/b"},
        ),
    ],
)
def test_what_a_path_says(path: str, variables: dict[str, str]) -> None:
    assert addresses.read_path(path) == variables


def test_the_path_is_above_the_values_and_below_the_pod() -> None:
    hook = Hook()
    hook.config('{"global": {"network": "values", "multiCluster": {"clusterName": "values"}}}')
    found = environment(hook.inject(build_pod(), "cluster/path/net/path"))
    assert (found["ISTIO_META_CLUSTER_ID"], found["ISTIO_META_NETWORK"]) == ("path", "path")
    own = build_pod(labels={"topology.istio.io/network": "pod"})
    assert environment(hook.inject(own, "net/path"))["ISTIO_META_NETWORK"] == "pod"


def test_a_variable_of_the_path_stands_in_for_one_of_its_name() -> None:
    injected = Hook().inject(build_pod(), "trust_domain/other.example")
    values = [each["value"] for each in container(injected)["env"] if each["name"] == "TRUST_DOMAIN"]
    assert values == ["other.example"]
