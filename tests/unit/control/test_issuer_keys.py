"""Keys of an outside issuer, fetched when tokens need them from a real HTTP server."""

import asyncio
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from issuer import Issuer

from mizzen import settings
from mizzen.control.issuer_keys import FetchedKeys
from mizzen.errors import AuthorityError

KEYS = {name: ec.generate_private_key(ec.SECP256R1()).public_key() for name in ("one", "two")}


def key_set(*names: str) -> str:
    return json.dumps(
        {"keys": [{**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEYS[name])), "kid": name} for name in names]}
    )


class Clock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def issuer():
    async with Issuer().running() as running_issuer:
        running_issuer.documents["/jwks"] = key_set("one")
        yield running_issuer


@pytest.fixture
def clock() -> Clock:
    return Clock()


def keys(issuer: Issuer, clock: Clock, path: str = "/jwks") -> FetchedKeys:
    return FetchedKeys(issuer.url(path), settings.KeySets(timeout=60.0, refresh_interval=600.0), clock)


async def test_many_tokens_at_once_fetch_once(issuer: Issuer, clock: Clock) -> None:
    known = keys(issuer, clock)
    found = await asyncio.gather(*(known.find("one") for _ in range(20)))
    assert {key.public_numbers() for key in found} == {KEYS["one"].public_numbers()}
    assert issuer.asked == ["/jwks"]


async def test_a_discovery_document_is_followed(issuer: Issuer, clock: Clock) -> None:
    issuer.documents["/.well-known"] = json.dumps({"issuer": "x", "jwks_uri": issuer.url()})
    assert await keys(issuer, clock, "/.well-known").find("one") == KEYS["one"]


async def test_what_is_nested_beyond_reason_is_no_key_set(issuer: Issuer, clock: Clock) -> None:
    known = keys(issuer, clock)
    await known.find("one")
    issuer.documents["/jwks"] = '{"keys":' + "[" * 100_000
    clock.now = 700.0
    assert await known.find("one") == KEYS["one"], "the last one stays in force"
    with pytest.raises(AuthorityError, match="does not publish"):
        await known.find("two")


async def test_an_exchanged_key_is_found_and_strangers_do_not_make_us_fetch_without_end(
    issuer: Issuer, clock: Clock
) -> None:
    known = keys(issuer, clock)
    await known.find("one")
    issuer.documents["/jwks"] = key_set("one", "two")
    with pytest.raises(AuthorityError, match="does not publish"):
        await known.find("two")
    clock.now = 11.0
    assert await known.find("two") == KEYS["two"]
    for _ in range(10):
        with pytest.raises(AuthorityError, match="does not publish"):
            await known.find("three")
    assert len(issuer.asked) == 2


async def test_a_key_that_is_withdrawn_is_forgotten_in_time(issuer: Issuer, clock: Clock) -> None:
    known = keys(issuer, clock)
    await known.find("one")
    issuer.documents["/jwks"] = key_set("two")
    clock.now = 601.0
    with pytest.raises(AuthorityError, match="does not publish"):
        await known.find("one")


async def test_keys_stay_while_the_issuer_is_away(issuer: Issuer, clock: Clock) -> None:
    known = keys(issuer, clock)
    await known.find("one")
    issuer.documents.clear()
    clock.now = 601.0
    assert await known.find("one") == KEYS["one"]


async def test_without_any_keys_nobody_is_believed(issuer: Issuer, clock: Clock) -> None:
    issuer.documents["/jwks"] = "{}"
    known = keys(issuer, clock)
    with pytest.raises(AuthorityError, match="keys are not known: the document holds no keys"):
        await known.find("one")
    clock.now = 11.0
    issuer.documents["/jwks"] = key_set("one")
    assert await known.find("one") == KEYS["one"]
