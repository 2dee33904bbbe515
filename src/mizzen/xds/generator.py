"""Where resources come from: the little that serving needs to know of the engine and the compiler.

`Generator` is the seam; `EngineGenerator` puts an `Engine` and one root query behind it. Roots are shared: asking for
the same proxy class, type and names gives the same root, and its value is compiled once.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from mizzen import observe
from mizzen.compile.resource import ResourceSet
from mizzen.incremental import Engine, Key
from mizzen.model.proxy import Proxy
from mizzen.xds import metrics
from mizzen.xds.requests import Names

_log = observe.scope("ads")


_SHOWN_ARGUMENT = 160


class Change(NamedTuple):
    """An input that is another one now."""

    object: Key
    how: str
    """`added`, `updated` or `removed`."""


class Root(Protocol):
    """A set of resources that somebody needs, kept up to date."""

    @property
    def stale(self) -> bool:
        """Whether a change since the last `value()` may have reached it."""
        ...

    def value(self) -> ResourceSet:
        """The set now. May raise what its compilation raises."""
        ...

    def release(self) -> None:
        """One holder fewer."""
        ...


class Generator(Protocol):
    """The compiled mesh, asked by proxies and changed by sources."""

    @property
    def type_urls(self) -> Collection[str]:
        """The types that are served."""
        ...

    def apply(self, changes: Mapping[Key, Any]) -> Sequence[Change]:
        """Set these inputs, or remove those whose value is None, in one step; those that are others now."""
        ...

    def root(self, proxy: Proxy, type_url: str, names: Names | None) -> Root:
        """The root of what a proxy gets of one type (of these names; None: of all); held until released."""
        ...

    def take_stale_roots(self) -> Sequence[Root]:
        """The roots that changes since the last call may have reached."""
        ...

    def collect(self) -> None:
        """Forget what no root needs."""
        ...


class EngineGenerator:
    """A `Generator` over an engine whose root query is `resources(db, proxy, type_url, names) -> ResourceSet`."""

    def __init__(self, engine: Engine, resources: Callable[..., ResourceSet], type_urls: Collection[str]) -> None:
        self._engine = engine
        self._resources = resources
        self.type_urls = frozenset(type_urls)
        self._failing: frozenset[Hashable] = frozenset()

    def apply(self, changes: Mapping[Key, Any]) -> Sequence[Change]:
        """Set or remove inputs of the engine; one that cannot be indexed is reported and keeps nobody else out."""
        made: list[Change] = []
        for key, value in changes.items():
            try:
                how = "removed" if value is None else "added" if self._engine.peek(key) is None else "updated"
                if self._engine.remove(key) if value is None else self._engine.set(key, value):
                    made.append(Change(key, how))
            except Exception:  # A fault of ours about one object must not stop the changes of all others.
                metrics.INTERNAL_ERRORS.inc()
                _log.exception("%s cannot be taken in", "/".join(key))
        return made

    def root(self, proxy: Hashable, type_url: str, names: Names | None) -> Root:
        """The engine's root for these arguments."""
        return self._engine.root(self._resources, proxy, type_url, names)

    def take_stale_roots(self) -> Sequence[Root]:
        """The engine's."""
        return self._engine.take_stale_roots()

    def collect(self) -> None:
        """The engine's; what fails to compile since the last time is reported, each once."""
        self._engine.collect()
        failures = self._engine.failures
        if not failures and not self._failing:
            return
        for address in [a for a in failures if a not in self._failing]:
            metrics.INTERNAL_ERRORS.inc()
            error = failures[address]
            _log.error("%s is left out: %s", describe_query(address), error, exc_info=error)
        self._failing = frozenset(failures)


def describe_query(address: Any) -> str:
    """A query by its name and those of its arguments that are short enough to read."""
    function, args = address
    shown = (text for arg in args if len(text := str(arg)) <= _SHOWN_ARGUMENT)
    return f"{function.__name__}({', '.join(shown)})"
