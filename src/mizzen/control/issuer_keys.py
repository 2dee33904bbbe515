"""The keys of the issuer that `JWT_RULE` trusts: fetched when a token needs them, kept, and fetched again in time.

In: ids of keys that tokens name. Out: public keys. A key set is fetched anew when it is old, and when a token names a
key that it lacks, for issuers exchange keys; but never more often than `_SHORTEST`, whatever tokens strangers send. One
that was fetched stays in force while its issuer cannot be reached.
"""

import asyncio
import time
from collections.abc import Callable

from mizzen import observe, settings
from mizzen.ca import issuers
from mizzen.ca.tokens import PublicKey
from mizzen.control.fetching import Fetcher, FetchError
from mizzen.control.jwks import fetch_key_set
from mizzen.errors import AuthorityError

_SHORTEST = 10.0
"""Seconds between two fetches."""

_log = observe.scope("ca")


class FetchedKeys:
    """The key set at one URL."""

    def __init__(self, uri: str, config: settings.KeySets, clock: Callable[[], float] = time.monotonic) -> None:
        self._uri = uri
        self._config = config
        self._clock = clock
        self._keys: issuers.KeySet = {}
        self._fetched_at = -float("inf")
        self._tried_at = -float("inf")
        self._fault = ""
        self._fetching = asyncio.Lock()

    async def find(self, name: str | None) -> PublicKey:
        """The key of that id, or the only one there is; raises AuthorityError where there is none."""
        if self._clock() - self._fetched_at > self._config.refresh_interval:
            await self._fetch()
        try:
            return self._select(name)
        except AuthorityError:
            await self._fetch()
            return self._select(name)

    def _select(self, name: str | None) -> PublicKey:
        if not self._keys:
            raise AuthorityError(f"the issuer's keys are not known: {self._fault or 'not fetched yet'}")
        return issuers.select_key(self._keys, name)

    async def _fetch(self) -> None:
        """Fetch, unless that was tried a moment ago; whoever comes meanwhile waits for the same answer."""
        async with self._fetching:
            if self._clock() - self._tried_at < _SHORTEST:
                return
            self._tried_at = self._clock()
            try:
                async with Fetcher(self._config) as fetcher:
                    self._keys = issuers.decode_key_set(await fetch_key_set(self._uri, fetcher))
            except (FetchError, AuthorityError) as failed:
                self._fault = str(failed)
                _log.warning("no key set from %s: %s", self._uri, failed)
                return
            self._fetched_at = self._clock()
            self._fault = ""
