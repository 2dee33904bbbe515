"""Key sets of token issuers: fetched, kept and refreshed.

In: RequestAuthentications as they come and go. Out: an input for each key set that one of them names, under the key
that `compile.security.tokens` reads, and a Problem on the object for each that cannot be fetched. Until there is a key
set, tokens of its issuer are refused; one that was fetched stays in force while its issuer cannot be reached, and is
forgotten if nobody names it when it is due for a refresh. Each URL is fetched by one task, at most so many at once; a
failure is tried again after a minute, then after longer.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Iterator

import msgspec

from mizzen import observe, settings
from mizzen.api.meta import Key
from mizzen.api.policy import RequestAuthentication
from mizzen.api.problems import Problem
from mizzen.compile.security import tokens
from mizzen.control.fetching import Fetcher, FetchError

_log = observe.scope("jwks")
_FETCHED = observe.Counter(
    "pilot_jwks_resolver_network_fetch_success_total", "Key sets fetched, and documents that say where they are."
)
_FAILED = observe.Counter("pilot_jwks_resolver_network_fetch_fail_total", "Fetches of key sets that failed.")

_AT_ONCE = 64
_JITTER = 0.1

Feed = Callable[[Key, str | None], None]


class _Document(msgspec.Struct, frozen=True):
    """A key set, or the discovery document that says where it is."""

    keys: list[msgspec.Raw] | None = None
    jwks_uri: str = ""


class _Known:
    """One URL."""

    def __init__(self) -> None:
        self.named_by: set[Key] = set()
        self.task: asyncio.Task[None] | None = None
        self.tried = False
        self.held = False
        """Whether a key set was ever fetched, and is in force."""
        self.fault = ""


class KeySets:
    """All key sets that are named."""

    def __init__(self, feed: Feed, config: settings.KeySets, report: Callable[[], None] = lambda: None) -> None:
        """`report` is called whenever `problems` may have changed."""
        self._feed = feed
        self._config = config
        self._report = report
        self._known: dict[str, _Known] = {}
        self._named: dict[Key, frozenset[str]] = {}
        self._changed = asyncio.Event()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._then: list[Callable[[], None]] = []

    def follow(self, key: Key, policy: RequestAuthentication | None) -> None:
        """A RequestAuthentication is now this, or gone."""
        now = frozenset(_uris(policy)) if policy is not None else frozenset()
        before = self._named.pop(key, frozenset())
        if now:
            self._named[key] = now
        for uri in before - now:
            self._known[uri].named_by.discard(key)
        for uri in now - before:
            self._known.setdefault(uri, _Known()).named_by.add(key)
        self._changed.set()

    def problems(self) -> Iterator[Problem]:
        """What is wrong now, on each object that names such a key set."""
        for uri, known in sorted(self._known.items()):
            effect = "the last one stays in force" if known.held else "its issuer's tokens are refused"
            for key in sorted(known.named_by) if known.fault else ():
                message = f"no key set from {uri}: {known.fault}; {effect}"
                yield Problem(key=key, code="key-set", message=message, level="warning" if known.held else "error")

    def after_first_tries(self, then: Callable[[], None]) -> None:
        """Call `then` once every key set was tried; soon, even if many issuers do not answer."""
        self._then.append(then)
        self._tell()
        if self._then:
            asyncio.get_running_loop().call_later(self._config.first_wait, self._tell_anyway)

    def _tell(self) -> None:
        if all(known.tried for known in self._known.values()):
            self._tell_anyway()

    def _tell_anyway(self) -> None:
        waiting, self._then = self._then, []
        for then in waiting:
            then()

    # -- fetching -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fetch until cancelled."""
        async with Fetcher(self._config) as fetcher, asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                for uri, known in self._known.items():
                    if known.task is None:
                        known.task = tasks.create_task(self._keep(uri, known, fetcher), name=f"key set {uri}")
                await self._changed.wait()

    async def _keep(self, uri: str, known: _Known, fetcher: Fetcher) -> None:
        """Keep one key set fresh while somebody names it."""
        wait = self._config.retry_first
        while True:
            if await self._try(uri, known, fetcher):
                wait = self._config.retry_first
                await _sleep(self._config.refresh_interval)
            else:
                await _sleep(wait)
                wait = min(2 * wait, self._config.retry_longest)
            if not known.named_by:
                break
        del self._known[uri]
        self._feed(_input(uri), None)

    async def _try(self, uri: str, known: _Known, fetcher: Fetcher) -> bool:
        """Fetch, a few times in a row after the first try ever."""
        tries = self._config.tries if known.tried else 1
        for left in reversed(range(tries)):
            fault = await self._fetch(uri, known, fetcher)
            if fault != known.fault:
                known.fault = fault
                self._report()
            if not known.tried:
                known.tried = True
                self._tell()
            if not known.fault:
                return True
            if left:
                await asyncio.sleep(self._config.spacing)
        return False

    async def _fetch(self, uri: str, known: _Known, fetcher: Fetcher) -> str:
        """Fetch once, at one of the places; what was wrong, or an empty text."""
        try:
            async with self._places:
                text = await fetch_key_set(uri, fetcher)
        except FetchError as error:
            _FAILED.inc()
            return str(error)
        except Exception as error:
            # Whatever a user's URL brings about must not end what fetches the others.
            _FAILED.inc()
            _log.exception("key set of %s", uri)
            return f"unexpected {type(error).__name__}"
        _FETCHED.inc()
        known.held = True
        self._feed(_input(uri), text)
        return ""


def _uris(policy: RequestAuthentication) -> Iterable[str]:
    return (tokens.key_set_uri(rule) for rule in policy.spec.jwt_rules if not rule.jwks)


def _input(uri: str) -> Key:
    return Key(tokens.KEY_SET, "", uri)


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds * random.uniform(1 - _JITTER, 1 + _JITTER))


async def fetch_key_set(uri: str, fetcher: Fetcher) -> str:
    """The key set at a URL, or at the one that a discovery document there names; raises FetchError."""
    text, document = await _read(uri, fetcher)
    if document.keys is None and document.jwks_uri:
        text, document = await _read(document.jwks_uri, fetcher)
    if document.keys is None:
        raise FetchError("the document holds no keys")
    return text


async def _read(uri: str, fetcher: Fetcher) -> tuple[str, _Document]:
    body = await fetcher.fetch(uri)
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body.decode(), msgspec.json.decode(body, type=_Document)
    raise FetchError("the document is not the JSON of a key set")
