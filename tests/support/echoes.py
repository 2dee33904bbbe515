"""Backends that answer with what they were asked, each on a port of its own.

Header `x-delay` makes one wait so many seconds; `seen` counts the requests of each.
"""

import asyncio
import collections
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence

from aiohttp import web


@contextlib.asynccontextmanager
async def running(
    services: Sequence[str], secure: Mapping[str, ssl.SSLContext], seen: collections.Counter[str] | None = None
) -> AsyncIterator[dict[str, int]]:
    """One backend for each service; those in `secure` speak TLS. Gives their ports."""
    ports: dict[str, int] = {}
    async with contextlib.AsyncExitStack() as stack:
        for service in services:
            runner = web.AppRunner(_app(service, seen if seen is not None else collections.Counter()), access_log=None)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=secure.get(service))
            await site.start()
            ports[service] = runner.addresses[0][1]
        yield ports


def _app(service: str, seen: collections.Counter[str]) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        seen[service] += 1
        await asyncio.sleep(float(request.headers.get("x-delay", 0)))
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = {"service": service, "path": request.raw_path, "method": request.method, "headers": headers}
        return web.json_response({**asked, "host": request.headers.get("Host", "")})

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    return app
