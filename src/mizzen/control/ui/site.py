"""The page and its data over HTTP.

In: requests below `/ui`. Out: the page's files for everybody; data for whoever may see the debug page of the same
content. Data is asked for with GET, a trace with POST and a JSON body, which no page of another site can send. A
question that has no answer is answered with its status and a sentence.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
from aiohttp import web

from mizzen.control.debug.console import Answer, Console, PageError, Query, text, to_json
from mizzen.control.ui import assets, chain, findings, matrix, pushes, tracing
from mizzen.sources.origins import Finding
from mizzen.xds.discovery import Discovery

Limit = Callable[[web.Request, str], Awaitable[str]]
"""The namespace that a caller is limited to on a debug page; raises for callers who may not see it."""

_SAME_AS = {"matrix": "syncz", "chain": "config_dump", "findings": "problems"}
"""The debug pages that tell the same; other data is for callers who may see everything."""
_FORM_BYTES = 64 * 1024
_TRACE = "trace"
_FROM_HERE = ("same-origin", "none")


def build_console(discovery: Discovery, told: Callable[[], Iterable[Finding]]) -> Console:
    """The data that is asked for with GET."""
    return Console(
        {
            "matrix": matrix.page(discovery.connections),
            "chain": chain.page(discovery.connections),
            "findings": findings.page(told),
            "pushes": pushes.page(discovery.pusher.history),
        }
    )


class Site:
    """Everything below `/ui`."""

    def __init__(self, console: Console, tracer: tracing.Tracer) -> None:
        self._console = console
        self._tracer = tracer
        self._assets = assets.load()

    def add_to(self, router: web.UrlDispatcher, limit: Limit) -> None:
        """Answer on this port, to whom `limit` lets in."""

        async def ask(request: web.Request) -> web.Response:
            return await self._guarded(request, limit, self._ask)

        async def trace(request: web.Request) -> web.Response:
            return await self._guarded(request, limit, self._trace)

        router.add_get("/ui", _to_folder)
        router.add_get("/ui/", self._assets["page.html"].answer)
        for name in ("page.css", "page.js"):
            router.add_get(f"/ui/{name}", self._assets[name].answer)
        router.add_post(f"/ui/data/{_TRACE}", trace)
        router.add_get("/ui/data/{page}", ask)

    async def _guarded(
        self, request: web.Request, limit: Limit, answer: Callable[[web.Request, str], Awaitable[Answer]]
    ) -> web.Response:
        if request.headers.get("Sec-Fetch-Site", "none") not in _FROM_HERE:
            return _respond(text("another site asks", 403))
        page = request.match_info.get("page", _TRACE)
        try:
            namespace = await limit(request, _SAME_AS.get(page, page))
        except web.HTTPUnauthorized:
            return _respond(text("a token is needed", 401))
        except web.HTTPForbidden:
            return _respond(text("this identity may not see this", 403))
        return _respond(await answer(request, namespace))

    async def _ask(self, request: web.Request, namespace: str) -> Answer:
        parameters: Mapping[str, str] = dict(request.query)
        page = request.match_info["page"]
        return await self._console.ask(Query(page=page, parameters=parameters, namespace=namespace))

    async def _trace(self, request: web.Request, _: str) -> Answer:
        if request.content_type != "application/json":
            return text("a trace is asked for in JSON", 415)
        if (request.content_length or 0) > _FORM_BYTES:
            return text("the form is too long", 413)
        try:
            form = msgspec.json.decode(await request.read(), type=tracing.Form)
            return Answer(body=to_json(await self._tracer.answer(form)))
        except msgspec.DecodeError as bad:
            return text(str(bad), 400)
        except PageError as refused:
            return text(str(refused), refused.status)


async def _to_folder(_: web.Request) -> web.Response:
    """The page names its files relative to itself, so that it also works behind a prefix."""
    return web.Response(status=308, headers={**assets.HEADERS, "Location": "ui/"})


def _respond(answer: Answer) -> web.Response:
    return web.Response(
        status=answer.status,
        body=answer.body,
        content_type=answer.content_type,
        charset="utf-8",
        headers={**assets.HEADERS, "Cache-Control": "no-store"},
    )
