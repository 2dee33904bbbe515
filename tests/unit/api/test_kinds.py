import pytest

from mizzen.api.decode import decode_object
from mizzen.api.gateway_api.listeners import Gateway as KubernetesGateway
from mizzen.api.kinds import KINDS, Kind, is_our_group, kind_named, kind_of_api, split_api_version
from mizzen.api.networking.gateway import Gateway


def test_names_in_keys_are_unique() -> None:
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names)


def test_the_two_gateways_are_apart() -> None:
    assert kind_named("Gateway").type is Gateway
    assert kind_named("KubernetesGateway").type is KubernetesGateway
    found = kind_of_api("gateway.networking.k8s.io", "Gateway")
    assert found is not None
    assert (found.kind, found.name) == ("Gateway", "KubernetesGateway")


def test_a_kind_knows_the_version_to_ask_for() -> None:
    assert kind_named("Service").api_version == "v1"
    assert kind_named("Deployment").api_version == "apps/v1"
    assert kind_named("VirtualService").api_version == "networking.istio.io/v1"


def test_kinds_that_are_not_read_are_none() -> None:
    assert kind_of_api("", "PersistentVolume") is None
    assert kind_of_api("apps", "VirtualService") is None


@pytest.mark.parametrize(
    ("group", "ours"),
    [("networking.istio.io", True), ("gateway.networking.k8s.io", True), ("", False), ("apps", False)],
)
def test_groups_of_the_mesh_are_known(group: str, ours: bool) -> None:
    assert is_our_group(group) is ours


def test_api_versions_are_split() -> None:
    assert split_api_version("v1") == ("", "v1")
    assert split_api_version("apps/v1") == ("apps", "v1")


@pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS if is_our_group(kind.group) and kind.kind != "WorkloadEntry"],  # Whose health counts.
    ids=lambda kind: kind.name,
)
def test_what_is_found_about_an_object_is_no_part_of_it(kind: Kind) -> None:
    condition = {"type": "Reconciled", "status": "False", "reason": "NotInForce", "observedGeneration": 1}
    message = {"level": "ERROR", "type": {"code": "IST0101"}}
    status = {"observedGeneration": 1, "conditions": [condition], "validationMessages": [message]}
    metadata = {"name": "x", "namespace": "n"}
    plain = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {}}
    assert decode_object({**plain, "status": status}) == decode_object(plain)
