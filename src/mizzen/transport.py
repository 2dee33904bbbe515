"""The server's end of a gRPC stream in bytes, which may end under whoever serves it.

A client goes away while it is written to; a server stops while a stream wakes. gRPC tells either by an error of its own
from whatever is called next, and reports that one as a fault of the handler, unless it is raised just as it came. Here
all of them are `Gone`, and a handler that lets it through, from its tasks too, has ended: no more is done or said.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NoReturn

import grpc
import grpc.aio

from mizzen import observe

_log = observe.scope("grpc")


class Gone(Exception):
    """The stream has ended: the client went away, or the server has stopped."""


class Transport:
    """One stream; `context` has what is known of the client."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self._writing = asyncio.Lock()
        """Held by one message: gRPC refuses a second one before it has taken the first."""

    async def begin(self) -> None:
        """Send the headers now; else the first message brings them."""
        with _lasting():
            await self.context.send_initial_metadata(())

    async def read(self) -> bytes | None:
        """The next message; None when the client sends no more.

        That is also how it begins to be gone: a message that is being written then tells whether it is.
        """
        with _lasting():
            data: bytes | None = await self.context.read()
        if isinstance(data, bytes):
            return data
        async with self._writing:
            return None

    async def write(self, data: bytes) -> None:
        """Return when gRPC has taken the message, after those that others write."""
        async with self._writing:
            with _lasting():
                await self.context.write(data)

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        """End the stream with a reason; the handler has to let through what this raises."""
        with _lasting():
            await self.context.abort(code, details)
        raise AssertionError("gRPC's abort returned")


@contextlib.contextmanager
def _lasting() -> Iterator[None]:
    """Call gRPC, which says in several ways that the stream is over."""
    try:
        yield
    except (grpc.aio.AbortError, grpc.aio.UsageError):
        raise
    except grpc.aio.BaseError as error:
        raise Gone(str(error)) from error


Serve = Callable[[Transport], Awaitable[None]]


def method(serve: Serve) -> "grpc.RpcMethodHandler[bytes, bytes]":
    """The handler of a method with streams both ways, which `serve` serves."""

    async def handle(_: object, context: Any) -> None:
        gone = False
        try:
            await serve(Transport(context))
        except* Gone as group:
            gone = True
            _log.debug("a stream is gone: %s", group.exceptions[0])
        if gone:
            # Returning would have gRPC send a status, which fails for the same reason.
            raise asyncio.CancelledError

    return grpc.stream_stream_rpc_method_handler(handle)
