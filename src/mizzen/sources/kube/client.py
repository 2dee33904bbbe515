"""Requests to an API server: documents, paged lists and watches, as bytes.

In: an `Access`. Out: bodies, or `Refused` for what the server answered with a Status, or `Unreachable` when there was
no answer. Every request asks the credentials anew; after a 401 they are asked once more. A watch is a line of JSON an
event; one that stays silent for longer than the server's bookmarks take counts as broken.
"""

import asyncio
import contextlib
import socket
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
import msgspec

from mizzen.errors import SourceError
from mizzen.sources.kube.access import Access, Pair
from mizzen.sources.kube.depth import shallow

T = TypeVar("T")

PAGE = 500
"""Objects asked for at once."""
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""What to accept where metadata is enough: of an object, as in a watch, and in a list."""
MERGE_PATCH, APPLY_PATCH = "application/merge-patch+json", "application/apply-patch+yaml"
"""Types of content for changes of an object."""

_ANSWER_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_CLOSING_SECONDS, _CLOSING_LOOK = 5.0, 0.02
"""Connections that were cancelled while they opened take a moment to close, for which aiohttp offers no wait."""
_LONGEST_AFTER = 60.0
"""Who asks for more is asked again all the same: it may be a gateway before the server that never knew it."""
_SILENT_SECONDS = 150.0
"""The server sends a bookmark about every minute."""
_LONGEST_LINE = 8 * 1024 * 1024
"""An object is at most 1.5 MiB in etcd; JSON is longer than what is stored."""


class Refused(SourceError):
    """The server answered that it will not."""

    def __init__(self, status: int, message: str, after: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; 410 means that the past which was asked for is gone."""
        self.after = after
        """Seconds that the server asks to wait."""


class Unreachable(SourceError):
    """The server did not answer, or stopped in the middle."""


class _Status(msgspec.Struct, frozen=True):
    message: str = ""
    code: int = 0


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next_page: str = msgspec.field(name="continue", default="")


class Page(msgspec.Struct, frozen=True):
    """A part of a list; the objects are not decoded."""

    metadata: ListMeta
    listed: list[msgspec.Raw] | None = msgspec.field(name="items", default=None)
    """Null in an empty list of metadata."""

    @property
    def items(self) -> list[msgspec.Raw]:
        """The objects."""
        return self.listed or []


class Event(msgspec.Struct, frozen=True):
    """A line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: msgspec.Raw


_page = msgspec.json.Decoder(Page)
_event = msgspec.json.Decoder(Event)
_status = msgspec.json.Decoder(_Status, strict=False)


class Client:
    """Connections to one API server; an asynchronous context."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._made_for: tuple[Pair | None, bytes | None] = None, None
        """Who we are and whom to trust in the session."""
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in (*self._retired, *((self._session,) if self._session else ())):
            await session.close()
        self._session, self._retired = None, []
        for _ in range(int(_CLOSING_SECONDS / _CLOSING_LOOK)):
            if all(one.fileno() == -1 for one in self._sockets):
                break
            await asyncio.sleep(_CLOSING_LOOK)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """The body at a path."""
        return await self.call("GET", path, query=query)

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """The body of the answer to any request; `body` is encoded as JSON."""
        data = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if data is not None else {}
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
        async with self._answer(method, path, query=query, data=data, headers=headers, timeout=timeout) as answer:
            return await answer.read()

    async def list_pages(self, path: str, query: Mapping[str, str], accept: str = "") -> AsyncGenerator[Page, None]:
        """A list in pages of one moment; the last page's resource version is where to watch from."""
        wanted = {**query, "limit": str(PAGE)}
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS, connect=_CONNECT_SECONDS)
        while True:
            async with self._answer("GET", path, query=wanted, timeout=timeout, headers=_accept(accept)) as answer:
                page = _decode(_page, await answer.read())
            yield page
            if not page.metadata.next_page:
                return
            wanted["continue"] = page.metadata.next_page

    @contextlib.asynccontextmanager
    async def watch(self, path: str, query: Mapping[str, str], accept: str = "") -> AsyncIterator[AsyncIterator[Event]]:
        """Events until the server ends the watch; entered once it has answered. They raise Refused for an ERROR."""
        timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS, sock_read=_SILENT_SECONDS)
        wanted = {**query, "watch": "true", "allowWatchBookmarks": "true"}
        async with (
            self._answer("GET", path, query=wanted, timeout=timeout, headers=_accept(accept)) as answer,
            contextlib.aclosing(_events(answer)) as events,
        ):
            yield events

    @contextlib.asynccontextmanager
    async def _answer(
        self, method: str, path: str, *, headers: Mapping[str, str], query: Mapping[str, str] | None = None, **more: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        answer = await self._ask(method, path, headers, query, more)
        if answer.status == 401:
            answer.release()
            self._access.credentials.refused()
            answer = await self._ask(method, path, headers, query, more)
        try:
            if answer.status >= 400:
                raise await _refusal(answer)
            yield answer
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._unreachable(error) from error
        finally:
            _leave(answer)

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str] | None, more: dict[str, Any]
    ) -> aiohttp.ClientResponse:
        given = await self._access.credentials.give()
        if given.token:
            headers = {**headers, "Authorization": f"Bearer {given.token}"}
        if self._access.server_name:
            more = {**more, "server_hostname": self._access.server_name}
        try:
            return await self._session_for(given.pair).request(
                method, self._access.server + path, params=query, headers=headers, allow_redirects=False, **more
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    def _session_for(self, pair: Pair | None) -> aiohttp.ClientSession:
        known = self._made_for[1] if self._session is not None else self._access.authority
        now = pair, self._access.read_authority() or known
        if self._session is None or now != self._made_for:
            if self._session is not None:
                self._retired.append(self._session)
            secure = self._access.server.startswith("https:")
            connector = aiohttp.TCPConnector(
                limit=0,
                ssl=self._access.make_context(*now) if secure else False,
                keepalive_timeout=30,
                socket_factory=self._open_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector, read_bufsize=_LONGEST_LINE, headers={"User-Agent": "mizzen"}
            )
            self._made_for = now
        return self._session

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        opened = socket.socket(*address[:3])
        self._sockets.add(opened)
        return opened

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"the API server at {self._access.server}: {str(error) or type(error).__name__}")


async def _events(answer: aiohttp.ClientResponse) -> AsyncGenerator[Event, None]:
    while line := await answer.content.readline():
        event = _decode(_event, line)
        if event.type == "ERROR":
            said = _status.decode(event.object)
            raise Refused(said.code, said.message)
        yield event


def _leave(answer: aiohttp.ClientResponse) -> None:
    """Give the connection back, or cut it in the middle of an answer, for which TLS's own way would wait."""
    connection = answer.connection
    if connection is not None and connection.transport is not None and not answer.content.at_eof():
        connection.transport.abort()
    answer.release()


def _accept(accept: str) -> dict[str, str]:
    return {"Accept": accept} if accept else {}


async def _refusal(answer: aiohttp.ClientResponse) -> Refused:
    body = await answer.read()
    with contextlib.suppress(msgspec.DecodeError):
        said = _status.decode(body).message
        if said:
            return Refused(answer.status, said, _retry_after(answer))
    return Refused(answer.status, f"the API server answered {answer.status}", _retry_after(answer))


def _retry_after(answer: aiohttp.ClientResponse) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_AFTER) if text.isdecimal() else 0.0


def _decode(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        try:
            return decoder.decode(data)
        except RecursionError:
            return decoder.decode(shallow(data))
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Unreachable(f"the API server sent something else than was asked for: {error}") from error
