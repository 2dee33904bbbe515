"""Traces over the control plane's objects: by a process beside it, bounded, as connected proxies really are."""

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import pytest
from crowds import member
from eventually import eventually
from golden import case_names, engine_of, load_case
from meshes import mesh_of, proxy
from ui_mesh import HOSTILE, RULES, SERVICES, pods

from mizzen.compile.resource import CLUSTER
from mizzen.control.debug.console import PageError
from mizzen.control.ui import trace_messages
from mizzen.control.ui.trace_messages import Changes, Question, find_changes
from mizzen.control.ui.trace_worker import Mirror, answer, describe, serve
from mizzen.control.ui.tracing import WAITING, WORKER, Form, Tracer
from mizzen.diagnose.trace.verdict import Step, Trace
from mizzen.incremental import Engine
from mizzen.sources.origins import Origin
from mizzen.xds.requests import Rejection

NOW = 1_767_225_600.0
ADMIN = Form(source="front-0.shop", url="http://cart.shop:8080/admin")
DEAF = (sys.executable, "-c", "import time; time.sleep(600)")
"""A worker that never answers."""


def shop(*more: str) -> Engine:
    return mesh_of(pods(), SERVICES, RULES, *more)


def mirror_of(engine: Engine, proxies: Mapping[str, Any] | None = None) -> Mirror:
    """A mirror that was told everything."""
    mirror = Mirror()
    for changes in find_changes({}, {"inputs": engine.inputs(), "proxies": proxies or {}}):
        mirror.follow(changes)
    return mirror


# -- what the worker says ---------------------------------------------------------------------------------------------


def test_connected_proxies_are_compiled_for_as_they_describe_themselves() -> None:
    front = proxy("shop", "front-0", "10.0.0.1", dialect="istio")
    world = mirror_of(shop(), {"front-0.shop": front}).world(NOW)
    speaks_istio = {
        name: "istio.metadata_exchange" in str(dict(world.holdings(world.find(f"{name}.shop")).listeners))
        for name in ("front-0", "cart-v1-0")
    }
    assert speaks_istio == {"front-0": True, "cart-v1-0": False}


def test_a_pod_whose_proxy_is_connected_has_one_whatever_its_manifest_shows() -> None:
    bare = mesh_of(pods().replace("name: istio-proxy", "name: something-else"), SERVICES, RULES)
    world = mirror_of(bare, {"front-0.shop": proxy("shop", "front-0", "10.0.0.1")}).world(NOW)
    assert world.find("front-0.shop").proxy == "sidecar"
    assert world.find("cart-v1-0.shop").proxy == ""


def test_a_proxy_without_a_pod_stands_beside_the_pods() -> None:
    machine = proxy("shop", "vm-0", "10.9.0.1", labels={"app": "vm"}, SERVICE_ACCOUNT="vm")
    world = mirror_of(shop(), {"vm-0.shop": machine}).world(NOW)
    found = world.find("vm-0.shop")
    assert (found.account, found.proxy, found.addresses) == ("vm", "sidecar", ("10.9.0.1",))
    assert len(world.pods) == 4


def test_what_was_compiled_stays_until_the_mesh_changes() -> None:
    mirror = mirror_of(shop())
    world = mirror.world(NOW)
    assert mirror.world(NOW + 60) is world
    assert world.now is not None
    assert world.now.timestamp() == NOW + 60
    mirror.follow(Changes("inputs", {("Service", "shop", "cart"): None}))
    assert mirror.world(NOW) is not world


def test_an_object_that_cannot_be_taken_in_keeps_nobody_else_out() -> None:
    class Unequal:
        def __eq__(self, other: object) -> bool:
            raise ValueError

        __hash__ = None  # type: ignore[assignment]

    one, two = ("Kind", "a", "one"), ("Kind", "a", "two")
    mirror = Mirror()
    mirror.follow(Changes("inputs", {one: Unequal()}))
    mirror.follow(Changes("inputs", {one: Unequal(), two: "2"}))
    assert mirror.engine.peek(two) == "2"


def test_proxies_on_the_way_that_refuse_something_are_named_and_no_others() -> None:
    found = Trace(
        steps=(Step(side="a.b", link="route", title="x"), Step(side="a.b", link="cluster", title="y")),
        outcome="delivered",
        status=200,
        flag="-",
        details="",
        certain=True,
    )
    assert describe(found, {"c.d": "CDS: no"})["warnings"] == []
    (warning,) = describe(found, {"a.b": "CDS: no"})["warnings"]
    assert warning == "a.b has refused what it was sent, and works by older configuration: CDS: no"


def test_a_fault_of_ours_is_an_answer_too(capsys: pytest.CaptureFixture[str]) -> None:
    broken: Any = Question(request=ADMIN.request(), now="never", refusals={})  # type: ignore[arg-type]
    status, text = answer(Mirror(), broken)["refused"]
    assert status == 500
    assert text.startswith("the trace failed: TypeError")
    assert "Traceback" in capsys.readouterr().err


# -- what it is told --------------------------------------------------------------------------------------------------


