"""An address behind which the server can be exchanged: connections are carried byte by byte, and cut at the exchange."""

import asyncio
import contextlib
import threading

Target = tuple[str, int]


class Gate:
    """Listens at once, in a thread of its own; without a target, connections are closed."""

    def __init__(self, host: str, port: int) -> None:
        self._target: Target | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._carry, host, port))

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"{host}:{port}"

    def hold(self) -> None:
        """Carry nothing any more, and end nothing: each side only hears no more of the other."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def lead_to(self, target: Target | None) -> None:
        """Cut what there is; connections that come from now on reach the target."""
        self._call(self._exchange(target))

    async def _exchange(self, target: Target | None) -> None:
        self._target = target
        for writer in list(self._writers):
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = self._target
        if target is None:
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        if self._target != target:  # Exchanged meanwhile.
            far_writer.transport.abort()
            writer.transport.abort()
            return
        pair = {writer, far_writer}
        self._writers |= pair
        with contextlib.suppress(OSError):
            await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._writers -= pair
        for one in pair:
            one.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    def close(self) -> None:
        """Cut everything and listen no more."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _end(self) -> None:
        self._flows.set()
        self._server.close()
        await self._exchange(None)
