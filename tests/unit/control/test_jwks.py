"""Key sets of issuers, fetched from a real HTTP server and fed to the engine."""

import asyncio
import contextlib
import itertools

import msgspec
import pytest
from eventually import eventually
from issuer import Issuer, key_set

from mizzen import settings
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.policy import JWTRule, RequestAuthentication, RequestAuthenticationSpec
from mizzen.compile.security import tokens
from mizzen.control.jwks import KeySets
from mizzen.incremental import Engine

POLICY = Key("RequestAuthentication", "shop", "jwt")
QUICK = settings.KeySets(
    refresh_interval=0.1, retry_first=0.05, retry_longest=0.2, spacing=0.01, timeout=60.0, first_wait=60.0
)


class Fed:
    """What the engine was told, by URL, and how often."""

    def __init__(self) -> None:
        self.sets: dict[str, str] = {}
        self.times = 0

    def __call__(self, key: Key, text: str | None) -> None:
        assert (key.kind, key.namespace) == (tokens.KEY_SET, "")
        self.times += 1
        if text is None:
            self.sets.pop(key.name, None)
        else:
            self.sets[key.name] = text


def policy(*rules: JWTRule) -> RequestAuthentication:
    metadata = ObjectMeta(name="jwt", namespace="shop")
    return RequestAuthentication(metadata=metadata, spec=RequestAuthenticationSpec(jwt_rules=rules))


@contextlib.asynccontextmanager
async def running(config: settings.KeySets = QUICK):
    fed = Fed()
    sets = KeySets(fed, config)
    task = asyncio.create_task(sets.run())
    try:
        yield sets, fed
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def issuer():
    async with Issuer().running() as running_issuer:
        running_issuer.documents["/jwks"] = key_set("one")
        yield running_issuer


async def test_a_key_set_becomes_an_input_and_is_refreshed(issuer: Issuer) -> None:
    async with running() as (sets, fed):
        sets.follow(POLICY, policy(JWTRule(issuer="a", jwks_uri=issuer.url())))
        await eventually(lambda: fed.sets.get(issuer.url()) == key_set("one"))
        issuer.documents["/jwks"] = key_set("two")
        await eventually(lambda: fed.sets.get(issuer.url()) == key_set("two"))


async def test_one_url_is_fetched_once_for_all_who_name_it(issuer: Issuer) -> None:
    async with running(settings.KeySets()) as (sets, fed):
        rule = JWTRule(issuer="a", jwks_uri=issuer.url())
        for name in ("x", "y"):
            sets.follow(Key("RequestAuthentication", "shop", name), policy(rule, rule))
        await eventually(lambda: fed.sets)
        await asyncio.sleep(0.1)
        assert issuer.asked == ["/jwks"]


async def test_inline_keys_are_not_fetched(issuer: Issuer) -> None:
    async with running() as (sets, fed):
        sets.follow(POLICY, policy(JWTRule(issuer=issuer.url(), jwks=key_set("own"))))
        await asyncio.sleep(0.1)
        assert (issuer.asked, fed.times) == ([], 0)


async def test_without_a_uri_the_issuers_discovery_document_says_where(issuer: Issuer) -> None:
    rule = JWTRule(issuer=issuer.url("/realm/"))
    where = "/realm/.well-known/openid-configuration"
    issuer.documents[where] = f'{{"issuer": "x", "jwks_uri": "{issuer.url()}"}}'
    async with running() as (sets, fed):
        sets.follow(POLICY, policy(rule))
        await eventually(lambda: fed.sets == {tokens.key_set_uri(rule): key_set("one")})
        assert issuer.asked[:2] == [where, "/jwks"]


@pytest.mark.parametrize("body", ["", "no json", "[]", "{}", '{"keys": 1}', b"\xff\xfe", '{"jwks_uri": 3}'])
async def test_what_is_no_key_set_does_not_become_one(issuer: Issuer, body) -> None:
    issuer.documents["/jwks"] = body
    async with running() as (sets, fed):
        sets.follow(POLICY, policy(JWTRule(issuer="a", jwks_uri=issuer.url())))
        await eventually(lambda: len(issuer.asked) > 2)
        assert fed.sets == {}
        issuer.documents["/jwks"] = key_set("good")
        await eventually(lambda: fed.sets.get(issuer.url()) == key_set("good"))


async def test_a_key_set_stays_while_its_issuer_is_away() -> None:
    issuer = Issuer()
    async with running() as (sets, fed):
        async with issuer.running():
            issuer.documents["/jwks"] = key_set("one")
            sets.follow(POLICY, policy(JWTRule(issuer="a", jwks_uri=issuer.url())))
            await eventually(lambda: fed.sets)
        await asyncio.sleep(0.4)
        assert fed.sets == {issuer.url(): key_set("one")}
        issuer.documents["/jwks"] = key_set("back")
        async with issuer.running():
            await eventually(lambda: fed.sets.get(issuer.url()) == key_set("back"))


