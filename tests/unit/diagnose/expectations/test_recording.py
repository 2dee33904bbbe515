"""Expectations written into files: what is recorded, and what stays as it is."""

from typing import Any

import pytest
import yaml

from mizzen.diagnose.expectations import checks, recording, tables
from mizzen.diagnose.expectations.seen import Seen, Target
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.verdict import Trace


def seen(**changes: Any) -> Seen:
    trace = Trace(steps=(), outcome="delivered", status=200, flag="-", details="via_upstream", certain=True)
    return Seen(trace=trace, target=Target(service="cart.shop", subset="v1"), **changes)


BLOCK = """\
# About carts.
tests:
- name: first   # kept
  url: http://a

- url: http://b
  expect:
    status: 503
    flag: UH
  # the end of the second
- {url: http://c}   # flow
- {url: http://d, expect: {status: 1}}
other: 1
"""


def test_only_expectations_change() -> None:
    text = recording.rewrite(BLOCK, [seen()] * 4)

    expect = "expect: {outcome: delivered, status: 200, destination: cart.shop, subset: v1}"
    assert (
        text
        == f"""\
# About carts.
tests:
- name: first   # kept
  url: http://a
  {expect}

- url: http://b
  {expect}
  # the end of the second
- {{url: http://c, {expect}}}   # flow
- {{url: http://d, {expect}}}
other: 1
"""
    )


def test_a_test_that_could_not_be_asked_stays() -> None:
    text = recording.rewrite(BLOCK, [None, None, seen(), None])

    assert "flag: UH" in text
    assert "{status: 1}" in text
    assert text.count("destination: cart.shop") == 1


def test_recording_twice_changes_nothing_more() -> None:
    once = recording.rewrite(BLOCK, [seen()] * 4)

    assert recording.rewrite(once, [seen()] * 4) == once


@pytest.mark.parametrize("value", ["1", "true", "", " a", "a: b", "#x", "*x", "y", '"', "null", "[x", "ä", "a,b", "}"])
def test_texts_stay_texts(value: str) -> None:
    sent, arrived = Message(headers=()), Message(headers=(("x-a", value),))
    text = recording.rewrite("tests:\n- {url: http://a}\n", [seen(sent=sent, message=arrived)])

    assert yaml.safe_load(text)["tests"][0]["expect"]["request"] == {"x-a": value}


def test_what_only_a_real_request_knows_is_not_recorded() -> None:
    response = {"x-by": "%UPSTREAM_HOST%", "x-when": "%START_TIME(%s)%", "x-rate": "5%", "x-gone": None}
    found = recording.record(seen(response=response))

    assert found["response"] == {"x-rate": "5%", "x-gone": None}


def test_what_is_recorded_holds() -> None:
    found = seen(
        sent=Message(headers=(("x-old", "1"),)),
        message=Message(path="/new", headers=(("x-new", "2"), ("x-forwarded-proto", "http"))),
        response={"x-told": "yes", "x-hidden": None},
        shares=((Target(service="cart.shop", subset="v1"), 90), (Target(service="search.shop"), 10)),
    )
    plain = recording.record(found)

    assert plain["request"] == {"x-new": "2", "x-old": None}
    assert plain["shares"] == {"cart.shop/v1": 90, "search.shop": 10}
    assert checks.check(tables.Expect(**plain), found) == ()