def test_only_what_differs_is_told_in_pieces() -> None:
    same, old, new = object(), object(), object()
    one, two, three, four = (("Kind", "a", name) for name in ("one", "two", "three", "four"))
    before: Any = {"inputs": {one: same, two: old, three: old}, "places": {one: Origin("a", 1)}}
    now: Any = {"inputs": {one: same, two: new, four: new}, "places": {one: Origin("a", 1)}}
    (changes,) = find_changes(before, now)
    assert changes == Changes("inputs", {three: None, two: new, four: new})
    many = {("Kind", "a", str(number)): number for number in range(1001)}
    assert [len(piece.entries) for piece in find_changes({}, {"inputs": many})] == [200] * 5 + [1]


def test_worker_ends_when_the_control_plane_has_gone() -> None:
    sink = io.BytesIO()
    serve(io.BytesIO(b""), sink)
    serve(io.BytesIO(trace_messages.encode(Changes("inputs", {}))[:-3][:6]), sink)
    assert sink.getvalue() == b""


def test_objects_of_every_kind_arrive_as_they_were() -> None:
    for name in case_names():
        inputs = engine_of(load_case(name)).inputs()
        told = trace_messages.read(io.BytesIO(trace_messages.encode(Changes("inputs", inputs))))
        assert told == Changes("inputs", inputs), name


# -- the process ------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def tracer(engine: Engine, *connected: Any, **options: Any) -> AsyncIterator[Tracer]:
    connections: Any = list(connected)
    key = next(iter(engine.keys("AuthorizationPolicy")), None)
    asked = Tracer(engine, connections, lambda: {key: Origin("rules.yaml", 7)}, clock=lambda: NOW, **options)
    try:
        yield asked
    finally:
        await asked.close()


async def refusal(asked: Tracer, form: Form = ADMIN) -> tuple[int, str]:
    with pytest.raises(PageError) as refused:
        await asked.answer(form)
    return refused.value.status, str(refused.value)


async def test_verdict_is_that_of_the_objects_of_now() -> None:
    engine = shop()
    runs = engine.runs
    refusing = member(7, **{CLUSTER: Rejection(code=13, message="no")})
    async with tracer(engine, refusing) as asked:
        found = await asked.answer(ADMIN)
        assert (found["outcome"], found["status"], found["warnings"]) == ("denied", 403, [])
        assert found["cause"] == {
            "kind": "AuthorizationPolicy",
            "namespace": "shop",
            "name": "no-admin",
            "file": "rules.yaml",
            "line": 7,
        }
        engine.remove(next(iter(engine.keys("AuthorizationPolicy"))))
        assert (await asked.answer(ADMIN))["outcome"] == "delivered"
        (warning,) = (await asked.answer(msgspec.structs.replace(ADMIN, source="crowd-0007.crowd")))["warnings"]
        assert "CDS: Internal:no" in warning
        assert (await refusal(asked, Form(source=HOSTILE, url=f"http://cart/{HOSTILE}")))[0] == 422
    assert engine.runs == runs, "the engine of the event loop is left alone"


async def test_loop_goes_on_while_a_trace_is_worked_out_and_few_may_wait() -> None:
    async with tracer(shop(), command=DEAF, patience=600.0) as asked:
        waiting = [asyncio.ensure_future(asked.answer(ADMIN)) for _ in range(WAITING)]
        await eventually(lambda: asked._asked == WAITING)
        assert (await refusal(asked))[0] == 429
        for each in waiting:
            each.cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)


async def test_trace_that_takes_too_long_is_ended_with_its_process() -> None:
    before = children()
    async with tracer(shop(), command=DEAF, patience=0.2) as asked:
        assert await refusal(asked) == (504, "no verdict within 0 s")
        assert children() <= before


async def test_what_lies_around_is_not_imported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    async with tracer(shop()) as asked:
        assert (await asked.answer(ADMIN))["outcome"] == "denied"


async def test_process_that_ends_is_followed_by_another(tmp_path: Any) -> None:
    before, mark = children(), tmp_path / "been"
    script = "import os, sys; m = sys.argv[1]; e = os.path.exists(m); open(m, 'w'); e and os.execv(sys.argv[2], sys.argv[2:])"
    async with tracer(shop(), command=(sys.executable, "-c", script, str(mark), *WORKER)) as asked:
        assert await refusal(asked) == (500, "the trace ended before there was a verdict")
        assert (await asked.answer(ADMIN))["outcome"] == "denied"
        assert len(children()) == len(before) + 1
    assert children() == before


def children() -> set[str]:
    """The processes that this one has started."""
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as listed:
        return set(listed.read().split())


# -- forms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        Form(source="front-0.shop", url="nonsense"),
        Form(source="front-0.shop", url="http://cart:99999/"),
        Form(source="front-0.shop", url="http://cart/", headers=("nonsense",)),
        Form(source="front-0.shop", url="http://[::1"),
        Form(source="front-0.shop", url="http://cart/", address="banana"),
        Form(source="front-0.shop", url="http://cart/", method="GE\nT"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_anybody_works(form: Form) -> None:
    async with tracer(shop(), command=("/nowhere",)) as asked:
        status, text = await refusal(asked, form)
    assert status == 400
    assert text


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