async def test_a_key_set_that_cannot_be_fetched_is_a_problem_of_every_object_that_names_it(issuer: Issuer) -> None:
    issuer.documents.clear()
    told: list[list[str]] = []
    fed = Fed()
    sets = KeySets(fed, QUICK, lambda: told.append([f"{p.level}: {p}" for p in sets.problems()]))
    rule = JWTRule(issuer="a", jwks_uri=issuer.url())
    other = Key("RequestAuthentication", "bank", "jwt")
    sets.follow(POLICY, policy(rule))
    sets.follow(other, policy(rule))
    task = asyncio.create_task(sets.run())
    await eventually(lambda: told)
    refused = f"no key set from {issuer.url()}: status 404; its issuer's tokens are refused"
    assert told[-1] == [f"error: {other}: {refused}", f"error: {POLICY}: {refused}"]
    issuer.documents["/jwks"] = key_set("one")
    await eventually(lambda: told[-1] == [])
    issuer.documents["/jwks"] = "broken"
    await eventually(lambda: told[-1])
    assert told[-1][0].startswith("warning")
    assert told[-1][0].endswith("the last one stays in force")
    assert fed.sets == {issuer.url(): key_set("one")}
    assert len(told) == 3
    task.cancel()


async def test_failures_are_spaced_further_and_further(issuer: Issuer) -> None:
    issuer.documents.clear()
    config = settings.KeySets(tries=1, retry_first=0.1, retry_longest=10.0, timeout=60.0)
    async with running(config) as (sets, _):
        sets.follow(POLICY, policy(JWTRule(issuer="a", jwks_uri=issuer.url())))
        await eventually(lambda: len(issuer.asked_at) > 3)
        # Asked again 0.1, 0.2 and 0.4 seconds after the answers, give or take.
        apart = [later - earlier for earlier, later in itertools.pairwise(issuer.asked_at)]
        assert apart[1] > 0.12
        assert apart[2] > 0.24


async def test_a_key_set_that_nobody_names_any_more_is_forgotten(issuer: Issuer) -> None:
    async with running() as (sets, fed):
        sets.follow(POLICY, policy(JWTRule(issuer="a", jwks_uri=issuer.url())))
        await eventually(lambda: fed.sets)
        sets.follow(POLICY, None)
        await eventually(lambda: not fed.sets)
        asked = len(issuer.asked)
        await asyncio.sleep(0.3)
        # One may have been on its way.
        assert len(issuer.asked) <= asked + 1
        sets.follow(POLICY, policy(JWTRule(issuer="a", jwks_uri=issuer.url())))
        await eventually(lambda: fed.sets)


async def test_one_bad_issuer_does_not_hold_up_the_others(issuer: Issuer) -> None:
    slow = Issuer()
    async with slow.running(), running(msgspec.structs.replace(QUICK, timeout=600.0)) as (sets, fed):
        slow.hang = True
        rules = [JWTRule(issuer=f"s{i}", jwks_uri=slow.url(f"/{i}")) for i in range(7)]
        rules += [JWTRule(issuer="bad", jwks_uri="http://xn--/"), JWTRule(issuer="a", jwks_uri=issuer.url())]
        sets.follow(POLICY, policy(*rules))
        await eventually(lambda: fed.sets == {issuer.url(): key_set("one")})


async def test_whoever_starts_is_told_once_all_were_tried(issuer: Issuer) -> None:
    told: list[str] = []
    async with running() as (sets, fed):
        sets.after_first_tries(lambda: told.append("nothing named"))
        assert told == ["nothing named"]
        rules = (JWTRule(issuer="a", jwks_uri=issuer.url()), JWTRule(issuer="b", jwks_uri=issuer.url("/gone")))
        sets.follow(POLICY, policy(*rules))
        sets.after_first_tries(lambda: told.append(f"{len(fed.sets)} fetched"))
        assert len(told) == 1
        await eventually(lambda: told[1:] == ["1 fetched"])


async def test_whoever_starts_is_not_kept_by_an_issuer_that_hangs(issuer: Issuer) -> None:
    issuer.hang = True
    told: list[bool] = []
    async with running(settings.KeySets(first_wait=0.1, timeout=600.0)) as (sets, _):
        sets.follow(POLICY, policy(JWTRule(issuer="a", jwks_uri=issuer.url())))
        sets.after_first_tries(lambda: told.append(True))
        await eventually(lambda: told)


async def test_tokens_fail_until_the_keys_are_there_and_then_verify(issuer: Issuer) -> None:
    db = Engine()

    def feed(key: Key, text: str | None) -> None:
        if text is None:
            db.remove(key)
        else:
            db.set(key, text)

    requested = policy(JWTRule(issuer="a", jwks_uri=issuer.url()))
    db.set(POLICY, requested)
    sets = KeySets(feed, QUICK)
    sets.follow(POLICY, requested)
    (closed,) = tokens.http_filters(db, (POLICY,), False)
    assert b'"nobody"' in closed
    task = asyncio.create_task(sets.run())
    await eventually(lambda: b'"one"' in tokens.http_filters(db, (POLICY,), False)[0])
    task.cancel()
