"""What a WorkloadEntry of a registered machine holds."""

import json

from mizzen.api.decode import decode_object
from mizzen.control.machines import contents
from mizzen.control.times import format_micro_time
from mizzen.model.proxy import parse_node
from mizzen.model.spiffe import Identity

GROUP = {
    "apiVersion": "networking.istio.io/v1",
    "kind": "WorkloadGroup",
    "metadata": {"name": "ratings", "namespace": "shop", "uid": "u-1"},
    "spec": {
        "metadata": {"labels": {"app": "group", "tier": "group"}, "annotations": {"note": "kept"}},
        "template": {
            "serviceAccount": "vm",
            "ports": {"http": 8080},
            "weight": 3,
            "network": "template-net",
            "labels": {"app": "template", "tier": "template", "rack": "template"},
        },
    },
}


def group(**changes):
    return decode_object({**GROUP, **changes}).object


def machine(ip="10.0.0.9", locality=None, **metadata):
    node = {
        "id": f"sidecar~{ip}~vm-1.shop~shop.svc.cluster.local",
        "metadata": {"NAMESPACE": "shop", "AUTO_REGISTER_GROUP": "ratings", **metadata},
        **({"locality": locality} if locality else {}),
    }
    return contents.read_machine(parse_node(node))


def test_a_pod_is_no_machine():
    assert machine(AUTO_REGISTER_GROUP="") is None


def test_the_name_is_group_address_and_network():
    assert machine().key.name == "ratings-10.0.0.9"
    assert machine(ip="fd00::1").key.name == "ratings-fd00--1"
    assert machine(NETWORK="net-2").key.name == "ratings-10.0.0.9-net-2"


def test_of_a_name_that_is_too_long_the_end_is_kept():
    name = machine(AUTO_REGISTER_GROUP="g" * 300).key.name
    assert len(name) == 253
    assert name.endswith("g-10.0.0.9")


def test_labels_of_the_node_win_over_those_of_the_group_and_these_over_the_template():
    told = machine(LABELS={"app": "node", "istio-locality": "r.z"})
    document = contents.build_entry(told, group(), "v1")
    assert document["spec"]["labels"] == {"app": "node", "tier": "group", "rack": "template"}
    assert document["metadata"]["labels"] == document["spec"]["labels"]


def test_the_entry_is_made_of_the_template_for_the_address_of_the_node():
    document = contents.build_entry(machine(), group(), "v1beta1")
    assert document["apiVersion"] == "networking.istio.io/v1beta1"
    del document["spec"]["labels"]
    assert document["spec"] == {
        "address": "10.0.0.9",
        "ports": {"http": 8080},
        "network": "template-net",
        "weight": 3,
        "serviceAccount": "vm",
    }
    assert document["metadata"]["annotations"] == {"istio.io/autoRegistrationGroup": "ratings", "note": "kept"}
    assert document["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "networking.istio.io/v1beta1",
            "kind": "WorkloadGroup",
            "name": "ratings",
            "uid": "u-1",
            "controller": True,
        }
    ]


def test_the_node_knows_its_network_locality_tunnel_and_probe_best():
    told = machine(
        locality={"region": "r", "zone": "z"},
        NETWORK="net-2",
        ENABLE_HBONE="true",
        PROXY_CONFIG={"readinessProbe": {"tcpSocket": {"port": 80}}},
    )
    document = contents.build_entry(told, group(), "v1")
    assert (document["spec"]["network"], document["spec"]["locality"]) == ("net-2", "r/z")
    assert document["spec"]["labels"]["networking.istio.io/tunnel"] == "http"
    assert document["metadata"]["annotations"]["proxy.istio.io/health-checks-enabled"] == "true"


def test_a_group_may_say_nothing():
    document = contents.build_entry(machine(), group(spec={}), "v1")
    assert document["spec"] == {"address": "10.0.0.9"}


def test_an_entry_is_for_its_own_namespace_and_account_alone():
    vm = Identity("cluster.local", "shop", "vm")
    assert contents.refusal(vm, "shop", "vm") == ""
    assert contents.refusal(vm, "shop", "") == ""
    assert "requires a verified identity" in contents.refusal(None, "shop", "vm")
    assert 'service account mismatch: "vm" vs "other"' in contents.refusal(vm, "shop", "other")
    assert 'namespace mismatch: "shop" vs "bank"' in contents.refusal(vm, "bank", "vm")


def test_moments_survive_being_written_down():
    at = 1_796_000_000.123456789
    annotations = {name: value for name, value in contents.connected("one", at).items() if value}
    assert contents.is_connected("one", at, annotations)
    assert not contents.is_connected("two", at, annotations)
    assert not contents.is_older(at, annotations)
    assert contents.is_older(at - 0.001, annotations)


def abandoned(now, grace=10.0, longest=100.0, **annotations):
    names = {"connected": contents.CONNECTED_AT, "disconnected": contents.DISCONNECTED_AT}
    given = {names[name]: format_micro_time(at) for name, at in annotations.items()}
    return contents.is_abandoned(given, now, grace=grace, longest=longest)


def test_an_entry_is_abandoned_after_the_grace_period():
    assert not abandoned(109.0, disconnected=100.0)
    assert abandoned(110.0, disconnected=100.0)
    assert not abandoned(1000.0)


def test_an_entry_is_abandoned_when_no_connection_can_be_so_old():
    assert not abandoned(199.0, connected=100.0)
    assert abandoned(201.0, connected=100.0)
    assert not abandoned(1e6, longest=0.0, connected=100.0)


def test_who_is_connected_again_is_not_abandoned():
    assert not abandoned(120.0, connected=115.0, disconnected=100.0)


def test_the_condition_of_health_stands_beside_those_of_others():
    other = {"type": "Reconciled", "status": "True"}
    first = contents.merge_condition([other], False, "500: no", 100.0)
    assert first is not None
    assert first[0] == other
    assert (first[1]["status"], first[1]["message"]) == ("False", "500: no")
    assert contents.merge_condition(first, False, "500: no", 200.0) is None
    second = contents.merge_condition(first, False, "503: no", 200.0)
    assert second is not None
    assert second[1]["lastTransitionTime"] == first[1]["lastTransitionTime"]
    third = contents.merge_condition(second, True, "", 300.0)
    assert third is not None
    assert third[1]["lastTransitionTime"] == format_micro_time(300.0)
    assert "message" not in third[1]
    assert contents.without_health(json.loads(json.dumps(third))) == [other]
