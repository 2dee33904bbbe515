"""An API server's kinds, as they come and go; the rest of the source is held against a real API server."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import msgspec
import virtual_loop

from mizzen.api.kinds import kind_named
from mizzen.sources.kube.client import Event, ListMeta, Page, Refused
from mizzen.sources.kube.source import KubeSource

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CHANGE = Event("MODIFIED", msgspec.Raw(b"{}"))


class Server:
    """Serves Services, and tells of CRDs what it is given."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.crds: asyncio.Queue[Event] = asyncio.Queue()
        self.refusals: dict[str, Refused] = {}
        self.listed = ["services"]

    async def get(self, path: str) -> bytes:
        self._note(path)
        return msgspec.json.encode({"resources": [{"name": name} for name in self.listed]})

    async def list_pages(self, path: str, _query: Mapping[str, str], _accept: str = "") -> AsyncGenerator[Page, None]:
        self._note(path)
        yield Page(ListMeta("1"), [])

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, _query: Mapping[str, str], _accept: str = ""
    ) -> AsyncIterator[AsyncIterator[Event]]:
        yield self._events(path)

    async def _events(self, path: str) -> AsyncIterator[Event]:
        while True:
            yield await (self.crds if path == CRDS else asyncio.Queue[Event]()).get()

    def _note(self, path: str) -> None:
        self.asked.append(path)
        if path in self.refusals:
            raise self.refusals[path]


@contextlib.asynccontextmanager
async def following(server: Server) -> AsyncIterator[KubeSource]:
    source = KubeSource(server, kinds=(kind_named("Service"),))
    task = asyncio.ensure_future(source.run(lambda _: None))
    try:
        await asyncio.sleep(60)
        yield source
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_definitions_that_change_together_are_looked_at_together():
    async def run() -> None:
        server = Server()
        async with following(server):
            before = server.asked.count("/api")
            for _ in range(100):
                server.crds.put_nowait(CHANGE)
            await asyncio.sleep(60)
            looks = server.asked.count("/api") - before
            assert looks == 3, "at once, and twice more for a server that is late"
            server.crds.put_nowait(CHANGE)
            await asyncio.sleep(60)
            assert server.asked.count("/api") == before + 2 * looks

    virtual_loop.run(run())


def test_a_kind_that_the_server_lists_some_time_after_its_definition_is_found():
    async def run() -> None:
        server = Server()
        server.listed.clear()
        async with following(server) as source:
            assert source.resource("Service") is None
            server.crds.put_nowait(CHANGE)
            await asyncio.sleep(5)
            server.listed.append("services")
            await asyncio.sleep(60)
            assert source.resource("Service") is not None

    virtual_loop.run(run())


def test_a_look_at_the_kinds_that_fails_is_made_again():
    async def run() -> None:
        server = Server()
        async with following(server) as source:
            server.refusals["/api"] = Refused(500, "not now")
            server.crds.put_nowait(CHANGE)
            await asyncio.sleep(60)
            assert source.resource("Service") is not None
            refused = server.asked.count("/api")
            del server.refusals["/api"]
            await asyncio.sleep(60)
            asked = server.asked.count("/api")
            assert asked > refused
            await asyncio.sleep(600)
            assert server.asked.count("/api") == asked

    virtual_loop.run(run())


def test_who_may_not_list_definitions_asks_more_and_more_rarely_and_is_told_once(caplog):
    async def run() -> None:
        server = Server()
        server.refusals[CRDS] = Refused(403, "customresourcedefinitions is forbidden")
        async with following(server):
            server.asked.clear()
            await asyncio.sleep(3600)
            assert 100 < server.asked.count(CRDS) < 300

    virtual_loop.run(run())
    assert [record.getMessage() for record in caplog.records if "forbidden" in record.getMessage()] == [
        f"{CRDS}: customresourcedefinitions is forbidden; kinds that come and go are not heard of"
    ]
