"""A stream around its session, with a transport of two queues."""

import asyncio
import contextlib
from collections.abc import Mapping

import mesh_of_resources
import pytest
import virtual_loop
from eventually import eventually
from mesh_of_resources import build, key

from mizzen import protos
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET
from mizzen.incremental import Engine
from mizzen.model.proxy import Proxy
from mizzen.observe import REGISTRY
from mizzen.transport import Gone
from mizzen.xds import metrics
from mizzen.xds.delta import DeltaSession
from mizzen.xds.identity import Refused
from mizzen.xds.pace import Pace
from mizzen.xds.push import Throttle
from mizzen.xds.requests import Rejection, Request
from mizzen.xds.responses import Responses
from mizzen.xds.roots import Push, Roots
from mizzen.xds.session import Session
from mizzen.xds.sotw import SotwSession
from mizzen.xds.stream import Stream

_discovery = protos.package("envoy.service.discovery.v3")
PROXY = Proxy(id="sidecar~1.1.1.1~a.shop~x", kind="sidecar", ip_addresses=(), name="a", namespace="shop")


def request_bytes(type_url: str) -> bytes:
    message = _discovery.DeltaDiscoveryRequest(type_url=type_url)
    return protos.encode(message)


async def answer_debug(request: Request) -> bytes:
    """What the debug console says to everything."""
    return b"debug " + request.type_url.encode()


class Setting:
    """One stream over a small mesh."""

    def __init__(self, pace: Pace | None = None, variant: type[Session] = DeltaSession) -> None:
        inputs = [(type_url, name, "1") for type_url in (CLUSTER, ENDPOINT, ROUTE) for name in "ab"]
        self.generator = mesh_of_resources.generator(Engine(), inputs)
        self.roots = Roots(self.generator)
        self.session = variant(Responses(), mesh_of_resources.SERVED, "t/")
        self.stream = Stream("a.shop-1", PROXY, self.session, self.roots, Throttle(1), pace or Pace())
        self.requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.responses: asyncio.Queue[bytes] = asyncio.Queue()

    def change(self, type_url: str, name: str, content: str, more: Mapping[tuple[str, str], str] | None = None) -> None:
        """Commit a change, and more at once, as the pusher does."""
        changes = {(type_url, name): content, **(more or {})}
        self.generator.apply({key(*which): build(*which, found) for which, found in changes.items()})
        for follower in self.roots.take_reached():
            for followed in follower.stale():
                followed.fetch()
            if follower.is_due:
                follower.push(Push(since=0.0, reasons=frozenset({"config"})))

    async def quiet(self) -> None:
        """Return when the stream has sent all that is due."""
        await eventually(lambda: self.stream._sender is None)

    @contextlib.asynccontextmanager
    async def running(self):
        serving = self.stream.run(self.requests.get, self.responses.put, answer_debug)
        task = asyncio.get_running_loop().create_task(serving)
        try:
            yield task
        finally:
            self.requests.put_nowait(None)
            await asyncio.gather(task, return_exceptions=True)
            self.stream.leave()


