"""Files of a machine outside Kubernetes; what is expected here was written by istioctl for the same groups."""

import shlex

import pytest
import yaml

from mizzen.errors import DecodeError
from mizzen.inject.machines import Choices, Machine

MESH = {
    "trustDomain": "td.example",
    "defaultConfig": {
        "meshId": "mesh1",
        "concurrency": 3,
        "tracing": {"sampling": 10},
        "proxyMetadata": {"Z": "z"},
        "terminationDrainDuration": "7s",
    },
}
RATINGS = {
    "metadata": {
        "name": "ratings",
        "namespace": "shop",
        "annotations": {"proxy.istio.io/config": "concurrency: 2\nproxyMetadata: {A: b}"},
    },
    "spec": {
        "metadata": {
            "labels": {"app": "ratings", "version": "v2"},
            "annotations": {"proxy.istio.io/config": "statusPort: 15090"},
        },
        "template": {
            "serviceAccount": "vm",
            "ports": {"http": 8080, "grpc": 9090},
            "network": "vm-net",
            "labels": {"app": "rating"},
        },
        "probe": {"httpGet": {"path": "/x", "port": 80}, "periodSeconds": 5},
    },
}
LABELS = (
    '{"app":"rating","service.istio.io/canonical-name":"rating",'
    '"service.istio.io/canonical-revision":"v2","version":"v2"}'
)
PORTS = '[{"name":"grpc","containerPort":9090,"protocol":""},{"name":"http","containerPort":8080,"protocol":""}]'


def plain(annotation="", **spec):
    metadata = {"name": "plain", "namespace": "shop", "annotations": {"proxy.istio.io/config": annotation}}
    return {"metadata": metadata, "spec": {"template": {"serviceAccount": "vm"}, **spec}}


def machine(group, mesh=MESH, **choices):
    return Machine(group, mesh, Choices(**{"cluster": "c1", "discovery": "", **choices}))


def variables(made: Machine) -> dict[str, str]:
    words = [shlex.split(line) for line in made.environment().splitlines()]
    assert all(len(each) == 1 for each in words)
    pairs = [word.partition("=") for each in words for word in each]
    return {name: value for name, _, value in pairs}


def test_the_environment_is_istioctl_s():
    assert machine(RATINGS).environment() == (
        "A='b'\n"
        "CANONICAL_REVISION='v2'\n"
        "CANONICAL_SERVICE='rating'\n"
        "ISTIO_INBOUND_PORTS='8080,9090'\n"
        "ISTIO_LOCAL_EXCLUDE_PORTS='22,15090,15021'\n"
        f"ISTIO_METAJSON_LABELS='{LABELS}'\n"
        "ISTIO_META_CLUSTER_ID='c1'\n"
        "ISTIO_META_DNS_CAPTURE='true'\n"
        "ISTIO_META_MESH_ID='mesh1'\n"
        "ISTIO_META_NETWORK='vm-net'\n"
        f"ISTIO_META_POD_PORTS='{PORTS}'\n"
        "ISTIO_META_WORKLOAD_NAME='ratings'\n"
        "ISTIO_NAMESPACE='shop'\n"
        "ISTIO_SERVICE='ratings.shop'\n"
        "ISTIO_SERVICE_CIDR='*'\n"
        "POD_NAMESPACE='shop'\n"
        "SERVICE_ACCOUNT='vm'\n"
        "TRUST_DOMAIN='td.example'\n"
        "Z='z'\n"
    )


def test_the_mesh_config_is_istioctl_s():
    assert yaml.safe_load(machine(RATINGS).mesh_config()) == {
        "defaultConfig": {
            "concurrency": 2,
            "meshId": "mesh1",
            "proxyMetadata": {
                "A": "b",
                "CANONICAL_REVISION": "v2",
                "CANONICAL_SERVICE": "rating",
                "ISTIO_META_CLUSTER_ID": "c1",
                "ISTIO_META_DNS_CAPTURE": "true",
                "ISTIO_META_MESH_ID": "mesh1",
                "ISTIO_META_NETWORK": "vm-net",
                "ISTIO_META_POD_PORTS": PORTS,
                "ISTIO_META_WORKLOAD_NAME": "ratings",
                "ISTIO_METAJSON_LABELS": LABELS,
                "POD_NAMESPACE": "shop",
                "SERVICE_ACCOUNT": "vm",
                "TRUST_DOMAIN": "td.example",
                "Z": "z",
            },
            "readinessProbe": {"httpGet": {"path": "/x", "port": 80}, "periodSeconds": 5},
            "statusPort": 15090,
            "terminationDrainDuration": "7s",
            "tracing": {"sampling": 10},
        }
    }


def test_a_revision_says_where_it_is_unless_the_mesh_does():
    told = machine(plain(), {}, discovery="istiod-canary.istio-system.svc:15012")
    assert yaml.safe_load(told.mesh_config())["defaultConfig"]["discoveryAddress"] == (
        "istiod-canary.istio-system.svc:15012"
    )
    assert variables(told)["CA_ADDR"] == "istiod-canary.istio-system.svc:15012"
    mesh = {"defaultConfig": {"discoveryAddress": "elsewhere:15012"}}
    own = machine(plain(), mesh, discovery="istiod-canary.istio-system.svc:15012")
    assert yaml.safe_load(own.mesh_config())["defaultConfig"]["discoveryAddress"] == "elsewhere:15012"


def test_choices_are_variables():
    inside = variables(machine(plain(), {}, registers=True, captures_dns=False, internal_address="10.0.0.1"))
    assert inside["ISTIO_META_AUTO_REGISTER_GROUP"] == "plain"
    assert "ISTIO_META_DNS_CAPTURE" not in inside
    assert inside["ISTIO_SVC_IP"] == "10.0.0.1"
    assert "REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION" not in inside
    outside = variables(machine(plain(), {}, external_address="1.2.3.4"))
    assert outside["ISTIO_SVC_IP"] == "1.2.3.4"
    assert outside["REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION"] == "true"
    assert outside["ISTIO_INBOUND_PORTS"] == "*"
    assert outside["ISTIO_LOCAL_EXCLUDE_PORTS"] == "22,15090,15021,15020"
    assert outside["TRUST_DOMAIN"] == ""


def test_values_reach_a_shell_as_they_are():
    assert variables(machine(plain('proxyMetadata: {Q: "it\'s a $x"}')))["Q"] == "it's a $x"


def test_fields_may_be_written_in_either_of_protobuf_s_ways():
    made = machine(plain("proxy_metadata: {Q: q}\ndrain_duration: 3s"))
    config = yaml.safe_load(made.mesh_config())["defaultConfig"]
    assert config["drainDuration"] == "3s"
    assert config["proxyMetadata"]["Q"] == variables(made)["Q"] == "q"


def test_a_workload_has_its_name_from_its_labels():
    labels = {"service.istio.io/canonical-name": "cano", "app.kubernetes.io/version": "v9", "app": "app"}
    found = variables(machine(plain(metadata={"labels": labels})))
    assert (found["CANONICAL_SERVICE"], found["CANONICAL_REVISION"]) == ("cano", "v9")
    assert variables(machine(plain()))["CANONICAL_SERVICE"] == "plain"


def test_a_group_without_an_account_has_the_default_one():
    assert machine(plain(template={})).service_account == "default"
    assert variables(machine(plain(template={})))["SERVICE_ACCOUNT"] == "default"


def test_an_annotation_that_cannot_be_understood_is_told_of():
    with pytest.raises(DecodeError, match=r"WorkloadGroup plain.*concurrency"):
        machine(plain("concurrency: many"))
