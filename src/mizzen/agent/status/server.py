"""The agent's HTTP server, port 15020: readiness, merged metrics, the application's probes, orders to drain and stop.

In: requests of the kubelet, of Prometheus and, through Envoy's listener 15021, of load balancers. Out: short texts.
Orders are taken from the pod itself only. What is asked for is done elsewhere: `admin`, `scrape`, `probes`,
`supervisor`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from mizzen import observe
from mizzen.agent import metrics
from mizzen.agent.admin import Admin
from mizzen.agent.bootstrap import node
from mizzen.agent.status.probes import Prober
from mizzen.agent.status.scrape import Scraper
from mizzen.errors import AgentError

_LOOPBACK = frozenset({"127.0.0.1", "::1", "::ffff:127.0.0.1"})

_log = observe.scope("status")


class Ready:
    """Whether the pod may take traffic: Envoy has its first configuration, serves, and DNS knows the mesh."""

    def __init__(self, admin: Admin, has_names: Callable[[], bool]) -> None:
        self._admin = admin
        self._has_names = has_names
        self._began = time.monotonic()
        self._was_ready = False

    async def obstacle(self) -> str:
        """Why not; empty when ready."""
        try:
            found = await self._admin.readiness()
        except AgentError as failed:
            return str(failed)
        obstacle = found.obstacle()
        if self._was_ready and found.state == "LIVE":
            return ""
        if not obstacle and not self._has_names():
            obstacle = "the name table has not been received"
        if not obstacle:
            self._was_ready = True
            elapsed = time.monotonic() - self._began
            metrics.STARTUP_SECONDS.set(elapsed)
            _log.info("ready after %.1f s", elapsed)
        return obstacle


class Orders:
    """What may be ordered over HTTP."""

    def __init__(self, drain: Callable[[], Awaitable[None]], quit_now: Callable[[], None]) -> None:
        self.drain = drain
        self.quit_now = quit_now


class Status:
    """The HTTP application."""

    def __init__(self, ready: Ready, scraper: Scraper, prober: Prober, orders: Orders) -> None:
        self._ready = ready
        self._scraper = scraper
        self._prober = prober
        self._orders = orders

    def application(self) -> web.Application:
        """Routes and handlers."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/healthz/ready", self._readiness),
                web.get("/stats/prometheus", self._merged_metrics),
                web.get(node.ENVOY_METRICS, self._envoy_metrics),
                web.get("/metrics", self._own_metrics),
                web.get("/app-health/{container}/{probe}", self._probe),
                web.get("/app-lifecycle/{container}/{probe}", self._probe),
                web.post("/drain", self._drain),
                web.post("/quitquitquit", self._quit),
            ]
        )
        return application

    async def _readiness(self, _: web.Request) -> web.Response:
        obstacle = await self._ready.obstacle()
        return web.Response(status=503, text=obstacle) if obstacle else web.Response()

    async def _merged_metrics(self, request: web.Request) -> web.Response:
        merged = await self._scraper.collect(request.query_string, request.headers)
        return web.Response(body=merged.body, headers={"Content-Type": merged.content_type})

    async def _envoy_metrics(self, request: web.Request) -> web.Response:
        found = await self._scraper.collect_envoy(request.query_string)
        if found is None:
            return web.Response(status=503, text="Envoy does not answer\n")
        return web.Response(body=found.body, headers={"Content-Type": found.content_type})

    async def _own_metrics(self, _: web.Request) -> web.Response:
        headers = {"Content-Type": observe.METRICS_CONTENT_TYPE}
        return web.Response(body=observe.render_metrics(), headers=headers)

    async def _probe(self, request: web.Request) -> web.Response:
        status, text = await self._prober.check(request.path, request.headers)
        return web.Response(status=status, text=text)

    async def _drain(self, request: web.Request) -> web.Response:
        _refuse_strangers(request)
        await self._orders.drain()
        return web.Response(text="draining\n")

    async def _quit(self, request: web.Request) -> web.Response:
        _refuse_strangers(request)
        self._orders.quit_now()
        return web.Response(text="stopping\n")


def _refuse_strangers(request: web.Request) -> None:
    if request.remote not in _LOOPBACK:
        raise web.HTTPForbidden(text="only from within the pod\n")


async def run_status(application: web.Application, *, host: str, port: int, ready: asyncio.Event) -> None:
    """Serve at `host` until cancelled."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        ready.set()
        await asyncio.Event().wait()
    except OSError as failed:
        raise AgentError(f"cannot listen on port {port}: {failed}") from failed
    finally:
        await runner.cleanup()
