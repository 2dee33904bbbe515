"""Probes of the application, against real servers on loopback addresses."""

import asyncio
import contextlib
import json

import grpc
import grpc.aio
import pytest
from aiohttp import web
from claims import own_port

from mizzen.agent.status.probes import Prober, parse_probes
from mizzen.errors import DecodeError

POD = "127.0.0.9"
READY = "/app-health/web/readyz"


def prober(address: str = POD, **probe) -> Prober:
    return Prober(parse_probes(json.dumps({READY: {"timeoutSeconds": 60, **probe}})), address=address)


@contextlib.asynccontextmanager
async def http_server(handler, address: str = POD):
    server = web.Application()
    server.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(server, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, address, 0)
    await site.start()
    try:
        yield site._server.sockets[0].getsockname()[1]
    finally:
        await runner.cleanup()


async def test_http_probe_asks_as_the_kubelet_would_from_the_address_that_capture_leaves_alone() -> None:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        return web.Response()

    async with http_server(answer) as port:
        http = {"port": port, "path": "/live?x=1", "httpHeaders": [{"name": "X-Probe", "value": "mine"}]}
        headers = {"User-Agent": "kube-probe/1.30", "X-Probe": "theirs", "Host": "10.1.1.10:15020"}
        assert (await prober(httpGet=http).check(READY, headers))[0] == 200
    assert seen[0].path_qs == "/live?x=1"
    assert seen[0].remote == "127.0.0.6"
    assert seen[0].headers["X-Probe"] == "mine"
    assert seen[0].headers["User-Agent"] == "kube-probe/1.30"
    assert seen[0].host == f"{POD}:{port}"


@pytest.mark.parametrize(("status", "passed"), [(204, 204), (302, 302), (404, 404), (500, 500)])
async def test_status_of_the_application_is_passed_on_and_redirects_are_not_followed(status: int, passed: int) -> None:
    asked = 0

    async def answer(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else {})

    async with http_server(answer) as port:
        assert (await prober(httpGet={"port": port}).check(READY, {}))[0] == passed
    assert asked == 1


async def test_probe_that_takes_too_long_fails() -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(1)
        return web.Response()

    async with http_server(answer) as port:
        assert (await prober(httpGet={"port": port}, timeoutSeconds=0.1).check(READY, {}))[0] == 503


async def test_application_on_loopback_is_reached_where_told() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    async with http_server(answer, "127.0.0.1") as port:
        assert (await prober("127.0.0.1", httpGet={"port": port}).check(READY, {}))[0] == 200


async def test_tcp_probe_connects() -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), POD, 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert (await prober(tcpSocket={"port": port}).check(READY, {}))[0] == 200
    assert (await prober(tcpSocket={"port": own_port()}).check(READY, {}))[0] == 503


async def test_grpc_probe_asks_the_health_service() -> None:
    asked: list[tuple[str, str]] = []
    serving = {b"": b"\x08\x01", b"\n\x04cart": b"\x08\x02"}

    async def check(request: bytes, context) -> bytes:
        asked.append((context.peer(), request.decode()))
        if request not in serving:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return serving[request]

    server = grpc.aio.server()
    methods = {"Check": grpc.unary_unary_rpc_method_handler(check)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("grpc.health.v1.Health", methods)])
    port = server.add_insecure_port(f"{POD}:0")
    await server.start()
    try:
        assert (await prober(grpc={"port": port}).check(READY, {}))[0] == 200
        assert asked[0][0].startswith("ipv4:127.0.0.6:")
        assert (await prober(grpc={"port": port, "service": "cart"}).check(READY, {}))[0] == 503
        assert (await prober(grpc={"port": port, "service": "nobody"}).check(READY, {}))[0] == 503
        assert (await prober(grpc={"port": own_port()}).check(READY, {}))[0] == 503
    finally:
        await server.stop(None)


async def test_paths_that_replaced_no_probe_are_not_found() -> None:
    assert (await prober(tcpSocket={"port": 1}).check("/app-health/other/readyz", {}))[0] == 404
    assert (await prober().check(READY, {}))[0] == 404
    assert parse_probes("") == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"/a": {"httpGet": {"port": "http"}}}'])
def test_broken_probes_are_named(text: str) -> None:
    with pytest.raises(DecodeError, match="ISTIO_KUBE_APP_PROBERS"):
        parse_probes(text)
