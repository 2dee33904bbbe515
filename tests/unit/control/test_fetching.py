"""Documents from addresses that users write: what is refused, and what bounds the rest. A real HTTP server answers."""

import asyncio
import gzip
import ipaddress

import pytest
from issuer import Issuer, make_server_context

from mizzen import settings
from mizzen.control.fetching import Fetcher, FetchError, Guard


@pytest.fixture
async def issuer():
    async with Issuer().running() as running:
        running.documents["/jwks"] = "{}"
        yield running


async def fetch(url: str, **config) -> bytes:
    async with Fetcher(settings.KeySets(**config)) as fetcher:
        return await fetcher.fetch(url)


async def refused(url: str, **config) -> str:
    with pytest.raises(FetchError) as caught:
        await fetch(url, **config)
    return str(caught.value)


async def test_a_document_is_fetched(issuer: Issuer) -> None:
    assert await fetch(issuer.url()) == b"{}"


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fd00:ec2::254",
        "100.100.100.200",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
    ],
)
def test_metadata_and_nowhere_are_never_called(address: str) -> None:
    with pytest.raises(FetchError):
        Guard().check(address)


@pytest.mark.parametrize("address", ["10.1.2.3", "192.168.0.1", "127.0.0.1", "::1", "fd12::1", "::ffff:10.0.0.1"])
def test_private_addresses_are_called_unless_refused(address: str) -> None:
    Guard().check(address)
    with pytest.raises(FetchError):
        Guard(refuse_private=True).check(address)
    Guard(refuse_private=True).check("93.184.216.34")


def test_blocked_networks_are_refused() -> None:
    guard = Guard([ipaddress.ip_network("203.0.113.0/24")])
    with pytest.raises(FetchError):
        guard.check("203.0.113.9")
    guard.check("203.0.114.9")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_what_is_refused_is_not_called(issuer: Issuer, host: str) -> None:
    url = issuer.url().replace("127.0.0.1", host)
    assert "private address" in await refused(url, refuse_private=True)
    network = ipaddress.ip_network("127.0.0.0/8")
    assert await refused(url, blocked_networks=(network, ipaddress.ip_network("::1/128")))
    assert issuer.asked == []


async def test_a_redirect_is_followed_and_its_target_checked(issuer: Issuer) -> None:
    issuer.redirects["/moved"] = "/jwks"
    assert await fetch(issuer.url("/moved")) == b"{}"
    issuer.redirects["/moved"] = "http://169.254.169.254/latest/meta-data"
    assert "169.254.169.254" in await refused(issuer.url("/moved"), timeout=60.0)
    issuer.redirects["/moved"] = "file:///etc/passwd"
    assert "no http" in await refused(issuer.url("/moved"))


async def test_redirects_end(issuer: Issuer) -> None:
    issuer.redirects["/moved"] = "/moved"
    assert "redirects" in await refused(issuer.url("/moved"))
    assert len(issuer.asked) == 4


async def test_size_is_bounded(issuer: Issuer) -> None:
    issuer.documents["/jwks"] = b"x" * 1000
    assert len(await fetch(issuer.url(), max_bytes=1000)) == 1000
    assert "999 bytes" in await refused(issuer.url(), max_bytes=999)


async def test_nothing_is_unpacked(issuer: Issuer) -> None:
    packed = gzip.compress(b"x" * 10_000_000)
    issuer.documents["/jwks"] = packed
    issuer.headers["/jwks"] = {"Content-Encoding": "gzip"}
    assert await fetch(issuer.url(), max_bytes=20_000) == packed


async def test_time_is_bounded_even_while_bytes_come(issuer: Issuer) -> None:
    issuer.hang = True
    async with asyncio.timeout(60):
        assert "within 0.2 s" in await refused(issuer.url(), timeout=0.2)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "keys",
        "ftp://127.0.0.1/x",
        "http://",
        "http://[::1",
        "http://nowhere.invalid/x",
        "http://127.0.0.1:99999/x",
        "http://127.0.0.1:1/x",
        "http://a\x00b/",
        "http://xn--/",
        "http://" + "a" * 300 + "/",
    ],
)
async def test_whatever_is_written_is_refused_with_a_reason(url: str) -> None:
    assert await refused(url)


async def test_other_statuses_are_no_document(issuer: Issuer) -> None:
    assert "404" in await refused(issuer.url("/gone"))


async def test_certificates_are_verified_by_the_systems_roots_and_further_ones(tmp_path) -> None:
    context, root = make_server_context(tmp_path)
    async with Issuer().running(context) as issuer:
        issuer.documents["/jwks"] = "{}"
        assert "certificate" in (await refused(issuer.url())).lower()
        assert await fetch(issuer.url(), extra_roots=str(root)) == b"{}"
        assert await fetch(issuer.url(), insecure=True) == b"{}"


async def test_no_redirect_leaves_https(tmp_path) -> None:
    context, root = make_server_context(tmp_path)
    async with Issuer().running(context) as secure, Issuer().running() as plain:
        secure.redirects["/jwks"] = plain.url()
        plain.documents["/jwks"] = "{}"
        assert "from https to http" in await refused(secure.url(), extra_roots=str(root))
        assert plain.asked == []
