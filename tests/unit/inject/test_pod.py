import copy
import json
from typing import Any

import pytest
from injected_pods import annotations, build_pod, container, environment, inject, labels, names

from mizzen.inject.pod import inject_pod
from mizzen.inject.strip import strip_injection
from mizzen.inject.values import Cni, InjectionConfig
from mizzen.inject.workload import Owner

NATIVE = InjectionConfig(native_sidecars=True)
STATUS = "sidecar.istio.io/status"
HOLD = {"proxy.istio.io/config": "holdApplicationUntilProxyStarts: true"}


def _status(pod: Any) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(annotations(pod)[STATUS])
    return status


# -- order and form ---------------------------------------------------------------------------------------------------


def test_the_classic_proxy_is_the_last_container_and_capture_the_last_init_container() -> None:
    pod = inject(build_pod({"name": "a"}, {"name": "b"}, initContainers=[{"name": "migrate"}]))
    assert names(pod) == ["a", "b", "istio-proxy"]
    assert names(pod, "initContainers") == ["migrate", "istio-init"]
    assert _status(pod)["initContainers"] == ["istio-init"]
    assert _status(pod)["containers"] == ["istio-proxy"]


def test_holding_the_application_puts_the_proxy_first_with_a_hook_that_waits() -> None:
    pod = inject(build_pod({"name": "a"}, annotations=HOLD))
    assert names(pod) == ["istio-proxy", "a"]
    assert container(pod)["lifecycle"] == {"postStart": {"exec": {"command": ["pilot-agent", "wait"]}}}
    assert names(inject(build_pod({"name": "a"}), config=InjectionConfig(hold_application=True)))[0] == "istio-proxy"


def test_the_native_proxy_starts_before_the_users_init_containers_and_drains_at_the_end() -> None:
    pod = inject(build_pod(initContainers=[{"name": "migrate"}], annotations=HOLD), config=NATIVE)
    assert names(pod) == ["app"]
    assert names(pod, "initContainers") == ["istio-init", "istio-proxy", "migrate"]
    proxy = container(pod)
    assert proxy["restartPolicy"] == "Always"
    drain = ["pilot-agent", "request", "--debug-port=15020", "POST", "drain"]
    assert proxy["lifecycle"] == {"preStop": {"exec": {"command": drain}}}
    assert _status(pod)["containers"] is None


def test_the_pods_annotation_chooses_between_native_and_classic() -> None:
    name = "sidecar.istio.io/nativeSidecar"
    assert names(inject(build_pod(annotations={name: "true"}))) == ["app"]
    assert names(inject(build_pod(annotations={name: "false"}), config=NATIVE)) == ["app", "istio-proxy"]


def test_native_without_capture_still_has_the_proxy_among_the_init_containers() -> None:
    pod = inject(build_pod(annotations={"sidecar.istio.io/interceptionMode": "NONE"}), config=NATIVE)
    assert names(pod, "initContainers") == ["istio-proxy"]


def test_with_a_node_agent_the_pod_only_validates_and_says_what_it_wants() -> None:
    config = InjectionConfig(cni=Cni(enabled=True))
    chosen = {"traffic.sidecar.istio.io/excludeOutboundPorts": "25"}
    pod = inject(build_pod(initContainers=[{"name": "migrate"}], annotations=chosen), config=config)
    assert names(pod, "initContainers") == ["istio-validation", "migrate"]
    assert container(pod, "istio-validation")["args"][-2:] == ["--run-validation", "--skip-rule-apply"]
    assert annotations(pod)["traffic.sidecar.istio.io/includeInboundPorts"] == "*"
    assert annotations(pod)["traffic.sidecar.istio.io/excludeOutboundPorts"] == "25"
    assert "k8s.v1.cni.cncf.io/networks" not in annotations(pod)


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ("", "default/istio-cni"),
        ("a,b", "a, b, default/istio-cni"),
        ("default/istio-cni", "default/istio-cni"),
        ("[]", '[{"name":"istio-cni","namespace":"default"}]'),
        ('[{"name":"a"}]', '[{"name":"a"},{"name":"istio-cni","namespace":"default"}]'),
    ],
)
def test_multus_gets_one_more_network(present: str, expected: str) -> None:
    network = "k8s.v1.cni.cncf.io/networks"
    config = InjectionConfig(cni=Cni(enabled=True, provider="multus"))
    pod = inject(build_pod(annotations={network: present} if present else {}), config=config)
    assert annotations(pod)[network] == expected
    assert annotations(inject(pod, config=config))[network] == expected


