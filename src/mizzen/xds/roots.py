"""The roots that connected proxies need, and the streams behind each.

In: subscriptions of streams. Out: the resources of one root, fetched once for all its followers, who are told when the
value has really changed; and, after a commit, the streams that it may have reached. What a stream does then is its own
business.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from mizzen import observe
from mizzen.compile.resource import ResourceSet
from mizzen.model.proxy import Proxy
from mizzen.xds import kinds, metrics
from mizzen.xds.costs import Cause
from mizzen.xds.generator import Generator, Root
from mizzen.xds.requests import Names

_log = observe.scope("ads")

_MOST_CAUSES = 16
"""A client that reads nothing must not make us remember more; the latest share what the others have caused."""


class Push(msgspec.Struct, frozen=True, kw_only=True):
    """Why a stream is pushed to."""

    since: float
    """Monotonic time of the oldest change in it."""
    reasons: frozenset[str]
    causes: tuple[Cause, ...] = ()
    """The commits behind it, the latest last."""

    def merge(self, other: "Push | None") -> "Push":
        """One push for both."""
        if other is None:
            return self
        causes = tuple(dict.fromkeys((*other.causes, *self.causes)))[-_MOST_CAUSES:]
        return Push(since=min(self.since, other.since), reasons=self.reasons | other.reasons, causes=causes)


class Follower(Protocol):
    """Whoever needs a root: a stream."""

    def reached(self, type_url: str) -> None:
        """A root of this type that you follow has another value now."""
        ...

    def stale(self) -> "Iterator[Followed]":
        """Your roots that a change may have reached, each looked at only when it is its turn."""
        ...

    @property
    def is_due(self) -> bool:
        """Whether a response may be due."""
        ...

    def push(self, push: Push) -> None:
        """Send what is due, soon; merges with what is pending."""
        ...


class Followed:
    """One root and who follows it."""

    __slots__ = ("_failure", "_value", "followers", "root", "type_url")

    def __init__(self, root: Root, type_url: str) -> None:
        self.root = root
        self.type_url = type_url
        self.followers: dict[Follower, int] = {}
        """How often each of them follows: also twice, while one subscription takes the place of another."""
        self._value: ResourceSet | None = None
        self._failure = ""

    def fetch(self) -> ResourceSet | None:
        """The resources now; the last good ones, or None, where they cannot be compiled."""
        try:
            value = self.root.value()
        except Exception as error:  # One class of proxies must not take the others down with it.
            self._report(error)
            return self._value
        # Whoever asked while it could not be compiled for the first time got nothing, and waits.
        is_awaited = bool(self._failure) and self._value is None
        self._failure = ""
        if value is self._value:
            return value
        if is_awaited or (self._value is not None and value != self._value):
            for follower in self.followers:
                follower.reached(self.type_url)
        self._value = value
        return value

    def _report(self, error: Exception) -> None:
        metrics.INTERNAL_ERRORS.inc()
        failure = f"{type(error).__name__}: {error}"
        if failure != self._failure:
            self._failure = failure
            word = kinds.short_name(self.type_url).upper()
            _log.error("%s: cannot be compiled, the last good resources stay: %s", word, failure, exc_info=error)


class Roots:
    """All followed roots of one generator."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._followed: dict[Root, Followed] = {}
        self.commits = 0
        """Counts states of the mesh: what was fetched under one number belongs together."""

    def follow(self, follower: Follower, proxy: Proxy, type_url: str, names: Names | None) -> Followed:
        """Hold the root of these resources until `leave`."""
        root = self._generator.root(proxy, type_url, names)
        followed = self._followed.get(root)
        if followed is None:
            followed = self._followed[root] = Followed(root, type_url)
        followed.followers[follower] = followed.followers.get(follower, 0) + 1
        return followed

    def leave(self, follower: Follower, followed: Followed) -> None:
        """Undo one `follow`."""
        left = followed.followers.pop(follower, 0) - 1
        if left > 0:
            followed.followers[follower] = left
        if not followed.followers:
            self._followed.pop(followed.root, None)
        followed.root.release()

    def take_reached(self) -> list[Follower]:
        """Call after a commit: the followers that it may have reached, each once."""
        self.commits += 1
        reached: dict[Follower, None] = {}
        for root in self._generator.take_stale_roots():
            followed = self._followed.get(root)
            if followed is not None:
                reached.update(dict.fromkeys(followed.followers))
        return list(reached)

    def __len__(self) -> int:
        return len(self._followed)
