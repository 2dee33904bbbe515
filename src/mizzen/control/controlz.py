"""ControlZ: the levels of log scopes, read and changed while the control plane runs.

In: requests on the introspection port (9876), which listens on loopback alone unless told otherwise. Out: scopes and
their levels as `istioctl admin log` reads and writes them: `GET /scopej/`, `GET` and `PUT /scopej/SCOPE`. Python's
loggers have one level and no level of their own for stack traces, so that one reads `none` and is not kept.
"""

from typing import Any, Literal

import msgspec
from aiohttp import web

from mizzen import observe

_TRACES = "none"
_DESCRIPTIONS = {
    "ads": "Streams of proxies: who comes, what is sent and rejected",
    "ca": "The certificate authority",
    "config": "What is wrong with the objects",
    "default": "Messages of no other scope",
    "files": "Objects in files",
    "jwks": "Key sets of token issuers",
    "kube": "Objects in the cluster",
}

Level = Literal["", "none", "fatal", "error", "warn", "info", "debug"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a `PUT` may say of a scope; other fields of what `GET` gave may come along."""

    output_level: Level = ""
    stack_trace_level: Level = ""


def application() -> web.Application:
    """What the introspection port serves."""
    served = web.Application()
    served.router.add_get("/scopej", _list)
    served.router.add_get("/scopej/", _list)
    served.router.add_get("/scopej/{name}", _show)
    served.router.add_put("/scopej/{name}", _change)
    return served


def _describe(name: str, level: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": _DESCRIPTIONS.get(name, ""),
        "output_level": level,
        "stack_trace_level": _TRACES,
        "log_callers": False,
    }


async def _list(_: web.Request) -> web.Response:
    return web.json_response([_describe(name, level) for name, level in observe.scopes().items()])


def _named(request: web.Request) -> str:
    name: str = request.match_info["name"]
    if name not in observe.scopes():
        raise web.HTTPBadRequest(text=f"unknown scope name: {name}")
    return name


async def _show(request: web.Request) -> web.Response:
    name = _named(request)
    return web.json_response(_describe(name, observe.scopes()[name]))


async def _change(request: web.Request) -> web.Response:
    name = _named(request)
    try:
        change = msgspec.json.decode(await request.read(), type=Change)
    except msgspec.DecodeError as error:
        raise web.HTTPBadRequest(text=f"unable to decode request: {error}") from error
    if change.output_level:
        observe.set_levels(f"{name}:{change.output_level}")
    return web.Response(status=202)