def test_core_dumps_need_one_more_init_container() -> None:
    pod = inject(build_pod(), config=InjectionConfig(core_dumps=True))
    assert names(pod, "initContainers") == ["istio-init", "enable-core-dump"]
    assert container(pod)["securityContext"]["readOnlyRootFilesystem"] is False


# -- the user's own proxy container -----------------------------------------------------------------------------------

OWN = {
    "name": "istio-proxy",
    "image": "auto",
    "env": [{"name": "CA_ADDR", "value": "mine:1"}, {"name": "EXTRA", "value": "x"}],
    "resources": {"limits": {"cpu": "3"}},
    "securityContext": {"runAsUser": 4000},
    "readinessProbe": {"exec": {"command": ["true"]}},
    "volumeMounts": [{"name": "mine", "mountPath": "/etc/istio/pod"}],
    "args": ["mine"],
}


def test_the_users_fields_win_over_the_injected_ones() -> None:
    proxy = container(inject(build_pod({"name": "a"}, OWN)))
    assert proxy["image"] == "docker.io/istio/proxyv2:1.32.0"
    assert proxy["args"] == ["mine"]
    assert proxy["resources"] == {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"cpu": "3", "memory": "1024Mi"},
    }
    assert proxy["securityContext"]["runAsUser"] == 4000
    assert proxy["securityContext"]["runAsGroup"] == 1337
    assert "httpGet" not in proxy["readinessProbe"]
    assert proxy["readinessProbe"]["periodSeconds"] == 15
    assert [m["name"] for m in proxy["volumeMounts"] if m["mountPath"] == "/etc/istio/pod"] == ["mine"]


def test_variables_merge_by_name_and_new_ones_come_last() -> None:
    pod = inject(build_pod({"name": "a"}, OWN))
    variables = [variable["name"] for variable in container(pod)["env"]]
    assert environment(pod)["CA_ADDR"] == "mine:1"
    assert variables.index("CA_ADDR") == 1
    assert variables[-1] == "EXTRA"
    assert len(variables) == len(set(variables))


def test_an_image_that_is_named_is_used() -> None:
    assert container(inject(build_pod({"name": "a"}, {**OWN, "image": "mine:2"})))["image"] == "mine:2"


def test_capture_leaves_the_users_choice_of_proxy_user_alone() -> None:
    arguments = container(inject(build_pod({"name": "a"}, OWN)), "istio-init")["args"]
    assert arguments[arguments.index("-u") + 1] == "4000"


def test_what_the_user_wrote_is_kept_for_later_injections() -> None:
    pod = inject(build_pod({"name": "a"}, OWN))
    kept = json.loads(annotations(pod)["proxy.istio.io/overrides"])
    assert kept == {"containers": [{name: value for name, value in OWN.items() if name != "image"}]}
    assert inject(pod) == pod


def test_the_users_container_is_laid_over_the_native_proxy_too() -> None:
    pod = inject(build_pod({"name": "a"}, OWN), config=NATIVE)
    assert names(pod) == ["a"]
    assert container(pod)["args"] == ["mine"]
    assert inject(pod, config=NATIVE) == pod


