"""The plain HTTP servers: readiness, metrics, version, debug pages.

In: requests on the monitoring port (15014) and the readiness port (8080). Out: answers in istiod's forms. `/ready`,
`/metrics` and `/version` are for everybody. A debug page is for callers on this machine, and for those whose token
proves an identity that may see it (`debug.access`). What the pages hold is made in `debug`.
"""

import asyncio
import ipaddress
import os
import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web

from mizzen import observe, settings
from mizzen.ca.identity import Authenticator, Call
from mizzen.control.debug.access import EVERYTHING, Access, Denied
from mizzen.control.debug.console import Answer, Console, Query
from mizzen.control.options import Address
from mizzen.control.release import Release
from mizzen.errors import AuthorityError, MizzenError
from mizzen.model.spiffe import parse_spiffe


class Pages:
    """Everything that is answered over HTTP."""

    def __init__(
        self,
        console: Console,
        access: Access,
        authenticator: Authenticator,
        config: settings.Http,
        release: Release,
        is_ready: Callable[[], bool],
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        """`refresh` brings those metrics up to date that are worked out only when somebody asks."""
        self._console = console
        self._access = access
        self._authenticator = authenticator
        self._config = config
        self._release = release
        self._is_ready = is_ready
        self._refresh = refresh

    def monitoring(self) -> web.Application:
        """What the monitoring port serves."""
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/version", self._version)
        application.router.add_get("/ready", self._ready)
        self._add_debug(application)
        return application

    def readiness(self) -> web.Application:
        """What the readiness port serves."""
        application = web.Application()
        application.router.add_get("/ready", self._ready)
        if self._config.debug_on_http:
            self._add_debug(application)
        return application

    def _add_debug(self, application: web.Application) -> None:
        for path in ("/debug", "/debug/"):
            application.router.add_get(path, self._index)
        application.router.add_get("/debug/{page}", self._debug)

    async def _metrics(self, _: web.Request) -> web.Response:
        await self._refresh()
        body = await asyncio.to_thread(observe.render_metrics)
        return web.Response(body=body, headers={"Content-Type": observe.METRICS_CONTENT_TYPE})

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self._is_ready() else 503)

    async def _version(self, _: web.Request) -> web.Response:
        return web.Response(text=str(self._release))

    async def _index(self, request: web.Request) -> web.Response:
        await self.limit(request, "")
        return _respond(self._console.index())

    async def _debug(self, request: web.Request) -> web.Response:
        page = request.match_info["page"]
        limit = await self.limit(request, page)
        return _respond(await self._console.ask(Query(page=page, parameters=dict(request.query), namespace=limit)))

    async def limit(self, request: web.Request, page: str) -> str:
        """The namespace that the caller may see on a debug page, empty for all; raises 401 or 403."""
        if _is_local(request.remote) and _is_called_local(request.headers.get("Host")):
            return EVERYTHING
        metadata = {name.lower(): value for name, value in request.headers.items()}
        try:
            caller = await self._authenticator.authenticate(Call(metadata=metadata, peer=request.remote or ""))
        except AuthorityError:
            raise web.HTTPUnauthorized(text="") from None
        try:
            return self._access.limit_on(page, filter(None, map(parse_spiffe, caller.identities)))
        except Denied:
            raise web.HTTPForbidden(text="") from None


def _respond(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, body=answer.body, content_type=answer.content_type, charset="utf-8")


def _is_local(address: str | None) -> bool:
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def _is_called_local(host: str | None) -> bool:
    """Whether the caller knows this machine as its own. A page of another site that was led here by a name of its
    choice comes from this machine, too, with the browser that shows it, and says that name."""
    if host is None:
        return True
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.strip("[]").lower()
    return name == "localhost" or name.endswith(".localhost") or _is_local(name)


class Server:
    """One HTTP server on one port."""

    def __init__(
        self, application: web.Application, flag: str, address: Address, context: ssl.SSLContext | None = None
    ) -> None:
        """With a context it speaks TLS."""
        self._context = context
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        self._flag = flag
        self._address = address

    async def start(self) -> int:
        """Accept connections; the port's number, for an address with port 0. Raises MizzenError for a port in use."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._address.host or None, self._address.port, ssl_context=self._context)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            # asyncio wraps the reason into a sentence of its own.
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise port_refused(self._flag, self._address, reason) from error
        port: int = self._runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        """Accept no more, end all connections."""
        server = self._runner.server
        open_now = [connection.transport for connection in server.connections] if server is not None else []
        await self._runner.cleanup()
        if self._context is not None:
            for transport in filter(None, open_now):
                transport.abort()  # For TLS's own way to close, the other side would have to answer.
            await asyncio.sleep(0)


def port_refused(flag: str, address: Address, reason: str) -> MizzenError:
    """The error for a port that cannot be had, with the remedy."""
    return MizzenError(f"cannot listen on {address}: {reason}; stop what uses it, or choose another with {flag}")
