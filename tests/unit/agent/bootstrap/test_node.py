"""The xDS node: its id, its metadata and who wins, the names that follow from labels."""

import pytest

from mizzen.agent.bootstrap import node
from mizzen.agent.bootstrap.proxy_config import parse_proxy_config
from mizzen.errors import DecodeError


def make_pod(**fields) -> node.Pod:
    return node.Pod(
        **{
            "name": "front-0",
            "namespace": "web",
            "domain": "web.svc.cluster.local",
            "service_account": "front",
            "addresses": ("10.1.1.10",),
            **fields,
        }
    )


def metadata_of(environ=(), config="", pod=None, **extra):
    return node.build_metadata(pod or make_pod(), parse_proxy_config(config), dict(environ), extra)


def test_id_has_four_parts_and_the_first_address() -> None:
    pod = make_pod(kind="router", addresses=("10.1.1.10", "fd00::1"))
    assert pod.node_id == "router~10.1.1.10~front-0.web~web.svc.cluster.local"
    assert not pod.ipv6_only
    assert make_pod(addresses=("fd00::1",)).ipv6_only


def test_metadata_names_the_pod_and_carries_the_whole_proxy_config() -> None:
    metadata = metadata_of(config="concurrency: 2", pod=make_pod(addresses=("10.1.1.10", "fd00::1")))
    assert metadata["NAME"] == "front-0"
    assert metadata["NAMESPACE"] == "web"
    assert metadata["SERVICE_ACCOUNT"] == "front"
    assert metadata["INSTANCE_IPS"] == "10.1.1.10,fd00::1"
    assert metadata["PROXY_CONFIG"]["concurrency"] == 2
    assert metadata["PROXY_CONFIG"]["statusPort"] == 15020
    assert (metadata["ENVOY_STATUS_PORT"], metadata["ENVOY_PROMETHEUS_PORT"]) == (15021, 15090)
    assert list(metadata) == sorted(metadata)


def test_environment_wins_over_proxy_metadata_and_json_over_both() -> None:
    config = "proxyMetadata: {ISTIO_META_NETWORK: a, ISTIO_META_MESH_ID: m, OTHER: o}"
    environ = {"ISTIO_META_NETWORK": "b", "ISTIO_METAJSON_X": '{"deep": [1]}', "ISTIO_META_X": "plain"}
    metadata = metadata_of(environ, config, NETWORK="agent", KEPT="agent")
    assert (metadata["NETWORK"], metadata["MESH_ID"], metadata["X"]) == ("b", "m", {"deep": [1]})
    assert metadata["KEPT"] == "agent"
    assert "OTHER" not in metadata


def test_labels_of_the_pod_and_of_the_environment_merge() -> None:
    pod = make_pod(labels={"app": "front", "version": "v1", "pod-template-hash": "7c9d"})
    metadata = metadata_of({"ISTIO_METAJSON_LABELS": '{"version": "v2", "tier": "gold"}'}, pod=pod)
    assert metadata["LABELS"] == {"app": "front", "version": "v2", "tier": "gold"}
    assert metadata["STATIC_LABELS"] == {"version": "v2", "tier": "gold"}


@pytest.mark.parametrize("text", ["{", "[]"])
def test_broken_json_variable_is_named(text: str) -> None:
    with pytest.raises(DecodeError, match="ISTIO_METAJSON_LABELS"):
        metadata_of({"ISTIO_METAJSON_LABELS": text})


@pytest.mark.parametrize(
    ("labels", "workload", "config", "cluster"),
    [
        ({"app": "front"}, "front-v1", "", "front.web"),
        ({"app.kubernetes.io/name": "shop"}, "front-v1", "", "shop.web"),
        ({"service.istio.io/canonical-name": "c"}, "front-v1", "", "c.web"),
        ({}, "front-v1", "", "front-v1.web"),
        ({}, "", "", "istio-proxy.web"),
        ({"app": "front"}, "", "serviceCluster: mine", "mine"),
        ({"app": "front"}, "", "serviceCluster: istio-proxy", "front.web"),
        (
            {"app": "front", "service.istio.io/canonical-name": "c"},
            "",
            "tracingServiceName: CANONICAL_NAME_ONLY",
            "c",
        ),
        (
            {"app": "front", "service.istio.io/canonical-name": "c"},
            "",
            "tracingServiceName: CANONICAL_NAME_AND_NAMESPACE",
            "c.web",
        ),
    ],
)
def test_cluster_is_named_after_the_first_thing_known(labels, workload: str, config: str, cluster: str) -> None:
    assert node.select_cluster(labels, workload, "web", parse_proxy_config(config)) == cluster


@pytest.mark.parametrize(
    ("labels", "locality"),
    [
        ({}, {}),
        ({"topology.istio.io/locality": "r1/z1/s1"}, {"region": "r1", "zone": "z1", "subZone": "s1"}),
        ({"istio-locality": "r1.z1"}, {"region": "r1", "zone": "z1"}),
        (
            {"topology.kubernetes.io/region": "r1", "topology.istio.io/subzone": "s1"},
            {"region": "r1", "subZone": "s1"},
        ),
    ],
)
def test_locality_comes_from_labels(labels, locality) -> None:
    assert node.select_locality(labels) == locality


def variables_of(environ=(), **labels: str) -> dict[str, str]:
    pod = make_pod(labels=labels)
    return node.build_identity_variables(pod, metadata_of(dict(environ), pod=pod))


def test_identity_variables_say_who_the_workload_is() -> None:
    environ = {"ISTIO_META_WORKLOAD_NAME": "front-v1", "ISTIO_META_CLUSTER_ID": "east", "ISTIO_META_MESH_ID": "m"}
    labels = {"app": "front", "version": "v1", "service.istio.io/canonical-name": "front"}
    assert variables_of(environ, **labels) == {
        "MZ_WORKLOAD": "front-v1",
        "MZ_NAMESPACE": "web",
        "MZ_CANONICAL_SERVICE": "front",
        "MZ_CANONICAL_REVISION": "latest",
        "MZ_APP": "front",
        "MZ_VERSION": "v1",
        "MZ_CLUSTER": "east",
        "MZ_MESH": "m",
        "MZ_UNKNOWN": "unknown",
        "MZ_PEER": "front-v1;web;front;latest;east;front;v1",
    }


def test_identity_variables_never_are_empty() -> None:
    bare = variables_of()
    assert bare["MZ_PEER"] == "unknown;web;unknown;latest;unknown;unknown;latest"
    assert all(bare.values())
    named = variables_of({"ISTIO_META_WORKLOAD_NAME": "front-v1"})
    assert (named["MZ_APP"], named["MZ_VERSION"]) == ("front-v1", "latest")


def test_no_value_breaks_the_record_of_a_peer() -> None:
    assert variables_of({"ISTIO_META_CLUSTER_ID": "a;b"})["MZ_PEER"].split(";")[4] == "a,b"
