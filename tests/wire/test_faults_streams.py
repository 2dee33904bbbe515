"""Peers that misbehave on a real stream: they cost bounded work, and nobody else waits for them."""

import asyncio

import grpc
import pytest
from ads_server import QUIET, serve
from adsclient import Client, node
from eventually import eventually
from tcp_gate import Gate

from mizzen import protos
from mizzen.agent import control_plane
from mizzen.compile.resource import CLUSTER
from mizzen.settings import Push, Xds

_discovery = protos.package("envoy.service.discovery.v3")
DELTA = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
LARGE = [(CLUSTER, f"c{n}", "x" * 50_000) for n in range(40)]
ONE_AT_A_TIME = Push(debounce_after=QUIET, throttle=1)


@pytest.fixture
def gate():
    made = Gate("127.0.0.1", 0)
    yield made
    made.close()


@pytest.mark.parametrize("changes", ["", "abc"], ids=["at rest", "while it is written to"])
async def test_a_peer_that_has_fallen_silent_is_given_up_and_comes_back(gate, changes):
    """No packet says that it has gone, as where a machine or a firewall between both has."""
    xds = Xds(keepalive_interval=1.0, keepalive_timeout=5.0, stop_grace=0.1)
    async with (
        serve(LARGE, push=ONE_AT_A_TIME, xds=xds) as serving,
        Client(serving.target, node=node("other")) as other,
    ):
        await other.subscribe(CLUSTER)
        await other.read_acked()
        await asyncio.to_thread(gate.lead_to, ("127.0.0.1", serving.port))
        async with Client(gate.address, node=node("silent")) as silent:
            await silent.subscribe(CLUSTER)
            await silent.read_acked()
            await silent.read_nothing(1.0)  # Nor is any ping of gRPC's own on its way.
            gate.hold()
            for content in changes:
                serving.set(CLUSTER, "c0", content * 50_000)
                assert (await other.read_acked()).names == ["c0"]
            await eventually(lambda: serving.discovery.connections.find("silent") is None)
            versions = dict(silent.versions[CLUSTER])
        serving.set(CLUSTER, "c0", "d" * 50_000)
        assert (await other.read_acked()).names == ["c0"]
        async with Client(serving.target, node=node("silent")) as again:
            again.versions[CLUSTER] = versions
            await again.resume(CLUSTER)
            assert (await again.read_acked()).names == ["c0"]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_agent_gives_up_a_control_plane_that_has_fallen_silent(gate):
    async with serve(LARGE) as serving:
        await asyncio.to_thread(gate.lead_to, ("127.0.0.1", serving.port))
        async with control_plane.open_channel(control_plane.Endpoint(address=gate.address, tls=False)) as channel:
            call = channel.stream_stream(DELTA)()
            first = _discovery.DeltaDiscoveryRequest(type_url=CLUSTER, node={"id": node()["id"]})
            await call.write(first.SerializeToString())
            assert await call.read() is not grpc.aio.EOF
            await asyncio.sleep(1)  # Until no ping of gRPC's own is on its way.
            gate.hold()
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                # Half a minute until it asks, ten seconds for the answer; without those, a minute more.
                async with asyncio.timeout(70):
                    await call.read()
            assert ended.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.usefixtures("patient")
async def test_a_client_that_rejects_everything_is_sent_each_change_once_and_holds_up_nobody():
    async with (
        serve(LARGE[:3], push=ONE_AT_A_TIME) as serving,
        Client(serving.target, node=node("bad")) as bad,
        Client(serving.target, node=node("good")) as good,
    ):
        for client in (bad, good):
            await client.subscribe(CLUSTER)
        await bad.nack(await bad.read())
        await good.read_acked()
        for number in range(20):
            serving.set(CLUSTER, "c0", str(number))
            assert (await good.read_acked()).names == ["c0"]
            answer = await bad.read()
            assert answer.names == ["c0", "c1", "c2"], "what is owed comes along"
            await bad.nack(answer)
        await bad.read_nothing()
        serving.set(CLUSTER, "c0", "last")
        await bad.read_acked()
        await good.read_acked()
        assert bad.held == good.held


async def test_what_a_client_that_does_not_read_has_missed_is_one_response():
    window = (("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0))
    async with serve(LARGE, push=ONE_AT_A_TIME) as serving:
        stuck = Client(serving.target, node=node("stuck"), reads=False)
        stuck.options = (*stuck.options, *window)
        async with stuck, Client(serving.target, node=node("quick")) as quick:
            await stuck.subscribe(CLUSTER)
            await eventually(lambda: serving.sent(CLUSTER))
            await quick.subscribe(CLUSTER)
            await quick.read_acked()
            for number in range(100):
                serving.set(CLUSTER, f"c{number % 10}", f"{number:09}" * 5_000)
                await quick.read_acked()
            watch = serving.discovery.connections.find("stuck").session.watches[CLUSTER]
            assert len(watch.in_flight) == 1
            stuck.start_reading()
            assert len((await stuck.read_acked()).names) == 40
            assert (await stuck.read_acked()).names == [f"c{n}" for n in range(10)]
            await stuck.read_nothing()
            assert stuck.held == quick.held
