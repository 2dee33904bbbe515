"""What must hold for any pod, whatever it looks like."""

import copy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from injected_pods import container, names

from mizzen.inject.pod import inject_pod
from mizzen.inject.strip import strip_injection
from mizzen.inject.values import Cni, InjectionConfig

words = st.text("abcxyz", min_size=1, max_size=6)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=5,
)
unknown = st.dictionaries(words.map(lambda word: f"x{word}"), plain, max_size=2)
ports = st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 9000)}, optional={"name": words}), max_size=2)
probe = st.fixed_dictionaries({}, optional={"periodSeconds": st.integers(1, 9), "timeoutSeconds": st.integers(1, 9)})
handlers = st.one_of(
    st.fixed_dictionaries({"httpGet": st.fixed_dictionaries({"port": st.integers(1, 9) | words, "path": words})}),
    st.fixed_dictionaries({"tcpSocket": st.fixed_dictionaries({"port": st.integers(1, 9)})}),
    st.fixed_dictionaries({"grpc": st.fixed_dictionaries({"port": st.integers(1, 9)})}),
    st.just({"exec": {"command": ["true"]}}),
)
probes = st.builds(lambda base, handler: {**base, **handler}, probe, handlers)
fields = {"ports": ports, "readinessProbe": probes, "livenessProbe": probes, "image": words}
FIELDS = ("readinessProbe", "livenessProbe", "lifecycle")


def _containers(*reserved: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    name = st.sampled_from(["app", "web", "db", *reserved])
    one = st.builds(
        lambda known, more: {**more, **known}, st.fixed_dictionaries({"name": name}, optional=fields), unknown
    )
    return st.lists(one, max_size=3, unique_by=lambda item: item["name"])


volumes = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["data", "istio-envoy", "cache"]), "emptyDir": st.just({})}),
    max_size=2,
    unique_by=lambda item: item["name"],
)
chosen = st.dictionaries(
    st.sampled_from(
        [
            ("prometheus.io/port", "8080"),
            ("prometheus.io/scrape", "true"),
            ("prometheus_io/path", "/m"),
            ("prometheus.istio.io/scrape-targets", "80:/a,81:/b"),
            ("sidecar.istio.io/interceptionMode", "NONE"),
            ("sidecar.istio.io/nativeSidecar", "true"),
            ("sidecar.istio.io/proxyCPU", "1m"),
            ("proxy.istio.io/config", "holdApplicationUntilProxyStarts: true"),
            ("inject.istio.io/templates", "gateway"),
            ("status.sidecar.istio.io/port", "0"),
            ("note", "kept"),
        ]
    ),
    st.just(""),
).map(dict)
pods = st.builds(
    lambda metadata, containers, inits, spec, more: {
        **more,
        "metadata": metadata,
        "spec": {**spec, "containers": containers, **({"initContainers": inits} if inits else {})},
    },
    st.fixed_dictionaries({"name": words, "annotations": chosen}, optional={"labels": st.dictionaries(words, words)}),
    _containers("istio-proxy"),
    _containers("migrate", "istio-init").map(lambda items: [{**item, "name": f"i-{item['name']}"} for item in items]),
    st.builds(lambda known, more: {**more, **known}, st.fixed_dictionaries({"volumes": volumes}), unknown),
    unknown,
)
configs = st.builds(
    InjectionConfig,
    native_sidecars=st.booleans(),
    hold_application=st.booleans(),
    cni=st.builds(Cni, enabled=st.booleans(), provider=st.sampled_from(["default", "multus"])),
    core_dumps=st.booleans(),
    image_pull_secrets=st.sampled_from([(), ("s",)]),
    rewrite_probes=st.booleans(),
)


def _everything(pod: Any) -> list[dict[str, Any]]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]