def test_the_users_own_init_container_of_capture_is_merged() -> None:
    own = {"name": "istio-init", "resources": {"requests": {"cpu": "1m"}}}
    pod = inject(build_pod(initContainers=[own]))
    assert names(pod, "initContainers") == ["istio-init"]
    assert container(pod, "istio-init")["resources"]["requests"]["cpu"] == "1m"
    assert inject(pod) == pod


# -- labels, identity, environment ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "name", "revision"),
    [
        ({}, "p", "latest"),
        ({"app": "a", "version": "v1"}, "a", "v1"),
        ({"app": "a", "app.kubernetes.io/name": "b", "app.kubernetes.io/version": "v2", "version": "v1"}, "b", "v2"),
        ({"app": "a", "service.istio.io/canonical-name": "c", "service.istio.io/canonical-revision": "v3"}, "c", "v3"),
    ],
)
def test_canonical_name_and_revision_come_from_labels(given: dict[str, str], name: str, revision: str) -> None:
    found = labels(inject(build_pod(labels=given)))
    assert found["service.istio.io/canonical-name"] == name
    assert found["service.istio.io/canonical-revision"] == revision


def test_a_long_name_is_cut_to_a_valid_label() -> None:
    owner = Owner(api_version="apps/v1", kind="Deployment", name="x" * 62 + "-long")
    found = labels(inject(build_pod(), owner=owner))["service.istio.io/canonical-name"]
    assert found == "x" * 62


def test_labels_that_are_there_are_kept() -> None:
    assert labels(inject(build_pod()))["security.istio.io/tlsMode"] == "istio"
    kept = labels(inject(build_pod(labels={"security.istio.io/tlsMode": "disabled"})))
    assert kept["security.istio.io/tlsMode"] == "disabled"


def test_a_tunnel_is_announced_only_when_the_proxy_has_one() -> None:
    mesh = {"defaultConfig": {"proxyMetadata": {"ISTIO_META_ENABLE_HBONE": "true"}}}
    assert labels(inject(build_pod(), mesh=mesh))["networking.istio.io/tunnel"] == "http"
    assert "networking.istio.io/tunnel" not in labels(inject(build_pod()))


def test_the_network_of_the_pod_beats_that_of_the_installation() -> None:
    config = InjectionConfig(network="net1")
    name = "topology.istio.io/network"
    assert labels(inject(build_pod(), config=config))[name] == "net1"
    pod = inject(build_pod(labels={name: "net2"}), config=config)
    assert (labels(pod)[name], environment(pod)["ISTIO_META_NETWORK"]) == ("net2", "net2")
    assert "ISTIO_META_NETWORK" not in environment(inject(build_pod()))


def test_the_revision_names_the_control_plane() -> None:
    pod = inject(build_pod(), config=InjectionConfig(revision="canary", istio_namespace="mesh"))
    assert annotations(pod)["istio.io/rev"] == "canary"
    assert environment(pod)["CA_ADDR"] == "istiod-canary.mesh.svc:15012"
    assert _status(pod)["revision"] == "canary"
    assert environment(inject(build_pod()))["CA_ADDR"] == "istiod.istio-system.svc:15012"


def test_the_default_container_is_the_applications_first_unless_the_pod_says() -> None:
    name = "kubectl.kubernetes.io/default-container"
    assert annotations(inject(build_pod({"name": "a"}, {"name": "b"})))[name] == "a"
    assert annotations(inject(build_pod({"name": "a"}, {"name": "b"}, annotations={name: "b"})))[name] == "b"


def test_only_upstream_envoy_is_announced_as_a_dialect() -> None:
    name = "ISTIO_META_MIZZEN_DIALECT"
    assert environment(inject(build_pod(), config=InjectionConfig(dialect="envoy")))[name] == "envoy"
    assert name not in environment(inject(build_pod()))


