"""Requests to an API server whose credentials are exchanged while it is talked to."""

import contextlib
import pathlib
import ssl

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from claims import own_port
from traffic_certificates import Authority

from mizzen.sources.kube.access import Access, Credentials, in_cluster
from mizzen.sources.kube.client import Client, Refused, Unreachable


@contextlib.asynccontextmanager
async def serving(folder: pathlib.Path, port: int, authority: Authority):
    """A server that shows a certificate of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown = folder / "shown.pem"
    shown.write_text("".join(authority.issue("127.0.0.1")))
    context.load_cert_chain(shown)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="{}")

    application = web.Application()
    application.router.add_get("/version", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    try:
        yield
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("said", "after"), [("7", 7.0), ("86400", 60.0), ("9" * 400, 60.0), ("soon", 0.0), ("-1", 0.0)]
)
async def test_a_server_that_asks_for_patience_gets_some(said: str, after: float) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": said})

    application = web.Application()
    application.router.add_get("/version", answer)
    async with TestServer(application) as server:
        access = Access(server=str(server.make_url("")).rstrip("/"), credentials=Credentials())
        async with Client(access) as client:
            with pytest.raises(Refused) as refused:
                await client.get("/version")
    assert refused.value.after == after


async def test_an_authority_that_the_cluster_exchanges_is_taken_up(tmp_path: pathlib.Path) -> None:
    old, new, port = Authority("old"), Authority("new"), own_port()
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text(old.pem)
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    async with Client(in_cluster(environment, tmp_path)) as client:
        async with serving(tmp_path, port, old):
            assert await client.get("/version") == b"{}"
        async with serving(tmp_path, port, new):
            with pytest.raises(Unreachable, match="certificate"):
                await client.get("/version")
            (tmp_path / "ca.crt").write_text("")
            with pytest.raises(Unreachable, match="certificate"):
                await client.get("/version")
            (tmp_path / "ca.crt").write_text(old.pem + new.pem)
            assert await client.get("/version") == b"{}"
        (tmp_path / "ca.crt").unlink()
        async with serving(tmp_path, port, new):
            assert await client.get("/version") == b"{}", "what was read last stays while there is nothing else"
