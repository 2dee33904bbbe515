"""Roots of other trust domains, fetched where the mesh config says (`caCertificates[].spiffeBundleUrl`).

In: the URLs of the mesh config. Out: an input for each bundle that was fetched, which `compile.trust_bundles` pushes to
agents. A bundle is fetched again in time, for trust domains exchange their roots; one that was fetched stays in force
while its endpoint cannot be reached, and goes when the mesh config names it no longer.
"""

import asyncio
from collections.abc import Callable, Iterable

from mizzen import observe, settings
from mizzen.api.meta import Key
from mizzen.ca import bundles
from mizzen.control.fetching import Fetcher, FetchError
from mizzen.errors import AuthorityError
from mizzen.model.mesh import spiffe_bundle_key

_REFRESH = 1800.0
"""Seconds between two fetches of a bundle, as in Istio."""
_RETRY = 30.0

_log = observe.scope("ca")

Feed = Callable[[Key, str | None], None]


class SpiffeBundles:
    """All bundles that are named."""

    def __init__(
        self, feed: Feed, config: settings.KeySets, *, refresh: float = _REFRESH, retry: float = _RETRY
    ) -> None:
        self._feed = feed
        self._config = config
        self._refresh = refresh
        self._retry = retry
        self._named: frozenset[str] = frozenset()
        self._held: set[str] = set()
        self._changed = asyncio.Event()

    def follow(self, urls: Iterable[str]) -> None:
        """The mesh config names these now."""
        named = frozenset(urls)
        if named == self._named:
            return
        self._named = named
        for url in self._held - named:
            self._feed(spiffe_bundle_key(url), None)
        self._held &= named
        self._changed.set()

    async def run(self) -> None:
        """Fetch until cancelled."""
        while True:
            self._changed.clear()
            wait = await self._fetch_all() if self._named else None
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _fetch_all(self) -> float:
        """Fetch every bundle; the seconds until they are due again."""
        try:
            async with Fetcher(self._config) as fetcher:
                done = await asyncio.gather(*(self._fetch(url, fetcher) for url in sorted(self._named)))
        except FetchError as failed:
            _log.warning("no SPIFFE bundle is fetched: %s", failed)
            return self._retry
        return self._refresh if all(done) else self._retry

    async def _fetch(self, url: str, fetcher: Fetcher) -> bool:
        try:
            pem = bundles.decode_bundle((await fetcher.fetch(url)).decode(errors="replace"))
        except (FetchError, AuthorityError) as failed:
            effect = "the last one stays in force" if url in self._held else "its trust domain is not trusted"
            _log.warning("no SPIFFE bundle from %s: %s; %s", url, failed, effect)
            return False
        if url in self._named:
            self._held.add(url)
            self._feed(spiffe_bundle_key(url), pem)
        return True
