"""Traces over the control plane's objects: in a thread, bounded, as connected proxies really are."""

import asyncio
import datetime
import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from crowds import member
from meshes import mesh_of, proxy
from ui_mesh import HOSTILE, RULES, SERVICES, pods

from mizzen.compile.resource import CLUSTER
from mizzen.control.debug.console import PageError
from mizzen.control.ui.tracing import Form, Mirror, State, Tracer, build_world, describe
from mizzen.diagnose.trace.verdict import Step, Trace
from mizzen.incremental import Engine
from mizzen.sources.origins import Origin
from mizzen.xds.requests import Rejection

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
ADMIN = Form(source="front-0.shop", url="http://cart.shop:8080/admin")


def tracer(engine: Any, *connected: Any, places: Any = None) -> Tracer:
    connections: Any = list(connected)
    return Tracer(engine, connections, lambda: places or {}, clock=NOW.timestamp)


def shop() -> Engine:
    return mesh_of(pods(), SERVICES, RULES)


async def test_verdict_names_the_object_and_its_place() -> None:
    engine = shop()
    key = next(iter(engine.keys("AuthorizationPolicy")))
    asked = tracer(engine, places={key: Origin("rules.yaml", 7)})
    found = await asked.answer(ADMIN)
    asked.close()
    assert (found["outcome"], found["status"]) == ("denied", 403)
    assert found["cause"] == {
        "kind": "AuthorizationPolicy",
        "namespace": "shop",
        "name": "no-admin",
        "file": "rules.yaml",
        "line": 7,
    }
    assert found["warnings"] == []


async def test_objects_are_those_of_now() -> None:
    engine = shop()
    asked = tracer(engine)
    assert (await asked.answer(ADMIN))["outcome"] == "denied"
    engine.remove(next(iter(engine.keys("AuthorizationPolicy"))))
    assert (await asked.answer(ADMIN))["outcome"] == "delivered"
    asked.close()


async def test_the_loops_own_engine_is_left_alone() -> None:
    engine = shop()
    runs = engine.runs
    asked = tracer(engine)
    await asked.answer(ADMIN)
    asked.close()
    assert engine.runs == runs


@pytest.mark.parametrize(
    ("form", "status"),
    [
        (Form(source="front-0.shop", url="nonsense"), 400),
        (Form(source="front-0.shop", url="http://cart:99999/"), 400),
        (Form(source="front-0.shop", url="http://cart/", headers=("nonsense",)), 400),
        (Form(source="nobody.nowhere", url="http://cart/"), 422),
        (Form(source=HOSTILE, url=f"http://cart/{HOSTILE}"), 422),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_sentence(form: Form, status: int) -> None:
    asked = tracer(shop())
    with pytest.raises(PageError) as refused:
        await asked.answer(form)
    asked.close()
    assert refused.value.status == status
    assert str(refused.value)


class Gate(dict[Any, Any]):
    """Inputs over which work stands still until it is let on."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def keys(self) -> Any:
        assert self.open.wait(30)
        return super().keys()


async def test_loop_goes_on_while_a_trace_is_worked_out_and_few_may_wait() -> None:
    gate = Gate()
    asked = tracer(SimpleNamespace(inputs=lambda: gate))
    waiting = [asyncio.ensure_future(asked.answer(ADMIN)) for _ in range(4)]
    await asyncio.sleep(0.05)
    with pytest.raises(PageError) as refused:
        await asked.answer(ADMIN)
    assert refused.value.status == 429
    assert not any(each.done() for each in waiting)
    gate.open.set()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [each.status for each in ended if isinstance(each, PageError)] == [422] * 4
    with pytest.raises(PageError) as refused:
        await asked.answer(ADMIN)
    assert refused.value.status == 422, "places are given back"
    asked.close()


async def test_a_trace_whose_asker_has_gone_keeps_its_place_until_it_is_done() -> None:
    gate = Gate()
    asked = tracer(SimpleNamespace(inputs=lambda: gate))
    for _ in range(4):
        gone = asyncio.ensure_future(asked.answer(ADMIN))
        await asyncio.sleep(0.02)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
    with pytest.raises(PageError) as refused:
        await asked.answer(ADMIN)
    assert refused.value.status == 429
    gate.open.set()
    asked.close()


def test_mirror_follows_what_comes_changes_and_goes() -> None:
    mirror, one, two = Mirror(), ("Kind", "a", "one"), ("Kind", "a", "two")
    engine = mirror.follow({one: "1", two: "2"})
    assert mirror.follow({two: "3"}) is engine
    assert engine.inputs() == {two: "3"}


def test_an_object_that_cannot_be_taken_in_keeps_nobody_else_out() -> None:
    class Unequal:
        def __eq__(self, other: object) -> bool:
            raise ValueError

        __hash__ = None  # type: ignore[assignment]

    mirror, one, two = Mirror(), ("Kind", "a", "one"), ("Kind", "a", "two")
    mirror.follow({one: Unequal()})
    assert mirror.follow({one: Unequal(), two: "2"}).peek(two) == "2"


def test_connected_proxies_are_compiled_for_as_they_describe_themselves() -> None:
    front = proxy("shop", "front-0", "10.0.0.1", dialect="istio")
    world = build_world(shop(), State({}, {"front-0.shop": front}, {}, {}), NOW)
    assert world.holdings(world.find("front-0.shop")).dialect == "istio"
    assert world.holdings(world.find("cart-v1-0.shop")).dialect == "envoy"


def test_a_proxy_without_a_pod_stands_beside_the_pods() -> None:
    machine = proxy("shop", "vm-0", "10.9.0.1", labels={"app": "vm"}, SERVICE_ACCOUNT="vm")
    world = build_world(shop(), State({}, {"vm-0.shop": machine}, {}, {}), NOW)
    found = world.find("vm-0.shop")
    assert (found.account, found.proxy, found.addresses) == ("vm", "sidecar", ("10.9.0.1",))
    assert len(world.pods) == 4


async def test_proxies_on_the_way_that_refuse_something_are_named() -> None:
    refusing = member(7, **{CLUSTER: Rejection(code=13, message="no")})
    asked = tracer(shop(), refusing)
    (warning,) = (await asked.answer(Form(source="crowd-0007.crowd", url="http://cart.shop:8080/")))["warnings"]
    asked.close()
    assert warning.startswith("crowd-0007.crowd has refused what it was sent")
    assert "CDS: Internal:no" in warning


def test_proxies_elsewhere_are_not_named() -> None:
    found = Trace(
        steps=(Step(side="a.b", link="route", title="x"),),
        outcome="delivered",
        status=200,
        flag="-",
        details="",
        certain=True,
    )
    assert describe(found, {"c.d": "CDS: no"})["warnings"] == []


@pytest.mark.parametrize(
    "form",
    [
        b"[]",
        b'{"source": "a"}',
        b'{"source": "a", "url": "b", "more": 1}',
        b'{"source": "a", "url": "b", "answers": 9999}',
        b'{"source": "a", "url": "b", "takes": -1}',
        b'{"source": "a", "url": "b", "at_once": 99999999}',
        b'{"source": "a", "url": "' + b"x" * 9000 + b'"}',
    ],
)
def test_forms_out_of_bounds_are_refused(form: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(form, type=Form)
