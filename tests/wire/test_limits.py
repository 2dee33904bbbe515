"""Limits of the server as operators may set them: whatever they say, proxies are served."""

import asyncio
import contextlib

import pytest
from ads_server import serve
from adsclient import Client

from mizzen.compile.resource import CLUSTER
from mizzen.settings import Xds

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS = bytes(3) + bytes((4,)) + bytes(5)
_PING = 6


@pytest.mark.parametrize(
    "limit",
    [
        {"max_connection_age": 1000 * 3600.0},
        {"max_connection_age": 0.0},
        {"connection_age_grace": 1000 * 3600.0},
        {"keepalive_interval": 1000 * 3600.0},
        {"keepalive_timeout": 1000 * 3600.0},
        {"keepalive_interval": 0.01, "keepalive_timeout": 0.0},
        {"max_streams": 0},
        {"max_streams": 1 << 32},
        {"max_receive_bytes": 0},
        {"max_receive_bytes": 5 << 30},
    ],
    ids=str,
)
async def test_a_limit_that_is_large_or_none_keeps_nobody_out(limit: dict[str, float]) -> None:
    xds = Xds(**limit)  # type: ignore[arg-type]
    async with serve([(CLUSTER, "a", "1")], xds=xds) as serving, Client(serving.target) as client:
        await client.subscribe(CLUSTER)
        assert (await client.read_acked()).names == ["a"]
        await client.read_nothing()
        serving.set(CLUSTER, "a", "2")
        assert (await client.read_acked()).names == ["a"]


async def test_no_interval_of_pings_is_not_a_ping_after_the_other() -> None:
    async with serve(xds=Xds(keepalive_interval=0.0, stop_grace=0.1)) as serving:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(_PREFACE + _SETTINGS)
        pings = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while True:
                    head = await reader.readexactly(9)
                    await reader.readexactly(int.from_bytes(head[:3]))
                    pings += head[3] == _PING
        writer.close()
    assert pings == 0
