"""One attempt of the relay, between a control plane and an Envoy that take their time."""

import asyncio

import grpc
import grpc.aio

from mizzen import protos
from mizzen.agent.relay.exchange import Exchange, Inbox, Memory, Tap
from mizzen.agent.relay.journal import Journal
from mizzen.agent.relay.saved import CLUSTER
from mizzen.transport import Transport

TABLE = protos.TYPE_PREFIX + "istio.networking.nds.v1.NameTable"
ROUTE = protos.TYPE_PREFIX + "envoy.config.route.v3.RouteConfiguration"

_discovery = protos.package("envoy.service.discovery.v3")


class Upstream:
    """A call that answers these types in turn, takes no request any more, and ends when it is told to."""

    def __init__(self, *types: str) -> None:
        self._left = list(types)
        self.may_end = asyncio.Event()

    async def read(self) -> object:
        if self._left:
            return protos.encode(_discovery.DeltaDiscoveryResponse(type_url=self._left.pop(0), nonce="1"))
        await self.may_end.wait()
        return grpc.aio.EOF

    async def write(self, _: bytes) -> None:
        raise asyncio.InvalidStateError("RPC already finished.")

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    async def details(self) -> str:
        return "over"


class SlowEnvoy:
    """A stream to Envoy that, like gRPC's, takes one message at a time and refuses another one meanwhile."""

    def __init__(self, expected: int, call: Upstream) -> None:
        self.types: list[str] = []
        self._expected, self._call = expected, call
        self._busy = False

    async def write(self, data: bytes) -> None:
        if self._busy:
            raise RuntimeError("too many operations")
        self._busy = True
        for _ in range(20):
            await asyncio.sleep(0)
        self._busy = False
        self.types.append(_discovery.DeltaDiscoveryResponse.FromString(data).type_url)
        if len(self.types) == self._expected:
            self._call.may_end.set()


async def test_envoy_gets_one_response_at_a_time_though_some_are_rewritten_meanwhile(tmp_path) -> None:
    async def same(data: bytes) -> bytes:
        return data

    call = Upstream(ROUTE, CLUSTER, CLUSTER, ROUTE, CLUSTER)
    envoy = SlowEnvoy(5, call)
    memory = Memory(Journal(tmp_path / "last", "node"), (), {ROUTE: same})
    async with asyncio.timeout(60):
        assert await Exchange(memory, Inbox(), Transport(envoy)).run(call, None) == "OK: over"
    assert sorted(envoy.types) == sorted([CLUSTER] * 3 + [ROUTE] * 2)


async def test_a_control_plane_that_ends_before_the_agent_acknowledges_is_no_fault(tmp_path) -> None:
    delivered: list[list[bytes]] = []
    call = Upstream(TABLE, CLUSTER)
    envoy = SlowEnvoy(1, call)
    memory = Memory(Journal(tmp_path / "last", "node"), (Tap(type_url=TABLE, deliver=delivered.append),), {})
    async with asyncio.timeout(60):
        assert await Exchange(memory, Inbox(), Transport(envoy)).run(call, None) == "OK: over"
    assert (delivered, envoy.types) == ([[]], [CLUSTER])