@settings(max_examples=200, deadline=None)
@given(pod=pods, config=configs)
def test_an_injected_pod_is_one_that_kubernetes_takes(pod: Any, config: InjectionConfig) -> None:
    outcome = inject_pod(pod, config=config)
    assert outcome.injected
    injected = outcome.pod
    found = [each["name"] for each in _everything(injected)]
    assert len(found) == len(set(found))
    assert found.count("istio-proxy") == 1
    declared = names(injected, "volumes")
    assert len(declared) == len(set(declared))
    proxy = container(injected)
    assert {mount["name"] for mount in proxy["volumeMounts"]} <= set(declared)
    variables = [variable["name"] for variable in proxy["env"]]
    assert len(variables) == len(set(variables))
    assert all(isinstance(text, str) for text in injected["metadata"]["annotations"].values())


@settings(max_examples=200, deadline=None)
@given(pod=pods, config=configs)
def test_what_is_not_ours_comes_out_as_it_went_in(pod: Any, config: InjectionConfig) -> None:
    before = copy.deepcopy(pod)
    injected = inject_pod(pod, config=config).pod
    assert pod == before
    assert {name: value for name, value in injected.items() if name not in ("metadata", "spec")} == {
        name: value for name, value in pod.items() if name not in ("metadata", "spec")
    }
    ours = {"containers", "initContainers", "volumes", "imagePullSecrets", "securityContext"}
    assert {name: value for name, value in injected["spec"].items() if name not in ours} == {
        name: value for name, value in pod["spec"].items() if name not in ours
    }
    for original in _everything(pod):
        result = container(injected, original["name"])
        kept = {name: value for name, value in original.items() if name.startswith("x")}
        assert kept.items() <= result.items() if original["name"] != "istio-proxy" else set(kept) <= set(result)
        if original["name"] != "istio-proxy":
            strip = lambda item: {name: value for name, value in item.items() if name not in FIELDS}  # noqa: E731
            assert strip(result) == strip(original)
    assert (pod["metadata"].get("labels") or {}).items() <= injected["metadata"]["labels"].items()
    for volume in pod["spec"]["volumes"]:
        assert volume in injected["spec"]["volumes"]


@settings(max_examples=200, deadline=None)
@given(pod=pods, config=configs)
def test_injecting_again_changes_nothing(pod: Any, config: InjectionConfig) -> None:
    injected = inject_pod(pod, config=config).pod
    assert inject_pod(injected, config=config).pod == injected


def _with_numbers(pod: Any) -> Any:
    """A spec whose probes have numbers for the names of ports, as the agent is told them."""
    spec = copy.deepcopy(pod["spec"])
    for each in (*spec["containers"], *spec.get("initContainers", ())):
        numbers = {port["name"]: port["containerPort"] for port in reversed(each.get("ports", ())) if "name" in port}
        for field in ("readinessProbe", "livenessProbe"):
            request = each.get(field, {}).get("httpGet", {})
            if request.get("port") in numbers:
                request["port"] = numbers[request["port"]]
    return spec


PORT = {"ports": [{"containerPort": 1, "name": "a"}], "readinessProbe": {"httpGet": {"port": "a", "path": "a"}}}


@settings(max_examples=200, deadline=None)
@given(pod=pods, first=configs, second=configs)
@example(
    pod={"metadata": {"name": "a"}, "spec": {"containers": [{"name": "app", **PORT}], "volumes": []}},
    first=InjectionConfig(rewrite_probes=True),
    second=InjectionConfig(rewrite_probes=False),
)
def test_an_earlier_injection_leaves_no_trace_in_the_spec(
    pod: Any, first: InjectionConfig, second: InjectionConfig
) -> None:
    once = inject_pod(pod, config=second).pod
    again = inject_pod(inject_pod(pod, config=first).pod, config=second).pod
    assert _with_numbers(again) == _with_numbers(once)


@settings(max_examples=200, deadline=None)
@given(pod=pods, config=configs)
def test_stripping_removes_everything_that_was_added(pod: Any, config: InjectionConfig) -> None:
    stripped = strip_injection(inject_pod(pod, config=config).pod)
    assert sorted(each["name"] for each in _everything(stripped)) == sorted(each["name"] for each in _everything(pod))
    assert sorted(names(stripped, "volumes")) == sorted(names(pod, "volumes"))
