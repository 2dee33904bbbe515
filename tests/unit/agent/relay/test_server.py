"""The relay between a stream like Envoy's and a small control plane, both over real gRPC."""

import asyncio
import contextlib
import logging

import envoy_resources
import faults
import grpc
import grpc.aio
import pytest
import tiny_control
from adsclient import CHANNEL_OPTIONS

from mizzen import protos
from mizzen.agent import control_plane, metrics
from mizzen.agent.relay import server as relay
from mizzen.agent.relay.exchange import Tap
from mizzen.agent.relay.journal import Journal
from mizzen.agent.relay.saved import CLUSTER, LISTENER
from mizzen.errors import DecodeError

NODE = {"id": "sidecar~10.1.1.10~front-0.web~web.svc.cluster.local"}
ROUTE = protos.TYPE_PREFIX + "envoy.config.route.v3.RouteConfiguration"
NAME_TABLE = protos.TYPE_PREFIX + "istio.networking.nds.v1.NameTable"

_discovery = protos.package("envoy.service.discovery.v3")
_route_v3 = protos.package("envoy.config.route.v3")
_nds = protos.package("istio.networking.nds.v1")


class Envoy:
    """Envoy's end of one ADS stream."""

    def __init__(self, channel) -> None:
        self._call = channel.stream_stream(f"/{relay.SERVICE}/{relay.METHOD}")()

    async def ask(self, type_url: str, *names: str, **fields) -> None:
        request = _discovery.DeltaDiscoveryRequest(type_url=type_url, resource_names_subscribe=names, **fields)
        await self._call.write(protos.encode(request))

    async def acknowledge(self, response, **fields) -> None:
        await self.ask(response.type_url, response_nonce=response.nonce, **fields)

    async def read(self):
        async with asyncio.timeout(60):
            data = await self._call.read()
        assert data is not grpc.aio.EOF
        return _discovery.DeltaDiscoveryResponse.FromString(data)

    async def written_to(self) -> None:
        """Return when a response begins to come, without reading it."""
        async with asyncio.timeout(60):
            await self._call.initial_metadata()

    async def start(self):
        """CDS then LDS as Envoy does; the last responses of both, acknowledged."""
        responses = []
        for type_url in (CLUSTER, LISTENER):
            await self.ask(type_url, node=NODE if type_url == CLUSTER else None)
            responses.append(await self.read())
            await self.acknowledge(responses[-1])
        return responses

    async def ended(self) -> str:
        async with asyncio.timeout(60):
            assert await self._call.code() is grpc.StatusCode.UNAVAILABLE
            return await self._call.details()

    async def silent(self, seconds: float = 0.3) -> bool:
        return not self._call.done() and not await _reads(self._call, seconds)

    def leave(self) -> None:
        self._call.cancel()


async def _reads(call, seconds: float) -> bool:
    reading = asyncio.ensure_future(call.read())
    done, _ = await asyncio.wait((reading,), timeout=seconds)
    if not done:
        call.cancel()
        await asyncio.wait((reading,))
    return bool(done)


class Pod:
    """A relay in a folder; it may be run several times."""

    def __init__(self, folder, control: tiny_control.TinyControl) -> None:
        self.folder = folder
        self.control = control
        self.tables: list[dict[str, list[str]]] = []
        self.rewrites: dict[str, relay.Rewrite] = {}
        (folder / "root.pem").write_bytes(control.root.pem)
        (folder / "token").write_text(tiny_control.TOKEN)

    @contextlib.asynccontextmanager
    async def running(self, **timing):
        endpoint = control_plane.Endpoint(
            address=self.control.address,
            roots=(self.folder / "root.pem",),
            server_name=tiny_control.SERVER_NAME,
            token=self.folder / "token",
        )
        made = relay.Relay(
            endpoint,
            Journal(self.folder / "last", NODE["id"]),
            taps=[Tap(type_url=NAME_TABLE, deliver=self._deliver)],
            rewrites=self.rewrites,
            timing=relay.Timing(**{"first_delay": 0.02, "longest_delay": 0.1, "patience": 1.0, "trial": 5.0, **timing}),
        )
        self.relay = made
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(made.run(self.folder / "XDS", uid=None, ready=ready))
            await ready.wait()
            # A relay that runs again is reached anew, not over the connection to the one before.
            path = self.folder / "XDS"
            async with grpc.aio.insecure_channel(f"unix:{path}", options=CHANNEL_OPTIONS) as channel:
                yield channel
            task.cancel()

    def _deliver(self, tables) -> None:
        for data in tables:
            table = _nds.NameTable.FromString(data).table
            if "refused.example" in table:
                raise DecodeError("refused")
            self.tables.append({name: list(info.ips) for name, info in table.items()})


@pytest.fixture
async def control():
    control = tiny_control.TinyControl()
    await control.start()
    await control.set(envoy_resources.build_cluster("cart"))
    await control.set(envoy_resources.build_listener("80", "0.0.0.0", 80, "cart"))
    yield control
    await control.stop()


@pytest.fixture
def pod(short_path, control):
    return Pod(short_path, control)


