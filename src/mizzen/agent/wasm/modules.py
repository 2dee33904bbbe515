"""The modules on disk: each fetched once, checked, and kept as long as somebody wants it.

In: what a plugin wants. Out: a file that Envoy can load, or `AgentError` with the reason why there is none. A file is
named by its content; what is known about addresses is kept in memory and learnt again after a restart. As with Istio's
agent a module that is here is not fetched again, unless its plugin says `Always` (or, saying nothing, names the image
tag `latest`): then once for each version of the plugin.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from mizzen import observe
from mizzen.agent import metrics
from mizzen.agent.files import make_open_folder, write_file
from mizzen.agent.wasm.downloads import Downloads, unpack
from mizzen.agent.wasm.images import Images, parse_reference
from mizzen.errors import AgentError

_log = observe.scope("wasm")

Policy = Literal["", "IfNotPresent", "Always"]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin says about its module."""

    plugin: str
    version: str
    """The version of the plugin's own object."""
    url: str
    checksum: str = ""
    """SHA-256 in hexadecimal: of a module by HTTP, of the manifest of an image."""
    policy: Policy = ""
    logins: str = ""
    """A .dockerconfigjson."""

    def __repr__(self) -> str:
        return f"Wanted({self.plugin!r}, url={self.url!r}, with_logins={bool(self.logins)})"

    @property
    def refreshes(self) -> bool:
        """Whether a module that is here may be an old one."""
        if self.checksum:
            return False
        moves = self.url.startswith("oci://") and parse_reference(self.url).moves
        return self.policy == "Always" or (not self.policy and moves)


class _Known(msgspec.Struct):
    """What was found at an address."""

    path: Path
    versions: dict[str, str]
    """For which versions of which plugins it was fetched."""


class Modules:
    """The folder of modules."""

    def __init__(
        self, folder: Path, downloads: Downloads, *, expiry: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._downloads = downloads
        self._images = Images(downloads)
        self._expiry = expiry
        self._clock = clock
        self._known: dict[tuple[str, str], _Known] = {}
        self._fetching: dict[tuple[str, str], asyncio.Lock] = {}

    async def get(self, wanted: Wanted) -> Path:
        """The module's file."""
        key = (wanted.url, wanted.checksum)
        async with self._fetching.setdefault(key, asyncio.Lock()):
            known = self._known.get(key)
            fresh = known is not None and self._is_good(known, wanted)
            metrics.WASM_LOOKUPS.labels("true" if fresh else "false").inc()
            if known is None or not fresh:
                path = await self._fetch(wanted)
                versions = known.versions if known is not None else {}
                known = self._known[key] = _Known(path, versions)
            known.versions[wanted.plugin] = wanted.version
            now = self._clock()
            os.utime(known.path, (now, now))
            metrics.WASM_ENTRIES.set(len(self._known))
            return known.path

    def _is_good(self, known: _Known, wanted: Wanted) -> bool:
        seen = not wanted.refreshes or known.versions.get(wanted.plugin) == wanted.version
        return seen and known.path.exists()

    async def _fetch(self, wanted: Wanted) -> Path:
        try:
            content, digest = await self._download(wanted)
        except AgentError:
            metrics.WASM_FETCHES.labels("download_failure").inc()
            raise
        if wanted.checksum and digest != wanted.checksum.lower():
            metrics.WASM_FETCHES.labels("checksum_mismatched").inc()
            raise AgentError(f"{wanted.url} has the checksum {digest}, not {wanted.checksum}")
        metrics.WASM_FETCHES.labels("success").inc()
        path = (self._folder / f"{hashlib.sha256(content).hexdigest()}.wasm").resolve()
        try:
            # Envoy may be another user than the agent, and a module is no secret within the pod.
            make_open_folder(self._folder)
            await asyncio.to_thread(write_file, path, content, mode=0o644)
        except OSError as full:
            raise AgentError(f"{wanted.url} cannot be kept: {full}") from full
        _log.info("%s fetched from %s", wanted.plugin, wanted.url)
        return path

    async def _download(self, wanted: Wanted) -> tuple[bytes, str]:
        """The module and what its checksum is compared with."""
        if wanted.url.startswith("oci://"):
            return await self._images.fetch(parse_reference(wanted.url), wanted.logins)
        reply = await self._downloads.get(wanted.url)
        if reply.status != 200:
            raise AgentError(f"{wanted.url} answers {reply.status}")
        return await asyncio.to_thread(unpack, reply.body), hashlib.sha256(reply.body).hexdigest()

    def purge(self, used: Collection[Path]) -> None:
        """Removes what nobody wanted for long; `used` are those that Envoy may load again at any time."""
        limit = self._clock() - self._expiry
        for path in self._files():
            try:
                if path.resolve() not in used and path.stat().st_mtime < limit:
                    path.unlink(missing_ok=True)
            except OSError as failed:
                _log.warning("%s cannot be removed: %s", path, failed)
        self._known = {key: known for key, known in self._known.items() if known.path.exists()}
        self._fetching = {key: lock for key, lock in self._fetching.items() if key in self._known or lock.locked()}
        metrics.WASM_ENTRIES.set(len(self._known))

    def _files(self) -> Iterator[Path]:
        if self._folder.is_dir():
            yield from sorted(self._folder.glob("*.wasm"))
