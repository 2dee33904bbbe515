"""Pages by name: one question in, one answer out, whatever carried them.

In: a `Query`, whose caller was let in by `access`. Out: an `Answer` with an HTTP status, for HTTP as it is, for ADS as
the bytes of one resource. A page reads its state at once and returns how to write it; that runs in a thread.
"""

import asyncio
import html
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mizzen.errors import MizzenError

_UNKNOWN = "404 page not found\n"


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One question."""

    page: str
    parameters: Mapping[str, str] = {}
    namespace: str = ""
    """The one namespace whose proxies the caller may see; empty for all."""

    def __getitem__(self, name: str) -> str:
        """The value of a parameter; empty where it is absent."""
        return self.parameters.get(name, "")

    def __contains__(self, name: str) -> bool:
        return name in self.parameters

    def is_true(self, name: str) -> bool:
        """Whether a parameter says yes."""
        return self[name] == "true"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"


class PageError(MizzenError):
    """A question that has no answer, with its HTTP status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


Write = Callable[[], Any]
"""Writes the document: plain data for JSON, or a whole `Answer`. Runs in a thread and reads nothing that changes."""


class Page(NamedTuple):
    """One page."""

    help: str
    read: Callable[[Query], Write]
    """Reads the state of the mesh; runs on the event loop."""


Pages = Mapping[str, Page]


def text(content: str, status: int = 200) -> Answer:
    """A plain answer."""
    return Answer(body=content.encode(), status=status, content_type="text/plain")


class Console:
    """All pages."""

    def __init__(self, pages: Pages) -> None:
        self._pages = {**pages, "list": Page("The names of all pages.", lambda _: lambda: self.listed)}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._pages))

    @property
    def listed(self) -> list[str]:
        """The names that the list tells."""
        return [name for name in self if name != "list"]

    async def ask(self, query: Query) -> Answer:
        """The answer; what cannot be answered has another status than 200."""
        page = self._pages.get(query.page)
        if page is None:
            return text(_UNKNOWN, 404)
        try:
            write = page.read(query)
            return await asyncio.to_thread(_finish, write, pretty="pretty" in query)
        except PageError as error:
            return text(str(error), error.status)

    def index(self) -> Answer:
        """All pages with what they are for, as HTML."""
        rows = "".join(
            f'<tr><td><a href="/debug/{name}">{name}</a></td><td>{html.escape(self._pages[name].help)}</td></tr>'
            for name in self
        )
        page = f"<html><head><title>Pilot Debug Console</title></head><body><table>{rows}</table></body></html>"
        return Answer(body=page.encode(), content_type="text/html")


def _finish(write: Write, *, pretty: bool) -> Answer:
    document = write()
    return document if isinstance(document, Answer) else Answer(body=to_json(document, pretty=pretty))


def to_json(document: Any, *, pretty: bool = False) -> bytes:
    """The document as istiod writes it: compact, or with four spaces of indent."""
    separators = None if pretty else (",", ":")
    return json.dumps(document, indent=4 if pretty else None, separators=separators, ensure_ascii=False).encode()
