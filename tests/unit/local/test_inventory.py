"""What a local mesh answers where the manifests say something, and where they say nothing."""

import pytest
import yaml
from local_objects import service

from mizzen.api.kube.cluster import Node
from mizzen.api.kube.data import ConfigMap
from mizzen.api.kube.workloads import Job
from mizzen.api.meta import Key, Object, ObjectMeta
from mizzen.local import inventory
from mizzen.local.inventory import Additions, Inventory
from mizzen.local.isolation import Isolation

ADDITIONS = Additions(hub="10.44.0.1", control_plane="10.44.0.1", control_plane_ip="10.96.0.1")


def holding(*objects: Object, isolation: Isolation = Isolation.ROOT) -> Inventory:
    known = Inventory(isolation, "10.96.0.1:15012", lambda: "PEM", lambda: "CRL")
    known.take({Key(type(o).__name__, o.metadata.namespace, o.metadata.name): o for o in objects})
    return known


def mesh(text: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="istio", namespace="istio-system"), data={"mesh": text})


def test_the_roots_are_in_every_namespace_unless_a_manifest_says_otherwise():
    key = Key("ConfigMap", "shop", "istio-ca-root-cert")
    assert holding().look_up(key).data == {"root-cert.pem": "PEM"}
    own = ConfigMap(metadata=ObjectMeta(name=key.name, namespace="shop"), data={"root-cert.pem": "OWN"})
    assert holding(own).look_up(key) == own


def test_the_revocation_lists_are_in_every_namespace():
    assert holding().look_up(Key("ConfigMap", "shop", "istio-ca-crl")).data == {"ca-crl.pem": "CRL"}


def test_the_mesh_config_of_the_manifests_replaces_the_local_one():
    assert holding().mesh_config() == yaml.safe_load(inventory.DEFAULT_MESH_CONFIG)
    assert holding(mesh("{accessLogFile: /dev/null}")).mesh_config() == {"accessLogFile": "/dev/null"}


def test_a_mesh_config_that_does_not_parse_leaves_the_last_one():
    known = holding(mesh("{trustDomain: a}"))
    assert known.mesh_config() == {"trustDomain": "a"}
    known.take({inventory.MESH_CONFIG: mesh("{trustDomain: ")})
    assert known.mesh_config() == {"trustDomain": "a"}


@pytest.mark.parametrize(
    ("isolation", "extra"),
    [
        (Isolation.ROOT, {}),
        (Isolation.MAPPED, {}),
        (Isolation.SINGLE, {"discoveryAddress": "10.96.0.1:15012"}),
        (
            Isolation.NONE,
            {"discoveryAddress": "10.96.0.1:15012", "interceptionMode": "NONE", "proxyMetadata": {"A": "b"}},
        ),
    ],
)
def test_sidecars_are_told_what_the_way_of_isolation_needs(isolation, extra):
    metadata = {"A": "b", "ISTIO_META_DNS_CAPTURE": "true"}
    known = holding(mesh(yaml.safe_dump({"defaultConfig": {"proxyMetadata": metadata}})), isolation=isolation)
    assert known.mesh_config()["defaultConfig"] == {"proxyMetadata": metadata, **extra}


def test_a_pod_runs_on_the_node_that_it_names_or_selects_or_on_this_machine():
    nodes = [Node(metadata=ObjectMeta(name=name, labels={"zone": name})) for name in ("a", "b")]
    known = holding(*nodes)
    chosen = [
        known.node_of({"zone": "b"}, ""),
        known.node_of({"zone": "c"}, ""),
        known.node_of({}, "x"),
        known.node_of({}, ""),
    ]
    assert chosen == ["b", "mizzen", "x", "mizzen"]


def test_only_what_the_manifests_leave_out_is_added():
    added = inventory.build_additions(holding(), ADDITIONS)
    assert [(type(item).__name__, item.metadata.name) for item in added] == [
        ("Node", "mizzen"),
        ("Namespace", "istio-system"),
        ("Service", "istiod"),
        ("EndpointSlice", "istiod"),
        ("ConfigMap", "istio"),
    ]
    known = holding(mesh("{}"), service("istiod", namespace="istio-system"))
    assert [type(item).__name__ for item in inventory.build_additions(known, ADDITIONS)] == [
        "Node",
        "Namespace",
        "EndpointSlice",
    ]


def test_what_makes_pods_in_a_cluster_only_is_named():
    job = Job(metadata=ObjectMeta(name="nightly", namespace="shop"))
    assert holding(job, service("cart")).unrun() == (Key("Job", "shop", "nightly"),)
