"""Tokens that an API server verifies: TokenReview, remembered for a while.

In: bearer tokens. Out: the service account that the server vouches for, for audiences of ours alone. A verdict is asked
for again after some minutes, since tokens of deleted pods stop being good; while the server is away what it last said
holds until the token ends, so that known proxies can come back and a forged token still cannot come in.
"""

import asyncio
import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from mizzen import observe
from mizzen.ca.tokens import ServiceAccount
from mizzen.errors import AuthorityError, SourceError
from mizzen.sources.kube.client import Client

_log = observe.scope("token")
_REVIEWS = observe.Counter("mizzen_token_reviews", "Tokens asked about at the API server.", ("result",))

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_SUBJECT = "system:serviceaccount:"
_GROUP = "system:serviceaccounts"
_POD, _POD_UID, _NODE = (f"authentication.kubernetes.io/{name}" for name in ("pod-name", "pod-uid", "node-name"))
_GOOD_SECONDS = 300.0
_PATIENCE = 5.0
"""Seconds that whose token was good before waits for a new verdict: less than callers wait for us."""
_AT_ONCE = 32
"""Reviews that the server is asked for at once, whoever comes back and whatever strangers send."""
_LONGEST = 10.0
"""Seconds that a review may take: as long as an agent waits for its certificate."""
_MOST = 50_000
_LARGEST_TOKEN = 16 * 1024


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: tuple[str, ...] = ()
    error: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class _Known(NamedTuple):
    account: ServiceAccount
    reviewed: float
    ends: float


class TokenReviews:
    """A `TokenVerifier` that asks an API server."""

    def __init__(
        self, client: Client, audiences: Sequence[str], clock: Callable[[], float], *, patience: float = _PATIENCE
    ) -> None:
        self._client, self._audiences, self._clock, self._patience = client, tuple(audiences), clock, patience
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[ServiceAccount]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def verify(self, token: str) -> ServiceAccount:
        """Whom a good token speaks for; raises AuthorityError for any other, and when nobody can say."""
        if len(token) > _LARGEST_TOKEN:
            raise AuthorityError("the token is too long")
        digest, now = hashlib.sha256(token.encode()).digest(), self._clock()
        known = self._known.get(digest)
        if known is not None and known.reviewed <= now < min(known.reviewed + _GOOD_SECONDS, known.ends):
            return known.account
        task = self._asking.get(digest)
        if task is None:
            task = asyncio.ensure_future(self._ask(digest, token))
            self._asking[digest] = task
            task.add_done_callback(lambda done: self._answered(digest, done))
        if known is not None and now < known.ends:
            await asyncio.wait((task,), timeout=self._patience)
            if not task.done():
                return self._remembered(digest, TimeoutError("no answer yet"))
        return await asyncio.shield(task)

    def _answered(self, digest: bytes, task: asyncio.Task[ServiceAccount]) -> None:
        del self._asking[digest]
        if not task.cancelled():
            task.exception()  # Whoever asked may have gone on without it.

    async def _ask(self, digest: bytes, token: str) -> ServiceAccount:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": self._audiences},
        }
        try:
            async with self._places, asyncio.timeout(_LONGEST):
                answer = await self._client.call("POST", _PATH, body)
            status = msgspec.json.decode(answer, type=_Review).status
        except (SourceError, TimeoutError, msgspec.DecodeError) as error:
            # A server that is away, overloaded, or has just started and knows no roles yet: none of it is a verdict.
            return self._remembered(digest, error)
        try:
            account = _account(status, self._audiences)
        except AuthorityError:
            _REVIEWS.labels("refused").inc()
            self._known.pop(digest, None)
            raise
        _REVIEWS.labels("accepted").inc()
        self._known[digest] = _Known(account, self._clock(), _end_of(token))
        self._known.move_to_end(digest)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return account

    def _remembered(self, digest: bytes, error: Exception) -> ServiceAccount:
        """What the server last said of this token, as long as the token lasts."""
        known = self._known.get(digest)
        if known is None or self._clock() >= known.ends:
            _REVIEWS.labels("error").inc()
            raise AuthorityError(f"the token cannot be reviewed: {str(error) or 'no answer in time'}") from error
        _REVIEWS.labels("remembered").inc()
        return known.account


def _account(status: _Status, audiences: tuple[str, ...]) -> ServiceAccount:
    if not status.authenticated:
        raise AuthorityError(f"the API server refuses the token: {status.error or 'not authenticated'}")
    if not set(audiences) & set(status.audiences):
        raise AuthorityError("the token is for another audience")
    user = status.user
    namespace, _, name = user.username.removeprefix(_SUBJECT).partition(":")
    if not user.username.startswith(_SUBJECT) or _GROUP not in user.groups or not namespace or not name:
        raise AuthorityError("the token is of no service account")

    def extra(key: str) -> str:
        return next(iter(user.extra.get(key, ())), "")

    return ServiceAccount(namespace=namespace, name=name, pod=extra(_POD), pod_uid=extra(_POD_UID), node=extra(_NODE))


def _end_of(token: str) -> float:
    """When a token that the server accepts ends, as it says itself; at once where it does not."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return 0.0
