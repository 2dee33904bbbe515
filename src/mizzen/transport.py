"""The server's end of a gRPC stream in bytes, which may end under whoever serves it.

A client goes away while it is written to; a server stops while a stream wakes. gRPC tells either by an error of its own
from whatever is called next, and reports that one as a fault of the handler, unless it is raised just as it came. Here
all of them are `Gone`, and a handler that lets it through, from its tasks too, has ended: no more is done or said.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn

import grpc
import grpc.aio

from mizzen import observe

_log = observe.scope("grpc")


def read_chain(properties: Mapping[str, Sequence[bytes]]) -> tuple[bytes, ...]:
    """The client's certificate and what came along of its chain, as PEM, from what gRPC says of the peer."""
    # The chain that a server sees lacks its first certificate.
    return (*properties.get("x509_pem_cert", ()), *properties.get("x509_pem_cert_chain", ()))


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
        try:
            await self.context.send_initial_metadata(())
        except grpc.aio.BaseError as error:
            _tell_gone(error)
            raise

    async def read(self) -> bytes | None:
        """The next message; None when the client sends no more.

        That is also how it begins to be gone: a message that is being written then tells whether it is.
        """
        try:
            data: bytes | None = await self.context.read()
        except grpc.aio.BaseError as error:
            _tell_gone(error)
            raise
        if isinstance(data, bytes):
            return data
        async with self._writing:
            return None

    async def write(self, data: bytes) -> None:
        """Return when gRPC has taken the message, after those that others write."""
        async with self._writing:
            try:
                await self.context.write(data)
            except grpc.aio.BaseError as error:
                _tell_gone(error)
                raise

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        """End the stream with a reason; the handler has to let through what this raises."""
        try:
            await self.context.abort(code, details)
        except grpc.aio.BaseError as error:
            _tell_gone(error)
            raise
        raise AssertionError("gRPC's abort returned")


def _tell_gone(error: Exception) -> None:
    """Raise Gone where an error of gRPC, which says so in several ways, means that the stream is over."""
    if not isinstance(error, grpc.aio.AbortError | grpc.aio.UsageError):
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
