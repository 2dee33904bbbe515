"""Statuses laid over what the server has: what is ours is replaced, what is not stays, and times last."""

from typing import Any

from mizzen.api.gateway_api.statuses import (
    Condition,
    GatewayStatus,
    ListenerStatus,
    PolicyAncestorStatus,
    PolicyStatus,
    RouteParentStatus,
    RouteStatus,
    Status,
    StatusAddress,
    StatusReference,
)
from mizzen.control.status_merging import merge_status

OURS, MESH = "istio.io/gateway-controller", "istio.io/mesh-controller"
THEN, NOW = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"


def merged(wanted: Status, current: dict[str, Any], generation: int = 1, now: str = NOW) -> dict[str, Any]:
    return merge_status(wanted, current, generation=generation, now=now)


def condition(kind: str = "Accepted", status: Any = "True", message: str = "") -> Condition:
    return Condition(type=kind, status=status, reason=kind, message=message)


def reference(name: str) -> StatusReference:
    return StatusReference(group="gateway.networking.k8s.io", kind="Gateway", name=name)


def route(*names: str, status: str = "True", message: str = "") -> RouteStatus:
    return RouteStatus(
        parents=tuple(
            RouteParentStatus(
                parent_ref=reference(name),
                controller_name=OURS,
                conditions=(condition(status=status, message=message),),
            )
            for name in names
        )
    )


def foreign(name: str, controller: str = "example.com/c") -> dict[str, Any]:
    return {"parentRef": {"name": name}, "controllerName": controller, "conditions": [{"type": "Accepted"}]}


def test_what_is_there_already_is_not_written():
    first = merged(route("a", "b"), {}, now=THEN)
    assert merged(route("a", "b"), first) == {}
    assert merged(route("b", "a"), first) == {}, "the order of parents means nothing"
    assert merged(route(), {}) == {}


def test_a_time_changes_with_the_status_alone():
    first = merged(route("a"), {}, now=THEN)
    (again,) = merged(route("a", message="other"), first, 2)["parents"]
    assert again["conditions"][0]["lastTransitionTime"] == THEN
    assert again["conditions"][0]["observedGeneration"] == 2
    (turned,) = merged(route("a", status="False"), first)["parents"]
    assert turned["conditions"][0]["lastTransitionTime"] == NOW


def test_parents_of_others_stay_and_ours_go_when_they_are_no_more():
    current = {"parents": [foreign("x"), *merged(route("a", "b"), {}, now=THEN)["parents"]]}
    changed = merged(route("b"), current)
    assert [one["parentRef"]["name"] for one in changed["parents"]] == ["x", "b"]
    assert merged(route(), current) == {"parents": [foreign("x")]}
    assert merged(route(), {"parents": [foreign("x")]}) == {}


def test_there_are_no_more_entries_than_the_kind_allows():
    others = [{**foreign(f"x{n}"), "ancestorRef": {"name": f"x{n}"}} for n in range(15)]
    policy = PolicyStatus(
        ancestors=tuple(
            PolicyAncestorStatus(ancestor_ref=reference(f"g{n}"), controller_name=MESH, conditions=(condition(),))
            for n in range(4)
        )
    )
    changed = merged(policy, {"ancestors": others})
    assert [one["ancestorRef"]["name"] for one in changed["ancestors"]] == [*(f"x{n}" for n in range(15)), "g0"]


def test_conditions_of_other_types_stay_and_ours_that_hold_no_more_go():
    theirs = {"type": "example.com/Checked", "status": "True"}
    gone = {"type": "InsecureFrontendValidationMode", "status": "True"}
    wanted = GatewayStatus(conditions=(condition(), condition("Programmed")))
    changed = merged(wanted, {"conditions": [theirs, gone]})
    assert [one["type"] for one in changed["conditions"]] == ["example.com/Checked", "Accepted", "Programmed"]


def test_listeners_are_replaced_and_their_conditions_keep_their_times():
    def gateway(*names: str, routes: int = 0) -> GatewayStatus:
        listeners = tuple(
            ListenerStatus(name=name, supported_kinds=(), attached_routes=routes, conditions=(condition("Programmed"),))
            for name in names
        )
        return GatewayStatus(conditions=(condition(),), listeners=listeners)

    first = merged(gateway("web", "old"), {}, now=THEN)
    changed = merged(gateway("web", "new", routes=1), first)
    assert set(changed) == {"listeners"}
    since = {one["name"]: one["conditions"][0]["lastTransitionTime"] for one in changed["listeners"]}
    assert since == {"web": THEN, "new": NOW}


def test_an_address_is_replaced_but_never_taken_away():
    address = StatusAddress(type="IPAddress", value="192.0.2.1")
    told = GatewayStatus(conditions=(), addresses=(address,))
    current = merged(told, {})
    assert current["addresses"] == [{"type": "IPAddress", "value": "192.0.2.1"}]
    assert merged(GatewayStatus(conditions=()), current) == {}
    other = StatusAddress(type="IPAddress", value="192.0.2.2")
    assert merged(GatewayStatus(conditions=(), addresses=(other,)), current)["addresses"][0]["value"] == "192.0.2.2"


def test_a_field_that_is_no_more_is_removed():
    none = GatewayStatus(conditions=())
    assert merged(none, {"attachedListenerSets": 2}) == {"attachedListenerSets": None}


def test_nonsense_of_others_is_survived():
    current = {"parents": [None, "x", {"controllerName": 3}], "conditions": "?"}
    assert [one.get("parentRef", {}).get("name") for one in merged(route("a"), current)["parents"]] == [None, "a"]