async def until(check) -> None:
    async with asyncio.timeout(60):
        while not check():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def failed_attempt() -> None:
    """Return when the relay has tried in vain to reach the control plane once more."""
    before = metrics.CONNECTION_FAILURES.value()
    await until(lambda: metrics.CONNECTION_FAILURES.value() > before)


async def test_requests_and_responses_pass_unchanged(pod, control) -> None:
    async with pod.running() as channel:
        envoy = Envoy(channel)
        clusters, listeners = await envoy.start()
        assert [resource.name for resource in clusters.resources] == ["cart"]
        assert [resource.name for resource in listeners.resources] == ["80"]
        await control.set(envoy_resources.build_cluster("more"))
        assert [resource.name for resource in (await envoy.read()).resources] == ["more"]
        envoy.leave()
    assert control.requests[0].node.id == NODE["id"]


async def test_envoy_that_goes_away_while_it_is_written_to_is_no_fault(pod, control, caplog) -> None:
    await control.set(envoy_resources.build_cluster("x" * 10_000_000))
    async with pod.running() as channel:
        for _ in range(10):
            envoy = Envoy(channel)
            await envoy.ask(CLUSTER, node=NODE)
            await envoy.written_to()
            envoy.leave()
    assert faults.logged(caplog, logging.ERROR) == []


def told_health(control) -> list[str]:
    """What a control plane was told of the workload: why it is not healthy, or nothing."""
    return [request.error_detail.message for request in control.requests_of("istio.v1.HealthInformation")]


async def test_health_follows_once_envoy_is_known_and_then_when_it_changes(pod, control) -> None:
    async with pod.running() as channel:
        envoy = Envoy(channel)
        pod.relay.say_health("starting")
        await envoy.ask(CLUSTER, node=NODE)
        await envoy.read()
        assert told_health(control) == []
        await envoy.ask(LISTENER)
        await until(lambda: told_health(control) == ["starting"])
        assert control.requests_of("istio.v1.HealthInformation")[0].error_detail.code == 13
        pod.relay.say_health("")
        await until(lambda: told_health(control) == ["starting", ""])
        assert not control.requests_of("istio.v1.HealthInformation")[1].HasField("error_detail")
        envoy.leave()


async def test_the_last_word_on_health_is_said_to_every_control_plane(pod, control) -> None:
    async with pod.running() as channel:
        first = Envoy(channel)
        await first.start()
        for why in ("one", "", "two"):
            pod.relay.say_health(why)
            await until(lambda why=why: told_health(control)[-1:] == [why])
        first.leave()
        control.requests.clear()
        second = Envoy(channel)
        await second.start()
        await until(lambda: told_health(control) == ["two"])
        second.leave()


async def test_a_type_that_is_rewritten_keeps_its_order_and_holds_up_no_other(pod, control) -> None:
    may_go_on, has_begun = asyncio.Event(), asyncio.Event()

    async def rename(data: bytes) -> bytes:
        has_begun.set()
        await may_go_on.wait()
        response = _discovery.DeltaDiscoveryResponse.FromString(data)
        for resource in response.resources:
            resource.name = f"new-{resource.name}"
        return protos.encode(response)

    pod.rewrites[ROUTE] = rename
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.start()
        await control.set(_route_v3.RouteConfiguration(name="b"))
        await envoy.ask(ROUTE, "a", "b")
        await has_begun.wait()
        await control.set(_route_v3.RouteConfiguration(name="a"))
        await control.set(envoy_resources.build_cluster("more"))
        assert (await envoy.read()).type_url == CLUSTER
        may_go_on.set()
        names = []
        while len(names) < 2:
            response = await envoy.read()
            assert response.type_url == ROUTE
            names += [resource.name for resource in response.resources]
            await envoy.acknowledge(response)
        assert names == ["new-b", "new-a"]
        await until(lambda: set(Journal(pod.folder / "last", NODE["id"]).load(ROUTE)) == set(names))
        envoy.leave()


async def test_what_cannot_be_rewritten_is_passed_on_as_it_came(pod, control) -> None:
    async def refuse(data: bytes) -> bytes:
        raise DecodeError("unreadable")

    pod.rewrites[ROUTE] = refuse
    await control.set(_route_v3.RouteConfiguration(name="a"))
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.start()
        await envoy.ask(ROUTE, "a")
        assert [resource.name for resource in (await envoy.read()).resources] == ["a"]
        envoy.leave()


async def test_end_of_the_control_plane_ends_the_stream_and_the_next_one_is_held(pod, control) -> None:
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.start()
        await control.stop()
        assert "control plane ended" in await envoy.ended()
        again = Envoy(channel)
        await again.ask(CLUSTER, node=NODE, initial_resource_versions={"cart": "old"})
        await again.ask(LISTENER, initial_resource_versions={"80": "old"})
        await failed_attempt()
        control.requests.clear()
        await control.start()
        assert {(await again.read()).type_url, (await again.read()).type_url} == {CLUSTER, LISTENER}
        own = [request for request in control.requests if request.type_url != NAME_TABLE]
        assert [dict(request.initial_resource_versions) for request in own] == [{"cart": "old"}, {"80": "old"}]
        again.leave()


