"""Roots of other trust domains, fetched from a real HTTP server and fed to the engine."""

import asyncio
import base64
import contextlib
import json

import pytest
from cryptography.hazmat.primitives import serialization
from eventually import eventually
from issuer import Issuer
from plugged_authority import Node, make_node

from mizzen import settings
from mizzen.api.meta import Key
from mizzen.control.spiffe_bundles import SpiffeBundles

ONE, TWO = make_node("one", 1_700_000_000.0), make_node("two", 1_700_000_000.0)


def bundle(*nodes: Node) -> str:
    ders = (node.certificate.public_bytes(serialization.Encoding.DER) for node in nodes)
    return json.dumps({"keys": [{"use": "x509-svid", "x5c": [base64.b64encode(der).decode()]} for der in ders]})


class Fed:
    """What the engine was told, by URL."""

    def __init__(self) -> None:
        self.roots: dict[str, str] = {}

    def __call__(self, key: Key, pem: str | None) -> None:
        assert key.kind == "SpiffeBundle"
        if pem is None:
            self.roots.pop(key.name, None)
        else:
            self.roots[key.name] = pem


@contextlib.asynccontextmanager
async def running(refresh: float = 0.05, extra_roots: str = ""):
    fed = Fed()
    found = SpiffeBundles(fed, settings.KeySets(timeout=60.0, extra_roots=extra_roots), refresh=refresh, retry=0.05)
    task = asyncio.create_task(found.run())
    try:
        yield found, fed
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def issuer():
    async with Issuer().running() as running_issuer:
        running_issuer.documents["/bundle"] = bundle(ONE)
        yield running_issuer


async def test_a_bundle_is_fetched_when_it_is_named_and_again_in_time(issuer: Issuer) -> None:
    async with running() as (bundles, fed):
        await asyncio.sleep(0.02)
        bundles.follow([issuer.url("/bundle")])
        await eventually(lambda: fed.roots == {issuer.url("/bundle"): ONE.pem.decode()})
        issuer.documents["/bundle"] = bundle(ONE, TWO)
        await eventually(lambda: fed.roots == {issuer.url("/bundle"): (ONE.pem + TWO.pem).decode()})


async def test_the_last_one_stays_while_its_endpoint_is_away_or_sends_nonsense(issuer: Issuer, caplog) -> None:
    async with running() as (bundles, fed):
        bundles.follow([issuer.url("/bundle")])
        await eventually(lambda: fed.roots)
        issuer.documents["/bundle"] = "nonsense"
        await eventually(lambda: "the last one stays in force" in caplog.text)
        issuer.documents.clear()
        await eventually(lambda: "status 404" in caplog.text)
        assert fed.roots == {issuer.url("/bundle"): ONE.pem.decode()}


async def test_one_that_fails_is_tried_again_and_keeps_no_other_back(issuer: Issuer) -> None:
    async with running(refresh=600.0) as (bundles, fed):
        bundles.follow([issuer.url("/bundle"), issuer.url("/late")])
        await eventually(lambda: list(fed.roots) == [issuer.url("/bundle")])
        issuer.documents["/late"] = bundle(TWO)
        await eventually(lambda: fed.roots.get(issuer.url("/late")) == TWO.pem.decode())


async def test_one_that_is_named_no_longer_goes(issuer: Issuer) -> None:
    async with running() as (bundles, fed):
        bundles.follow([issuer.url("/bundle")])
        await eventually(lambda: fed.roots)
        bundles.follow([])
        assert fed.roots == {}
        asked = len(issuer.asked)
        await asyncio.sleep(0.2)
        assert len(issuer.asked) <= asked + 1


async def test_roots_to_fetch_with_that_do_not_read_are_waited_for(issuer: Issuer, tmp_path, caplog) -> None:
    extra = tmp_path / "extra.pem"
    extra.write_text("-----BEGIN CERT")
    async with running(extra_roots=str(extra)) as (bundles, fed):
        bundles.follow([issuer.url("/bundle")])
        await eventually(lambda: "holds no readable roots" in caplog.text)
        assert not fed.roots
        extra.write_bytes(ONE.pem)
        await eventually(lambda: fed.roots)
