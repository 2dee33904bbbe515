"""The plain HTTP servers: readiness, metrics, version, debug pages.

In: requests on the monitoring port (15014) and the readiness port (8080). Out: answers in istiod's forms. `/ready`,
`/metrics` and `/version` are for everybody. A debug page is for callers on this machine, and for those whose token
proves an identity: one of the system namespace sees everything, others see dumps of proxies of their own namespace.
The documents themselves are made in `debug`.
"""

import asyncio
import functools
import importlib.metadata
import ipaddress
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from mizzen import observe, settings
from mizzen.ca.identity import Authenticator, Call, parse_spiffe
from mizzen.control import debug
from mizzen.control.inputs import Inputs
from mizzen.control.options import Address
from mizzen.errors import AuthorityError, MizzenError
from mizzen.xds.status import Connection, Connections

_ABSENT = "Proxy not connected to this Pilot instance. It may be connected to another instance."
_NO_PROXY_ID = "You must provide a proxyID in the query string"
_EVERYTHING = ""

Answer = Awaitable[web.StreamResponse]


class Pages:
    """Everything that is answered over HTTP."""

    def __init__(
        self,
        connections: Connections,
        inputs: Inputs,
        authenticator: Authenticator,
        config: settings.Settings,
        is_ready: Callable[[], bool],
    ) -> None:
        self._connections = connections
        self._inputs = inputs
        self._authenticator = authenticator
        self._config = config
        self._is_ready = is_ready

    @functools.cached_property
    def debug_pages(self) -> Mapping[str, Callable[[web.Request, str], Answer]]:
        """The debug pages by name; each is told the namespace that its caller is limited to."""
        return {
            "adsz": self._adsz,
            "config_dump": self._config_dump,
            "connections": self._list_connections,
            "ecdsz": functools.partial(self._config_dump, preset="ecds"),
            "edsz": functools.partial(self._config_dump, preset="eds"),
            "list": self._list,
            "ndsz": functools.partial(self._config_dump, preset="nds"),
            "problems": self._problems,
            "syncz": self._syncz,
        }

    def monitoring(self) -> web.Application:
        """What the monitoring port serves."""
        application = web.Application()
        application.router.add_get("/metrics", _metrics)
        application.router.add_get("/version", _version)
        application.router.add_get("/ready", self._ready)
        self._add_debug(application)
        return application

    def readiness(self) -> web.Application:
        """What the readiness port serves."""
        application = web.Application()
        application.router.add_get("/ready", self._ready)
        if self._config.http.debug_on_http:
            self._add_debug(application)
        return application

    def _add_debug(self, application: web.Application) -> None:
        for path in ("/debug", "/debug/"):
            application.router.add_get(path, self._index)
        application.router.add_get("/debug/{page}", self._debug)

    async def _ready(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self._is_ready() else 503)

    async def _debug(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["page"]
        limit = await self._limit(request, name)
        page = self.debug_pages.get(name)
        if page is None:
            raise web.HTTPNotFound
        return await page(request, limit)

    async def _limit(self, request: web.Request, page: str) -> str:
        """The namespace that the caller may see, empty for all; raises 401 or 403."""
        if _is_local(request.remote):
            return _EVERYTHING
        metadata = {name.lower(): value for name, value in request.headers.items()}
        try:
            caller = await self._authenticator.authenticate(Call(metadata=metadata, peer=request.remote or ""))
        except AuthorityError:
            raise web.HTTPUnauthorized(text="") from None
        identities = [identity for uri in caller.identities if (identity := parse_spiffe(uri))]
        if not self._config.http.debug_authorization:
            return _EVERYTHING
        system = {self._config.instance.namespace, *self._config.http.debug_namespaces}
        if any(identity.namespace in system for identity in identities):
            return _EVERYTHING
        if not identities or page not in ("config_dump", "edsz", "ndsz"):
            raise web.HTTPForbidden(text="")
        return identities[0].namespace

    # -- pages ----------------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.Response:
        await self._limit(request, "")
        rows = "".join(f'<li><a href="/debug/{name}">{name}</a></li>' for name in self.debug_pages)
        text = f"<html><head><title>Pilot Debug Console</title></head><body><ul>{rows}</ul></body></html>"
        return web.Response(text=text, content_type="text/html")

    async def _list(self, request: web.Request, _: str) -> web.Response:
        return _json(request, sorted(name for name in self.debug_pages if name != "list"))

    async def _syncz(self, request: web.Request, _: str) -> web.Response:
        shown = debug.in_namespace(self._connections, request.query.get("namespace", ""))
        return _json(request, debug.syncz(shown))

    async def _adsz(self, request: web.Request, _: str) -> web.Response:
        part = request.query.get("proxyID")
        shown = [self._find(part, _EVERYTHING)] if part else self._connections
        return _json(request, debug.adsz(shown))

    async def _list_connections(self, request: web.Request, _: str) -> web.Response:
        return _json(request, debug.connections_document(self._connections))

    async def _problems(self, request: web.Request, _: str) -> web.Response:
        return _json(request, debug.problems(self._inputs.findings, self._connections))

    async def _config_dump(self, request: web.Request, limit: str, preset: str = "") -> web.Response:
        part = request.query.get("proxyID")
        if not part:
            raise web.HTTPBadRequest(text=_NO_PROXY_ID)
        connection = self._find(part, limit)
        words = preset or request.query.get("types", "")
        types = frozenset(word for word in words.split(",") if word) if words else None
        with_endpoints = "include_eds" in request.query
        document = await asyncio.to_thread(debug.config_dump, connection, types, with_endpoints)
        return _json(request, document)

    def _find(self, part: str, limit: str) -> Connection:
        """The connection whose id contains `part`; one that the caller may not see is not there."""
        found = next((each for each in debug.in_namespace(self._connections, limit) if part in each.id), None)
        if found is None:
            raise web.HTTPNotFound(text=_ABSENT)
        return found


def _json(request: web.Request, document: Any) -> web.Response:
    pretty = "pretty" in request.query
    text = json.dumps(
        document, indent=4 if pretty else None, separators=None if pretty else (",", ":"), ensure_ascii=False
    )
    return web.Response(text=text, content_type="application/json")


def _is_local(address: str | None) -> bool:
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


async def _metrics(_: web.Request) -> web.Response:
    body = await asyncio.to_thread(observe.render_metrics)
    return web.Response(body=body, headers={"Content-Type": observe.METRICS_CONTENT_TYPE})


async def _version(_: web.Request) -> web.Response:
    return web.Response(text=f"{importlib.metadata.version('mizzen')}-unknown-unknown")


class Server:
    """One HTTP server on one port."""

    def __init__(self, application: web.Application, flag: str, address: Address) -> None:
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        self._flag = flag
        self._address = address

    async def start(self) -> int:
        """Accept connections; the port's number, for an address with port 0. Raises MizzenError for a port in use."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._address.host or None, self._address.port)
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
        await self._runner.cleanup()


def port_refused(flag: str, address: Address, reason: str) -> MizzenError:
    """The error for a port that cannot be had, with the remedy."""
    return MizzenError(f"cannot listen on {address}: {reason}; stop what uses it, or choose another with {flag}")
