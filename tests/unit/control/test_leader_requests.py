"""What a leader asks and writes: within its budget, under its name, and not after its term."""

from typing import Any

import virtual_loop

from mizzen.control.leader_requests import LeaderRequests
from mizzen.sources.kube.client import APPLY_PATCH, MERGE_PATCH


class Server:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.read: list[tuple[str, float]] = []
        self.written: list[tuple[Any, ...]] = []

    async def get(self, path: str) -> bytes:
        self.read.append((path, virtual_loop.now()))
        return b"{}"

    async def call(self, method: str, path: str, body: object, *, query: dict[str, str], content_type: str) -> bytes:
        self.written.append((method, path, body, query, content_type))
        return b"written"


def test_a_write_is_under_the_name_of_its_manager_and_only_an_apply_takes_fields_from_others():
    async def run() -> None:
        server = Server()
        requests = LeaderRequests(server, lambda: True)
        assert await requests.write("PATCH", "/a", {"b": 1}, manager="m") == b"written"
        await requests.write("PATCH", "/a", {}, manager="n", content_type=APPLY_PATCH)
        assert server.written == [
            ("PATCH", "/a", {"b": 1}, {"fieldManager": "m"}, MERGE_PATCH),
            ("PATCH", "/a", {}, {"fieldManager": "n", "force": "true"}, APPLY_PATCH),
        ]

    virtual_loop.run(run())


def test_whoever_lost_its_term_while_it_waited_writes_nothing():
    async def run() -> None:
        server, ends = Server(), 1.0
        requests = LeaderRequests(server, lambda: virtual_loop.now() < ends)
        for number in range(200):
            await requests.get(f"/{number}")
        assert virtual_loop.now() > ends
        assert server.read[-1][1] > server.read[0][1]
        assert await requests.write("PATCH", "/a", {}, manager="m") is None
        assert not server.written

    virtual_loop.run(run())