def test_proxy_config_travels_without_what_everybody_assumes() -> None:
    mesh = {
        "trustDomain": "td",
        "defaultConfig": {"drainDuration": "45s", "concurrency": 2, "proxyMetadata": {"B": "mesh", "A": 1}},
    }
    config = "drainDuration: 9s\nproxyMetadata: {B: pod}"
    pod = inject(build_pod(annotations={"proxy.istio.io/config": config}), mesh=mesh)
    found = environment(pod)
    assert json.loads(found["PROXY_CONFIG"]) == {
        "drainDuration": "9s",
        "concurrency": 2,
        "proxyMetadata": {"B": "pod", "A": 1},
    }
    assert (found["A"], found["B"], found["TRUST_DOMAIN"], found["ISTIO_META_MESH_ID"]) == ("1", "pod", "td", "td")
    assert environment(pod, "istio-init") == {"A": "1", "B": "pod"}


def test_compliance_is_passed_on() -> None:
    found = environment(inject(build_pod(), config=InjectionConfig(compliance_policy="fips-140-3")))
    assert (found["COMPLIANCE_POLICY"], found["GODEBUG"]) == ("fips-140-3", "fips140=only")
    assert "GODEBUG" not in environment(inject(build_pod(), config=InjectionConfig(compliance_policy="fips-140-2")))


def test_another_certificate_provider_needs_no_root_from_istiod() -> None:
    pod = inject(build_pod(), config=InjectionConfig(cert_provider="kubernetes"))
    assert "istiod-ca-cert" not in names(pod, "volumes")
    assert "istiod-ca-cert" not in [mount["name"] for mount in container(pod)["volumeMounts"]]


# -- again and back ---------------------------------------------------------------------------------------------------


def test_the_input_is_not_changed() -> None:
    pod = build_pod(OWN, annotations={"prometheus.io/port": "80"})
    before = copy.deepcopy(pod)
    inject(pod)
    assert pod == before


def test_injecting_again_with_another_config_leaves_nothing_of_the_first() -> None:
    pod = build_pod({"name": "a", "livenessProbe": {"tcpSocket": {"port": 1}}}, initContainers=[{"name": "i"}])
    first = inject(pod, config=InjectionConfig(core_dumps=True, image_pull_secrets=("s",), mount_mtls_certs=True))
    assert inject(first, config=NATIVE) == inject(pod, config=NATIVE)


def test_volumes_and_pull_secrets_of_the_user_survive_even_under_our_names() -> None:
    volume = {"name": "istio-envoy", "hostPath": {"path": "/x"}}
    config = InjectionConfig(image_pull_secrets=("s", "t"))
    pod = inject(build_pod(volumes=[volume], imagePullSecrets=[{"name": "s"}]), config=config)
    assert volume in pod["spec"]["volumes"]
    assert names(pod, "volumes").count("istio-envoy") == 1
    assert _status(pod)["imagePullSecrets"] == ["t"]
    assert inject(pod, config=config) == pod


def test_stripping_gives_back_what_the_user_wrote() -> None:
    app = {"name": "a", "livenessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 5}}
    pod = build_pod(app, {**OWN, "image": "mine"}, annotations={"prometheus.io/port": "80"})
    stripped = strip_injection(inject(pod))
    assert stripped["spec"] == pod["spec"]
    assert stripped["metadata"]["annotations"]["prometheus.io/port"] == "80"


def test_a_status_that_somebody_spoilt_counts_as_nothing() -> None:
    pod = build_pod(annotations={STATUS: "injected!", "proxy.istio.io/overrides": "]"})
    assert names(inject(pod)) == ["app", "istio-proxy"]


def test_values_that_are_no_text_are_read_as_their_json() -> None:
    pod = build_pod()
    pod["metadata"]["labels"] = {"version": 2, "app": True}
    assert labels(inject(pod))["service.istio.io/canonical-revision"] == "2"


def test_a_pod_without_metadata_is_injected() -> None:
    outcome = inject_pod({"spec": {"containers": [{"name": "a"}]}})
    assert outcome.injected
    assert "ISTIO_META_OWNER" not in environment(outcome.pod)