async def test_settled_envoy_is_never_answered_from_the_journal(pod, control) -> None:
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.start()
        await until(lambda: Journal(pod.folder / "last", NODE["id"]).holds(LISTENER))
        await control.stop()
        await envoy.ended()
        again = Envoy(channel)
        await again.ask(CLUSTER, node=NODE)
        await failed_attempt()
        assert await again.silent()


async def test_new_envoy_lives_on_the_journal_until_the_control_plane_answers(pod, control) -> None:
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await control.set(_nds.NameTable(table={"cart": {"ips": ["10.0.0.1"]}}), NAME_TABLE)
        await envoy.start()
        await until(lambda: pod.tables)
        await until(lambda: Journal(pod.folder / "last", NODE["id"]).holds(LISTENER))
        envoy.leave()
    await control.stop()
    pod.tables.clear()
    async with pod.running() as channel:
        envoy = Envoy(channel)
        clusters, listeners = await envoy.start()
        assert [resource.name for resource in clusters.resources] == ["cart"]
        assert [resource.name for resource in listeners.resources] == ["80"]
        assert pod.tables == [{"cart": ["10.0.0.1"]}]
        control.refuse_streams = True
        await control.start()
        await until(lambda: control.refused > 1)
        control.refuse_streams = False
        assert await envoy.ended() == "the control plane is back"
        again = Envoy(channel)
        versions = {resource.name: resource.version for resource in clusters.resources}
        await again.ask(CLUSTER, node=NODE, initial_resource_versions=versions)
        await control.set(envoy_resources.build_cluster("more"))
        assert [resource.name for resource in (await again.read()).resources] == ["more"]
        again.leave()


async def test_control_plane_that_says_nothing_counts_as_away_for_a_new_envoy(pod, control) -> None:
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.start()
        await until(lambda: Journal(pod.folder / "last", NODE["id"]).holds(LISTENER))
        envoy.leave()
    control.silent = True
    async with pod.running(patience=0.2) as channel:
        envoy = Envoy(channel)
        clusters, _ = await envoy.start()
        assert [resource.name for resource in clusters.resources] == ["cart"]
        control.silent = False
        await control.set(envoy_resources.build_cluster("more"))
        assert await envoy.ended() == "the control plane is back"


async def test_refused_response_is_not_kept(pod, control, caplog) -> None:
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.start()
        await control.set(envoy_resources.build_cluster("bad"))
        bad = await envoy.read()
        await envoy.acknowledge(bad, error_detail={"code": 13, "message": "no such thing"})
        await control.set(envoy_resources.build_cluster("good"))
        good = await envoy.read()
        await envoy.acknowledge(good)
        journal = Journal(pod.folder / "last", NODE["id"])
        await until(lambda: "good" in Journal(pod.folder / "last", NODE["id"]).load(CLUSTER))
        assert "bad" not in journal.load(CLUSTER)
        assert "Envoy refused Cluster: no such thing" in caplog.text
        envoy.leave()


async def test_tap_is_served_beside_envoy_and_its_type_never_reaches_envoy(pod, control) -> None:
    table = {"cart": {"ips": ["10.0.0.1"]}}
    await control.set(_nds.NameTable(table=table), NAME_TABLE)
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.start()
        await until(lambda: pod.tables == [{"cart": ["10.0.0.1"]}])
        await until(lambda: len(control.requests_of("istio.networking.nds.v1.NameTable")) == 2)
        await control.set(_nds.NameTable(table={"refused.example": {"ips": ["10.0.0.1"]}}), NAME_TABLE)
        await until(lambda: len(control.requests_of("istio.networking.nds.v1.NameTable")) == 3)
        first, accepted, refused = control.requests_of("istio.networking.nds.v1.NameTable")
        assert first.response_nonce == ""
        assert accepted.response_nonce != ""
        assert not accepted.HasField("error_detail")
        assert refused.error_detail.message == "refused"
        assert await envoy.silent()


async def test_token_is_read_anew_for_every_connection(pod, control) -> None:
    (pod.folder / "token").unlink()
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.ask(CLUSTER, node=NODE)
        await failed_attempt()
        assert control.requests == []
        (pod.folder / "token").write_text(tiny_control.TOKEN)
        assert [resource.name for resource in (await envoy.read()).resources] == ["cart"]
        envoy.leave()


async def test_control_plane_of_another_root_is_not_believed(pod, control, caplog) -> None:
    (pod.folder / "root.pem").write_bytes(tiny_control.Root("other").pem)
    async with pod.running() as channel:
        envoy = Envoy(channel)
        await envoy.ask(CLUSTER, node=NODE)
        await until(lambda: "CERTIFICATE_VERIFY_FAILED" in caplog.text)
        assert control.requests == []
        (pod.folder / "root.pem").write_bytes(control.root.pem)
        assert [resource.name for resource in (await envoy.read()).resources] == ["cart"]
        envoy.leave()
