"""How long a reflector waits for an API server that fails, and what it takes for the same object as before."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest
import virtual_loop

from mizzen.sources.kube.client import Event, ListMeta, Page, Refused
from mizzen.sources.kube.reading import Reader
from mizzen.sources.kube.reflector import Held, Reflector, Timing, _is_same
from mizzen.sources.kube.served import SERVED_KINDS, Resource


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (8, 30.0), (10_000, 30.0)]
)
def test_waits_double_up_to_a_bound_and_are_spread(failures: int, longest: float) -> None:
    waits = [Timing().wait_after(failures) for _ in range(200)]
    assert all(longest / 2 <= wait <= longest for wait in waits)
    assert len(set(waits)) > 100, "replicas that lost the same server do not come back as one"


def held(version: str, **metadata: object) -> Held:
    """A plugin, of which the version counts: a module is fetched anew with each."""
    kind = next(kind for kind in SERVED_KINDS if kind.kind == "WasmPlugin")
    head = {"name": "a", "namespace": "shop", "resourceVersion": version, **metadata}
    found = Reader(Resource(kind, kind.versions[0])).read(
        msgspec.json.encode({"metadata": head, "spec": {"url": "oci://example/a"}})
    )
    return Held(found.resource_version, found.object, found.problems)


def test_another_version_of_one_generation_is_the_same_object_and_any_other_is_not() -> None:
    assert _is_same(held("1", generation=1), held("2", generation=1))
    assert not _is_same(held("1", generation=1), held("2", generation=2))
    assert not _is_same(held("1"), held("2")), "of generations nothing was said"


class Server:
    """An API server that lists nothing, and watches as it is told."""

    def __init__(self, watch: Callable[[], Awaitable[None]]) -> None:
        self._watch = watch
        self.lists = self.watches = 0

    async def list_pages(self, *_: object) -> AsyncIterator[Page]:
        self.lists += 1
        await asyncio.sleep(0.01)
        yield Page(ListMeta(resource_version="7"))

    @contextlib.asynccontextmanager
    async def watch(self, *_: object) -> AsyncIterator[AsyncIterator[Event]]:
        self.watches += 1
        await asyncio.sleep(0.01)

        async def events() -> AsyncIterator[Event]:
            await self._watch()
            return
            yield

        yield events()


def follow(server: Server, seconds: float) -> Reflector:
    """A reflector that has kept up with a server for so long."""
    kind = next(kind for kind in SERVED_KINDS if kind.kind == "Service")

    async def run() -> Reflector:
        found = Reflector(server, Resource(kind, "v1"), lambda _: None, clock=virtual_loop.now)  # type: ignore[arg-type]
        task = asyncio.ensure_future(found.run())
        await asyncio.sleep(seconds)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return found

    return virtual_loop.run(run())


async def at_once() -> None:
    """The watch ends as soon as it has begun."""


async def with_an_error() -> None:
    raise Refused(500, "the cache is not ready")


async def too_late() -> None:
    raise Refused(410, "too old resource version")


@pytest.mark.parametrize("ends", [at_once, with_an_error, too_late])
def test_watches_that_end_as_they_begin_are_begun_ever_more_rarely(ends: Callable[[], Awaitable[None]]) -> None:
    server = Server(ends)
    found = follow(server, 600.0)
    assert 20 <= server.watches <= 60
    assert server.lists <= server.watches
    assert found.trouble, "which is no watching"


def test_a_watch_that_ends_in_time_is_begun_anew_at_once() -> None:
    server = Server(lambda: asyncio.sleep(10.0))
    found = follow(server, 600.0)
    assert (server.lists, server.watches) == (1, 60)
    assert not found.trouble
    assert found.heard_at is not None
    assert found.heard_at > 590.0
