"""Which workloads an object is for."""

from mizzen.api.networking.selectors import PolicyTargetReference
from mizzen.model.attachments import Audience, is_for

SIDECAR = Audience("sidecar", "shop", (("app", "a"), ("version", "v1")))
GATEWAY = Audience("router", "shop", (("gateway.networking.k8s.io/gateway-name", "edge"),))
WAYPOINT = Audience("waypoint", "shop", GATEWAY.labels)


def _reference(**fields: str) -> PolicyTargetReference:
    return PolicyTargetReference(**{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge", **fields})


def test_an_absent_or_empty_selector_selects_everything():
    assert is_for(SIDECAR, "root", None, ())
    assert is_for(SIDECAR, "root", {}, ())


def test_a_selector_needs_all_its_labels():
    assert is_for(SIDECAR, "shop", {"app": "a", "version": "v1"}, ())
    assert not is_for(SIDECAR, "shop", {"app": "a", "version": "v2"}, ())


def test_a_reference_is_for_the_gateway_that_it_names():
    assert is_for(GATEWAY, "shop", None, [_reference()])
    assert is_for(GATEWAY, "shop", None, [_reference(name="other"), _reference()])
    assert is_for(GATEWAY, "elsewhere", None, [_reference(namespace="shop")])
    assert not is_for(GATEWAY, "elsewhere", None, [_reference()])
    assert not is_for(GATEWAY, "shop", None, [_reference(name="other")])
    assert not is_for(GATEWAY, "shop", None, [_reference(kind="Service", group="")])


def test_an_object_with_references_is_for_nobody_else():
    assert not is_for(SIDECAR, "shop", None, [_reference()])
    assert not is_for(SIDECAR, "shop", {"app": "a"}, [_reference(name="")])


def test_a_waypoint_is_reached_by_reference_only():
    assert not is_for(WAYPOINT, "shop", None, ())
    assert is_for(WAYPOINT, "shop", None, [_reference()])
