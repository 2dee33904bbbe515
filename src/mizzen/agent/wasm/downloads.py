"""HTTP for modules: a few attempts, bounded in time and size.

In: an address. Out: a reply, whatever its status, or `AgentError` where none came. Attempts follow each other while
nobody answers, or answers that it might do so later. `unpack` finds the module in what servers wrap it in.
"""

import asyncio
import gzip
import io
import tarfile
import zlib
from collections.abc import Collection, Mapping

import aiohttp
import msgspec
import yarl

from mizzen.agent.control_plane import BackOff
from mizzen.errors import AgentError

LARGEST_BYTES = 256 * 1024 * 1024
_MAGIC = b"\0asm"
_GZIP = b"\x1f\x8b"
_PART_BYTES = 1 << 16
_LONGEST_PAUSE = 5.0
_PASSING = frozenset({408, 425, 429, *range(500, 600)})
"""Statuses after which another attempt may do better."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Downloads:
    """Fetches with one client session; `insecure` are the servers (host or host:port) whose certificate may be any."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        insecure: Collection[str] = (),
        seconds: float = 15.0,
        retries: int = 5,
        first_pause: float = 0.5,
    ) -> None:
        self._session = session
        self._insecure = frozenset(insecure)
        self._seconds = seconds
        self._retries = retries
        self._first_pause = first_pause

    def is_insecure(self, host: str) -> bool:
        """Whether plain text and unknown certificates are good enough for this server."""
        return host in self._insecure or host.partition(":")[0] in self._insecure

    async def get(self, address: str, headers: Mapping[str, str] | None = None) -> Reply:
        """The reply to a GET, redirects followed."""
        pauses = BackOff(self._first_pause, _LONGEST_PAUSE)
        left = self._retries
        while True:
            reply, reason = await self._attempt(address, headers or {})
            if reply is not None and (reply.status not in _PASSING or not left):
                return reply
            if not left:
                raise AgentError(f"{address}: {reason}")
            left -= 1
            await asyncio.sleep(pauses.delay())

    async def _attempt(self, address: str, headers: Mapping[str, str]) -> tuple[Reply | None, str]:
        """A reply, or why there is none."""
        try:
            async with asyncio.timeout(self._seconds):
                verifies = not self.is_insecure(yarl.URL(address).authority)
                async with self._session.get(address, headers=headers, ssl=verifies) as response:
                    body = await _read(response)
                    named = {name.lower(): value for name, value in response.headers.items()}
                    return Reply(status=response.status, headers=named, body=body), ""
        except TimeoutError:
            return None, f"no answer within {self._seconds:.0f} s"
        except (aiohttp.ClientError, OSError) as failed:
            if isinstance(failed, aiohttp.InvalidURL):
                raise AgentError(f"{address} is no address") from failed
            return None, str(failed) or type(failed).__name__
        except ValueError as bad:  # Ports and hosts that are none are told in several ways.
            raise AgentError(f"{address} is no address: {bad}") from bad


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_chunked(_PART_BYTES):
        size += len(part)
        if size > LARGEST_BYTES:
            raise AgentError(f"{response.url} is larger than {LARGEST_BYTES >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def unpack(content: bytes) -> bytes:
    """The module in what a server or an image layer holds: itself, compressed, or the first `.wasm` of an archive."""
    if content.startswith(_GZIP):
        content = _decompress(content)
    if not content.startswith(_MAGIC):
        content = _extract(content)
    if not content.startswith(_MAGIC):
        raise AgentError("what was fetched is no Wasm module")
    return content


def _decompress(content: bytes) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            plain = file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as bad:
        raise AgentError(f"what was fetched cannot be decompressed: {bad}") from bad
    if len(plain) > LARGEST_BYTES:
        raise AgentError(f"what was fetched is larger than {LARGEST_BYTES >> 20} MiB when decompressed")
    return plain


def _extract(content: bytes) -> bytes:
    """The first module in a tar archive; empty if that is not what it is."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(".wasm"):
                    if member.size > LARGEST_BYTES:  # Of a sparse file, more than the archive holds.
                        raise AgentError(f"{member.name} is larger than {LARGEST_BYTES >> 20} MiB when unpacked")
                    file = archive.extractfile(member)
                    return file.read() if file is not None else b""
    except (tarfile.TarError, ValueError):  # Python lets numbers through that are none.
        pass
    return b""
