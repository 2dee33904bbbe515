"""The webhooks' server: `/inject`, `/inject/KEY/VALUE…`, `/validate` and `/ready`.

In: requests of an API server, with an AdmissionReview as their body. Out: reviews with answers. A request that is no
review gets an HTTP error, in istiod's words where it has them; so does an injection asked for before the cluster's
objects are known, since a sidecar by wrong values would stay for the life of the pod.
"""

import asyncio
from collections.abc import Callable

from aiohttp import web

from mizzen import observe
from mizzen.control.webhooks import validation
from mizzen.control.webhooks.injection import Injector
from mizzen.control.webhooks.reviews import Answer, Review, decode
from mizzen.errors import DecodeError

_HTTP_ERRORS = observe.Counter("galley_validation_http_error", "Requests that were no reviews.", ("status",))

_LARGEST = 8 * 1024 * 1024
"""An object is at most 1.5 MiB in etcd, and an update brings the old one along."""
_LARGE = 64 * 1024
"""Bytes from which on judging an object is left to a thread, for the loop serves proxies meanwhile."""


def application(injector: Injector, is_ready: Callable[[], bool]) -> web.Application:
    """What the webhooks' port serves."""
    pages = _Pages(injector, is_ready)
    application = web.Application(client_max_size=_LARGEST)
    application.router.add_post("/inject", pages.inject)
    application.router.add_post("/inject/{rest:.*}", pages.inject)
    application.router.add_post("/validate", pages.validate)
    application.router.add_post("/validate/{rest:.*}", pages.validate)
    application.router.add_get("/ready", pages.ready)
    return application


class _Pages:
    def __init__(self, injector: Injector, is_ready: Callable[[], bool]) -> None:
        self._injector, self._is_ready = injector, is_ready

    async def ready(self, _: web.Request) -> web.Response:
        return web.Response(status=200 if self._is_ready() else 503)

    async def inject(self, request: web.Request) -> web.Response:
        try:
            body = await _body(request)
            if not self._is_ready():
                raise web.HTTPServiceUnavailable(text="the objects of the cluster are not known yet")
            review = _decode(body)
        except web.HTTPException:
            self._injector.count_unread()
            raise
        answer = self._injector.review(review.request, request.match_info.get("rest", ""))
        return _respond(review, answer)

    async def validate(self, request: web.Request) -> web.Response:
        try:
            body = await _body(request)
            review = _decode(body)
        except web.HTTPException as refusal:
            _HTTP_ERRORS.labels(str(refusal.status)).inc()
            raise
        if len(body) < _LARGE:
            answer = validation.review(review.request)
        else:
            answer = await asyncio.to_thread(validation.review, review.request)
        return _respond(review, answer)


async def _body(request: web.Request) -> bytes:
    body = await request.read()
    if not body:
        raise web.HTTPBadRequest(text="no body found")
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="invalid Content-Type, want `application/json`")
    return body


def _decode(body: bytes) -> Review:
    try:
        return decode(body)
    except DecodeError as error:
        raise web.HTTPBadRequest(text=str(error)) from error


def _respond(review: Review, answer: Answer) -> web.Response:
    return web.Response(body=review.answer(answer), content_type="application/json")