class Interrupting(Pace):
    """Lets something happen at a turn, once."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0
        self.at = 0
        self.when = lambda: self.turns == self.at
        self.happens = lambda: None

    async def turn(self) -> None:
        self.turns += 1
        if self.when():
            happens, self.happens = self.happens, lambda: None
            happens()


def decode(response: bytes):
    return _discovery.DeltaDiscoveryResponse.FromString(response)


async def test_what_is_told_in_one_go_belongs_to_one_state_of_the_mesh():
    pace = Interrupting()
    setting = Setting(pace)
    for type_url, names in ((CLUSTER, ()), (ENDPOINT, ("a", "b"))):
        setting.stream.take(Request(type_url=type_url, names=names))

    def commit() -> None:
        setting.change(CLUSTER, "a", "2")
        setting.change(ENDPOINT, "a", "2")

    pace.at, pace.happens = 2, commit  # Between fetching the clusters and fetching their endpoints.
    async with setting.running():
        clusters, endpoints = [decode(await setting.responses.get()) for _ in range(2)]
    assert {r.version for r in clusters.resources if r.name == "a"} == {_version(CLUSTER, "a", "2")}
    assert {r.version for r in endpoints.resources if r.name == "a"} == {_version(ENDPOINT, "a", "2")}


def _version(type_url: str, name: str, content: str) -> str:
    return mesh_of_resources.Resource(name, build(type_url, name, content)).version


@pytest.mark.parametrize("changed_after", [pytest.param(0.0, id="at once"), pytest.param(3.0, id="later")])
@pytest.mark.parametrize(
    ("acked_after", "least", "most"),
    [pytest.param(5.0, 5.0, 5.0, id="until it is"), pytest.param(60.0, 15.0, 25.0, id="as long as secrets are")],
)
def test_a_client_that_warms_a_cluster_slowly_is_waited_for(
    acked_after: float, least: float, most: float, changed_after: float
):
    """An Envoy gives up a secret after 15 s; told another version of its cluster before, it may crash."""

    async def scenario() -> float:
        setting, loop = Setting(), asyncio.get_running_loop()

        async def next_of(type_url: str):
            while (response := decode(await setting.responses.get())).type_url != type_url:
                pass
            return response

        async with setting.running():
            for type_url in (CLUSTER, LISTENER):
                setting.stream.take(Request(type_url=type_url))
                first = await next_of(type_url)
                setting.stream.take(Request(type_url=type_url, nonce=first.nonce))
            setting.change(CLUSTER, "a", "2", {(CLUSTER, "new"): "1", (LISTENER, "a"): "2"})
            second = await next_of(CLUSTER)
            await asyncio.sleep(changed_after)
            began = loop.time()
            setting.change(CLUSTER, "a", "3")
            loop.call_later(acked_after, setting.stream.take, Request(type_url=CLUSTER, nonce=second.nonce))
            third = await next_of(CLUSTER)
            assert [resource.name for resource in third.resources] == ["a"]
            return loop.time() - began

    assert least <= virtual_loop.run(scenario()) <= most + 0.1


async def test_roots_follow_the_subscription():
    setting = Setting()
    stream = setting.stream
    for names, gone, roots in ((("a",), (), 1), (("b",), (), 1), ((), ("a", "b"), 0)):
        stream.take(Request(type_url=ROUTE, names=names, unsubscribe=gone))
        assert len(setting.roots) == roots
    stream.take(Request(type_url=CLUSTER, names=("*", "a")))
    assert len(setting.roots) == 2, "everything, and the name besides"
    stream.leave()
    assert len(setting.roots) == 0


async def test_everything_and_a_name_are_answered_together():
    setting = Setting()
    setting.stream.take(Request(type_url=CLUSTER, names=("*", "a", "nope")))
    async with setting.running():
        message = decode(await setting.responses.get())
    assert [r.name for r in message.resources] == ["a", "b"]
    assert list(message.removed_resources) == ["nope"]


async def test_a_name_beside_everything_takes_nothing_from_everything():
    setting = Setting()
    setting.stream.take(Request(type_url=CLUSTER))
    async with setting.running():
        first = decode(await setting.responses.get())
        setting.stream.take(Request(type_url=CLUSTER, nonce=first.nonce, names=("a",)))
        second = decode(await setting.responses.get())
        setting.stream.take(Request(type_url=CLUSTER, nonce=second.nonce))
        setting.change(CLUSTER, "b", "2")
        async with asyncio.timeout(60):
            third = decode(await setting.responses.get())
    assert [r.name for r in third.resources] == ["b"]


async def test_who_asked_for_what_could_not_be_compiled_gets_it_once_it_can():
    setting = Setting()
    setting.generator.apply({key(CLUSTER, "a"): b"broken"})
    setting.stream.take(Request(type_url=CLUSTER))
    setting.stream.take(Request(type_url=ROUTE, names=("a",)))
    async with setting.running():
        assert decode(await setting.responses.get()).type_url == ROUTE, "which is no less served for that"
        setting.change(CLUSTER, "a", "1")
        async with asyncio.timeout(60):
            late = decode(await setting.responses.get())
    assert [r.name for r in late.resources] == ["a", "b"]


async def test_secrets_that_are_given_up_while_they_are_fetched_end_no_stream():
    pace = Interrupting()
    setting = Setting(pace, SotwSession)
    for type_url, names in ((CLUSTER, ()), (SECRET, ("a",))):
        setting.stream.take(Request(type_url=type_url, names=names))
    pace.when, pace.happens = (
        lambda: not setting.session.due,
        lambda: setting.stream.take(Request(type_url=SECRET)),
    )
    async with setting.running() as task, asyncio.timeout(60):
        response = _discovery.DiscoveryResponse.FromString(await setting.responses.get())
        assert response.type_url == CLUSTER
        setting.requests.put_nowait(None)
        await task


async def test_changes_meanwhile_merge_into_one_response():
    setting = Setting()
    setting.stream.take(Request(type_url=CLUSTER))
    for content in "234":
        setting.change(CLUSTER, "a", content)
    async with setting.running():
        message = decode(await setting.responses.get())
        assert {r.version for r in message.resources if r.name == "a"} == {_version(CLUSTER, "a", "4")}
        await setting.quiet()
        assert setting.responses.empty()


async def test_a_broken_message_ends_the_stream_with_a_reason():
    setting = Setting()
    async with setting.running() as task:
        setting.requests.put_nowait(b"\xff\xff\xff")
        with pytest.raises(Refused, match="not a discovery request") as refused:
            await task
        assert refused.value.code == "INVALID_ARGUMENT"


def errors() -> float:
    return REGISTRY.get_sample_value("pilot_xds_pushes", {"type": "cds_senderr"}) or 0.0


async def test_a_client_that_goes_away_while_it_is_written_to_ends_the_stream():
    setting = Setting()
    setting.stream.take(Request(type_url=CLUSTER))
    before = errors()

    async def write(_: bytes) -> None:
        raise Gone("away")

    with pytest.raises(Gone):
        await setting.stream.run(setting.requests.get, write, answer_debug)
    assert errors() == before + 1


async def test_what_a_client_has_rejected_is_forgotten_though_its_stream_is_cancelled_as_it_ends():
    """gRPC says of a client that has gone that there is no more to read, and cancels the handler, one after the other."""
    setting = Setting()
    series = {"node": PROXY.id, "err": "Internal"}
    writing, ending, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def write(_: bytes) -> None:
        writing.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()

    async with asyncio.timeout(60):
        running = asyncio.create_task(setting.stream.run(setting.requests.get, write, answer_debug))
        setting.stream.take(Request(type_url=CLUSTER))
        await writing.wait()
        setting.stream.take(Request(type_url=CLUSTER, nonce="t/1", rejection=Rejection(code=13, message="no")))
        assert REGISTRY.get_sample_value("pilot_xds_cds_reject", series) == 1
        setting.requests.put_nowait(None)
        await ending.wait()
        running.cancel()
        await asyncio.wait((running,))
        may_end.set()
        setting.stream.leave()
    assert REGISTRY.get_sample_value("pilot_xds_cds_reject", series) is None


async def test_closing_ends_the_stream():
    setting = Setting()
    async with setting.running() as task:
        await asyncio.sleep(0)
        setting.stream.close()
        async with asyncio.timeout(60):
            await task


async def test_what_is_closed_before_it_runs_ends_at_once():
    setting = Setting()
    setting.stream.close()
    async with setting.running() as task, asyncio.timeout(60):
        await task


async def test_debug_requests_are_answered_beside_the_subscriptions():
    setting = Setting()
    async with setting.running():
        setting.requests.put_nowait(request_bytes(CLUSTER))
        first = await setting.responses.get()
        before = dict(setting.session.watches)
        nonce = before[CLUSTER].nonce
        setting.requests.put_nowait(request_bytes("istio.io/debug/syncz"))
        assert await setting.responses.get() == b"debug istio.io/debug/syncz"
        assert first != b""
        assert setting.session.watches == before, "no watch begins"
        assert before[CLUSTER].nonce == nonce, "no nonce changes"


async def test_a_push_has_converged_with_its_last_response_though_a_part_that_waited_came_to_nothing():
    setting = Setting()
    async with setting.running():
        for type_url, names in ((CLUSTER, ()), (ROUTE, ("a",))):
            setting.stream.take(Request(type_url=type_url, names=names))
            first = decode(await setting.responses.get())
            setting.stream.take(Request(type_url=type_url, nonce=first.nonce))
        await setting.quiet()
        before = converged()
        setting.change(CLUSTER, "new", "1", {(ROUTE, "a"): "2"})
        clusters = decode(await setting.responses.get())
        setting.change(ROUTE, "a", "1")
        setting.stream.take(Request(type_url=CLUSTER, nonce=clusters.nonce))
        await setting.quiet()
        assert setting.responses.empty()
        assert converged() - before == 1


def converged() -> float:
    """Pushes of which the time was taken."""
    (count,) = (s.value for m in metrics.CONVERGENCE.collect() for s in m.samples if s.name.endswith("_count"))
    return float(count)
