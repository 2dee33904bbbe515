"""gRPC servers on Unix sockets, for Envoy alone.

Who may connect is the file system's matter: the socket belongs to Envoy's user and nobody else may use it.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import grpc
import grpc.aio

from mizzen import transport
from mizzen.agent.files import make_private_folder
from mizzen.errors import AgentError

_LONGEST = 107
"""Bytes of a socket's path that the kernel takes."""

_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),
)


@contextlib.asynccontextmanager
async def serve_grpc(
    service: str, methods: Mapping[str, transport.Serve], path: Path, uid: int | None
) -> AsyncIterator[None]:
    """Serve methods with streams both ways at `path` for as long as the context lasts."""
    if len(os.fsencode(path)) > _LONGEST:
        raise AgentError(f"{path}: longer than the {_LONGEST} bytes of a socket's path; choose a shorter directory")
    server = grpc.aio.server(options=_OPTIONS)
    handlers = {name: transport.method(serve) for name, serve in methods.items()}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    try:
        _make_place(path)
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        give_to(path, uid)
    except (OSError, RuntimeError) as failed:
        await server.stop(None)
        raise AgentError(f"cannot listen on {path}: {failed}") from failed
    try:
        yield
    finally:
        await server.stop(None)


def _make_place(path: Path) -> None:
    """The socket's folder, without what an earlier process left at its place."""
    make_private_folder(path.parent)
    path.unlink(missing_ok=True)


def give_to(path: Path, uid: int | None) -> None:
    """Let only the user `uid` use the socket at `path`; None keeps it with this process's user."""
    path.chmod(0o600)
    if uid is not None and uid != os.geteuid():
        os.chown(path, uid, -1)
        os.chown(path.parent, uid, -1)
