"""Verdicts on tokens: remembered while nobody gives another, and taken back by one that does."""

import asyncio
import base64
import json
from typing import Any

import pytest
from eventually import eventually

from mizzen.control.token_reviews import TokenReviews
from mizzen.errors import AuthorityError, SourceError
from mizzen.sources.kube.client import Refused, Unreachable

USER = {"username": "system:serviceaccount:shop:cart", "groups": ["system:serviceaccounts"]}
GOOD = {"status": {"authenticated": True, "user": USER, "audiences": ["istio-ca"]}}
SILENCE = object()
"""A server that has taken the question and says nothing, as behind a connection that is dead and does not know."""
BAD = {"status": {"authenticated": False, "error": "revoked"}}


class Server:
    """An API server that answers what it is told to, and a clock."""

    def __init__(self, patience: float = 60.0) -> None:
        self.answer: Any = GOOD
        self.now = 1000.0
        self.asked = 0
        """Questions that it has taken while it said nothing."""
        self.released = asyncio.Event()
        self.reviews = TokenReviews(self, ("istio-ca",), lambda: self.now, patience=patience)  # type: ignore[arg-type]

    async def call(self, *_: object) -> bytes:
        if self.answer is SILENCE:
            self.asked += 1
            await self.released.wait()
            return json.dumps(GOOD).encode()
        if isinstance(self.answer, Exception):
            raise self.answer
        return json.dumps(self.answer).encode() if isinstance(self.answer, dict) else self.answer

    async def believes(self, token: str) -> bool:
        try:
            account = await self.reviews.verify(token)
        except AuthorityError:
            return False
        return (account.namespace, account.name) == ("shop", "cart")


def token(ends: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends}).encode()).decode().rstrip("=")
    return f"e30.{claims}.s"


@pytest.mark.parametrize(
    "silence",
    [Unreachable("away"), Refused(503, "overloaded"), Refused(429, "later"), Refused(403, "no roles yet"), b"<html>"],
    ids=["away", "503", "429", "403", "no JSON"],
)
async def test_without_a_new_verdict_the_last_one_holds_until_the_token_ends(silence: SourceError | bytes) -> None:
    server, known = Server(), token(5000)
    assert await server.believes(known)
    server.answer = silence
    server.now += 301
    assert await server.believes(known)
    assert not await server.believes(token(5001)), "nobody has vouched for it"
    server.now = 5000
    assert not await server.believes(known), "it has ended"


async def test_a_new_verdict_takes_the_last_one_back() -> None:
    server, known = Server(), token(5000)
    assert await server.believes(known)
    server.answer = BAD
    server.now += 301
    assert not await server.believes(known)
    server.answer = Unreachable("away")
    assert not await server.believes(known)


async def test_a_server_that_says_nothing_keeps_no_known_token_waiting() -> None:
    server, known = Server(patience=0.1), token(5000)
    assert await server.believes(known)
    server.answer = SILENCE
    server.now += 301
    async with asyncio.timeout(30):
        assert await server.believes(known)
        assert await server.believes(known)
    server.now = 5000
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await server.believes(known)


async def test_a_clock_that_was_ahead_makes_no_verdict_last() -> None:
    server, known = Server(), token(500_000)
    server.now = 100_000.0
    assert await server.believes(known)
    server.now = 1000.0
    server.answer = BAD
    assert not await server.believes(known)


async def test_a_crowd_of_tokens_is_reviewed_a_few_at_a_time() -> None:
    server = Server()
    server.answer = SILENCE
    crowd = [asyncio.create_task(server.believes(token(5000 + number))) for number in range(300)]
    await eventually(lambda: server.asked > 0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert server.asked <= 64
    server.released.set()
    assert all(await asyncio.gather(*crowd))
    assert server.asked == 300
