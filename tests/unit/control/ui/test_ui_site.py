"""Who gets what below `/ui`, and under which headers."""

import contextlib
import html.parser
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from mizzen.control.debug.console import Console, Page, PageError, Query, Write
from mizzen.control.ui import site
from mizzen.control.ui.tracing import Form

FILES = ("/ui/", "/ui/page.css", "/ui/page.js")
HERE = {"Sec-Fetch-Site": "same-origin"}
FORM = {"source": "a", "url": "http://b/"}


def tell(query: Query) -> Write:
    return lambda: {"namespace": query.namespace, "x": query["x"]}


def refuse(_: Query) -> Write:
    raise PageError(404, "<b>gone</b>")


class Tracing:
    """Tells what it was asked."""

    async def answer(self, form: Form) -> dict[str, Any]:
        if form.source == "nobody":
            raise PageError(422, "there is nobody")
        return {"asked": form.url}


@contextlib.asynccontextmanager
async def served(limit: site.Limit) -> AsyncIterator[Any]:
    tracer: Any = Tracing()
    application = web.Application()
    pages = {"matrix": Page("", tell), "chain": Page("", tell), "findings": Page("", refuse), "pushes": Page("", tell)}
    site.Site(Console(pages), tracer).add_to(application.router, limit)
    async with TestClient(TestServer(application)) as client:
        yield client


async def everybody(_: web.Request, page: str) -> str:
    return ""


async def strangers(_: web.Request, page: str) -> str:
    raise web.HTTPUnauthorized(text="")


async def test_files_are_for_everybody_and_data_is_not() -> None:
    async with served(strangers) as client:
        for path in FILES:
            assert (await client.get(path)).status == 200
        for page in ("matrix", "chain", "findings", "pushes", "nothing"):
            answer = await client.get(f"/ui/data/{page}")
            assert (answer.status, await answer.text()) == (401, "a token is needed")
        assert (await client.post("/ui/data/trace", json=FORM)).status == 401


async def test_data_is_for_whoever_may_see_the_debug_page_of_the_same() -> None:
    asked = []

    async def limit(_: web.Request, page: str) -> str:
        asked.append(page)
        if page == "config_dump":
            return "shop"
        raise web.HTTPForbidden(text="")

    async with served(limit) as client:
        for page in ("matrix", "findings", "pushes"):
            assert (await client.get(f"/ui/data/{page}")).status == 403
        assert (await client.post("/ui/data/trace", json=FORM)).status == 403
        answer = await client.get("/ui/data/chain?x=1")
        assert await answer.json() == {"namespace": "shop", "x": "1"}
    assert asked == ["syncz", "problems", "pushes", "trace", "config_dump"]


async def test_every_answer_forbids_foreign_content_and_frames() -> None:
    async with served(everybody) as client:
        for path in (*FILES, "/ui/data/matrix", "/ui/data/findings", "/ui/data/nothing"):
            headers = (await client.get(path)).headers
            policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
            assert policy["require-trusted-types-for"] == "'script'"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert (await client.get("/ui/data/matrix")).headers["Cache-Control"] == "no-store"


async def test_words_of_a_refusal_are_plain_text() -> None:
    async with served(everybody) as client:
        answer = await client.get("/ui/data/findings")
        assert (answer.status, answer.content_type, await answer.text()) == (404, "text/plain", "<b>gone</b>")


async def test_unchanged_files_are_not_sent_again() -> None:
    async with served(everybody) as client:
        first = await client.get("/ui/page.js")
        assert first.content_type == "text/javascript"
        again = await client.get("/ui/page.js", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status, await again.read()) == (304, b"")


async def test_page_names_its_files_relative_to_its_folder() -> None:
    async with served(everybody) as client:
        answer = await client.get("/ui", allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (308, "ui/")


@pytest.mark.parametrize("place", ["cross-site", "same-site"])
async def test_pages_of_other_sites_are_not_answered(place: str) -> None:
    async with served(everybody) as client:
        headers = {"Sec-Fetch-Site": place}
        assert (await client.get("/ui/data/matrix", headers=headers)).status == 403
        assert (await client.post("/ui/data/trace", json=FORM, headers=headers)).status == 403


async def test_trace_is_asked_for_in_json_of_some_length() -> None:
    async with served(everybody) as client:
        answer = await client.post("/ui/data/trace", json=FORM, headers=HERE)
        assert await answer.json() == {"asked": "http://b/"}
        assert (await client.post("/ui/data/trace", data=FORM)).status == 415
        assert (
            await client.post("/ui/data/trace", data=b"{", headers={"Content-Type": "application/json"})
        ).status == 400
        assert (await client.post("/ui/data/trace", json={**FORM, "headers": ["x: y" * 20_000]})).status == 413
        answer = await client.post("/ui/data/trace", json={**FORM, "source": "nobody"})
        assert (answer.status, await answer.text()) == (422, "there is nobody")
        assert (await client.get("/ui/data/trace")).status == 404


async def test_nothing_below_changes_anything() -> None:
    async with served(everybody) as client:
        for method in ("PUT", "POST", "DELETE", "PATCH"):
            assert (await client.request(method, "/ui/data/matrix")).status == 405


class Outline(html.parser.HTMLParser):
    """What the policy would refuse to run, and what leads elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        self.inline += [tag] if tag == "style" or (tag == "script" and "src" not in given) else []
        self.links += [given[name] for name in ("src", "href") if name in given]


async def test_page_carries_no_inline_code_and_no_foreign_address() -> None:
    async with served(everybody) as client:
        texts = [await (await client.get(path)).text() for path in FILES]
    outline = Outline()
    outline.feed(texts[0])
    assert outline.inline == []
    assert not any(re.match(r"(?:[a-z]+:)?//", link) for link in outline.links)
    assert "@import" not in texts[1]
    assert "url(" not in texts[1]
    for name in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "DOMParser",
        "http://",
        "https://",
    ):
        assert name not in texts[2]
    assert sum(map(len, texts)) < 60_000
