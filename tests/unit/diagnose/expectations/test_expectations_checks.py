"""Expectations held against what was seen: each field by itself, and what is said of a mismatch."""

from typing import Any

import pytest

from mizzen.diagnose.expectations import checks
from mizzen.diagnose.expectations.seen import Seen, Target
from mizzen.diagnose.expectations.tables import Expect
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.verdict import Cause, Trace

CART = Target(service="cart.shop", subset="v1")


def trace(**changes: Any) -> Trace:
    plain: dict[str, Any] = {
        "steps": (), "outcome": "delivered", "status": 200, "flag": "-", "details": "via_upstream", "certain": True,
    }  # fmt: skip
    return Trace(**{**plain, **changes})


def seen(**changes: Any) -> Seen:
    plain: dict[str, Any] = {
        "trace": trace(),
        "target": CART,
        "workloads": ("cart-v1-abc.shop", "cart-v1-def.shop"),
        "message": Message(path="/b?c=d", authority="cart", headers=(("x-set", "1"),)),
        "sent": Message(path="/a", headers=(("x-gone", "1"),)),
        "response": {"x-told": "yes", "x-hidden": None},
        "timeout": "5s",
        "retries": 2,
    }
    return Seen(**{**plain, **changes})


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"outcome": "delivered", "status": 200, "flag": "-", "details": "via_upstream", "certain": True},
        {"destination": "cart.shop", "subset": "v1"},
        {"destination": "cart.shop/v1"},
        {"destination": "cart-v1.shop"},
        {"path": "/b?c=d", "host": "cart", "timeout": "5s", "retries": 2},
        {"request": {"X-Set": 1, "x-gone": None}, "response": {"X-Told": "yes", "x-hidden": None, "x-other": None}},
        {"shares": {"v1": 1}},
        {"policy": "", "location": "", "cause": ""},
    ],
)
def test_what_is_so_holds(expect: dict[str, Any]) -> None:
    assert checks.check(Expect(**expect), seen()) == ()


@pytest.mark.parametrize(
    ("expect", "actual"),
    [
        ({"status": 503}, "200"),
        ({"flag": "NC"}, "-"),
        ({"destination": "search.shop"}, "cart.shop/v1; pods cart-v1-abc.shop, cart-v1-def.shop"),
        ({"destination": "cart-v1-abc.shop"}, "cart.shop/v1; pods cart-v1-abc.shop, cart-v1-def.shop"),
        ({"destination": "cart-v.shop"}, "cart.shop/v1; pods cart-v1-abc.shop, cart-v1-def.shop"),
        ({"subset": ""}, "v1"),
        ({"path": "/b"}, "/b?c=d"),
        ({"request": {"x-set": "2"}}, "1"),
        ({"request": {"x-gone": "1"}}, "absent"),
        ({"request": {"x-set": None}}, "1"),
        ({"response": {"x-hidden": "1"}}, "absent"),
        ({"response": {"x-told": None}}, "yes"),
        ({"timeout": "none"}, "5s"),
        ({"policy": "shop/a"}, "none"),
    ],
)
def test_what_is_not_so_is_told(expect: dict[str, Any], actual: str) -> None:
    (found,) = checks.check(Expect(**expect), seen())

    assert found.actual == actual
    assert found.field.split(".")[0] == next(iter(expect))


def test_the_order_of_flags_says_nothing() -> None:
    found = seen(trace=trace(outcome="failed", status=503, flag="URX,UF"))

    assert checks.check(Expect(flag="UF,URX"), found) == ()
    assert checks.check(Expect(flag="UF"), found) != ()


def test_a_policy_is_named_with_its_rule_or_without() -> None:
    found = seen(policy="shop/deny[1]")

    assert checks.check(Expect(policy="shop/deny"), found) == ()
    assert checks.check(Expect(policy="shop/deny[1]"), found) == ()
    assert checks.check(Expect(policy="shop/deny[0]"), found) != ()


def test_the_object_to_blame_is_named() -> None:
    found = seen(trace=trace(cause=Cause(kind="VirtualService", namespace="shop", name="cart", file="a.yaml", line=3)))

    assert checks.check(Expect(cause="VirtualService shop/cart"), found) == ()


SPLIT = ((CART, 90), (Target(service="cart.shop", subset="v2"), 9), (Target(service="search.shop"), 1))


@pytest.mark.parametrize(
    "shares",
    [
        {"v1": 90, "v2": 9, "search.shop": 1},
        {"cart.shop/v1": 90, "cart.shop/v2": 9, "search.shop": 1},
        {"cart.shop": 99, "search.shop": 1},
        {"cart.shop": 198, "search.shop": 2},
    ],
)
def test_shares_by_subset_or_service_in_any_unit(shares: dict[str, int]) -> None:
    assert checks.check(Expect(shares=shares), seen(shares=SPLIT)) == ()


@pytest.mark.parametrize(
    ("shares", "fields"),
    [
        ({"v1": 80, "v2": 19, "search.shop": 1}, ["shares.v1", "shares.v2"]),
        ({"v1": 90, "v2": 10}, ["shares.v2", "shares"]),
        ({"v1": 90, "v2": 9, "search.shop": 1, "v3": 0}, []),
    ],
)
def test_other_shares_differ(shares: dict[str, int], fields: list[str]) -> None:
    assert [each.field for each in checks.check(Expect(shares=shares), seen(shares=SPLIT))] == fields


def test_a_request_that_does_not_arrive_has_no_headers() -> None:
    (found,) = checks.check(Expect(request={"x-gone": None}), seen(message=None))

    assert found.actual == "no request arrives at a program"
