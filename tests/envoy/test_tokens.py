"""Tokens judged by a real Envoy with the compiled filter, while their issuer comes, changes its keys and goes."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import jwt
import pytest
from claims import own_port
from cryptography.hazmat.primitives.asymmetric import rsa
from eventually import eventually
from issuer import Issuer
from jwt.algorithms import RSAAlgorithm

from mizzen import protos, settings
from mizzen.agent.binaries import find_envoy
from mizzen.api.closed import closed_namespace
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.policy import JWTRule, RequestAuthentication, RequestAuthenticationSpec
from mizzen.compile.security import tokens
from mizzen.control.jwks import KeySets
from mizzen.incremental import Engine

pytestmark = pytest.mark.envoy

POLICY = Key("RequestAuthentication", "shop", "jwt")
QUICK = settings.KeySets(refresh_interval=0.2, retry_first=0.1, retry_longest=0.2, spacing=0.01, timeout=1.0)
ISSUER = "https://issuer.example"


class Signer:
    """A key of the issuer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._key = rsa.generate_private_key(65537, 2048)

    def key_set(self) -> str:
        public = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return json.dumps({"keys": [{**public, "kid": self.name, "alg": "RS256", "use": "sig"}]})

    def token(self, *, issuer: str = ISSUER, lives: int = 600, name: str = "") -> str:
        claims = {"iss": issuer, "sub": "ann", "exp": int(time.time()) + lives}
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": name or self.name})


@pytest.fixture(scope="module")
def signers() -> tuple[Signer, Signer]:
    return Signer("one"), Signer("two")


@contextlib.asynccontextmanager
async def envoy(folder: Path, filters: tuple[bytes, ...]) -> AsyncIterator[str]:
    """A server behind these filters; gives its URL."""
    port = own_port()
    hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
    router = hcm_v3.HttpFilter(
        name="router",
        typed_config=protos.pack(protos.message_class("envoy.extensions.filters.http.router.v3.Router")()),
    )
    routes = [{"match": {"prefix": "/"}, "direct_response": {"status": 200}}]
    manager = hcm_v3.HttpConnectionManager(
        stat_prefix="x",
        http_filters=[*(hcm_v3.HttpFilter.FromString(data) for data in filters), router],
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
    )
    listener = protos.message_class("envoy.config.listener.v3.Listener")(
        name="in",
        address={"socket_address": {"address": "127.0.0.1", "port_value": port}},
        filter_chains=[{"filters": [{"name": "hcm", "typed_config": protos.pack(manager)}]}],
    )
    config = folder / f"{port}.json"
    config.write_text(json.dumps({"static_resources": {"listeners": [protos.to_json(listener)]}}))
    process = await asyncio.create_subprocess_exec(
        *(str(find_envoy("", "")), "-c", str(config), "--concurrency", "1", "-l", "error", "--disable-hot-restart")
    )
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        await process.wait()


async def ask(url: str, token: str = "") -> int:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    end = time.monotonic() + 60
    while True:
        try:
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
                return answer.status
        except aiohttp.ClientConnectionError:
            assert time.monotonic() < end
            await asyncio.sleep(0.05)


class Mesh:
    """An engine with one policy, and whoever fetches its keys."""

    def __init__(self, uri: str) -> None:
        self.db = Engine()
        rule = JWTRule(issuer=ISSUER, jwks_uri=uri)
        policy = RequestAuthentication(
            metadata=ObjectMeta(name="jwt", namespace="shop"), spec=RequestAuthenticationSpec(jwt_rules=(rule,))
        )
        self.db.set(POLICY, policy)
        self.sets = KeySets(self._feed, QUICK)
        self.sets.follow(POLICY, policy)

    def _feed(self, key: Key, text: str | None) -> None:
        if text is None:
            self.db.remove(key)
        else:
            self.db.set(key, text)

    @property
    def filters(self) -> tuple[bytes, ...]:
        return tokens.http_filters(self.db, (POLICY,), False)

    def holds(self, signer: Signer) -> bool:
        return f'\\"kid\\": \\"{signer.name}\\"' in json.dumps([data.decode("latin-1") for data in self.filters])


async def verdicts(folder: Path, filters: tuple[bytes, ...], signers: tuple[Signer, Signer]) -> dict[str, int]:
    one, two = signers
    sent = {
        "none": "",
        "one": one.token(),
        "two": two.token(),
        "expired": one.token(lives=-600),
        "forged": two.token(name="one"),
        "stranger": one.token(issuer="https://elsewhere.example"),
        "unsigned": jwt.encode({"iss": ISSUER, "sub": "ann"}, None, algorithm="none"),
        "nonsense": "a.b.c",
    }
    async with envoy(folder, filters) as url:
        return {name: await ask(url, token) for name, token in sent.items()}


REFUSED = {"none": 200, **dict.fromkeys(("one", "two", "expired", "forged", "stranger", "unsigned", "nonsense"), 401)}


async def test_tokens_hold_as_long_as_their_issuers_keys_are_known(tmp_path, signers) -> None:
    issuer = Issuer()
    async with issuer.running():
        pass  # Its port is known now; nobody listens there.
    mesh = Mesh(issuer.url())
    running = asyncio.create_task(mesh.sets.run())
    try:
        await asyncio.sleep(0.3)
        assert await verdicts(tmp_path, mesh.filters, signers) == REFUSED
        issuer.documents["/jwks"] = signers[0].key_set()
        async with issuer.running():
            await eventually(lambda: mesh.holds(signers[0]))
            assert await verdicts(tmp_path, mesh.filters, signers) == REFUSED | {"one": 200}
            issuer.documents["/jwks"] = signers[1].key_set()
            await eventually(lambda: mesh.holds(signers[1]))
            assert await verdicts(tmp_path, mesh.filters, signers) == REFUSED | {"two": 200}
            issuer.documents["/jwks"] = "no longer a key set"
            asked = len(issuer.asked)
            await eventually(lambda: len(issuer.asked) > asked + 2)
        assert await verdicts(tmp_path, mesh.filters, signers) == REFUSED | {"two": 200}
    finally:
        running.cancel()


async def test_a_policy_that_cannot_be_read_takes_no_token(tmp_path, signers) -> None:
    db = Engine()
    db.set(POLICY, closed_namespace("RequestAuthentication", "jwt", "shop"))
    assert await verdicts(tmp_path, tokens.http_filters(db, (POLICY,), False), signers) == REFUSED
