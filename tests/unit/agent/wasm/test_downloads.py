"""Attempts, limits and wrappings of downloads."""

import gzip
import io
import tarfile

import pytest
from module_servers import MODULE, Files, archive, serving

from mizzen.agent.wasm import downloads
from mizzen.agent.wasm.downloads import Downloads, unpack
from mizzen.errors import AgentError


def build(session, **more) -> Downloads:
    return Downloads(session, **{"first_pause": 0.001, "seconds": 60.0, **more})


async def test_a_server_that_asks_for_it_is_asked_again():
    server = Files({"/m": MODULE}, failures=2)
    async with serving(server) as (address, session):
        reply = await build(session, retries=2).get(f"http://{address}/m")
    assert (reply.status, reply.body, len(server.requests)) == (200, MODULE, 3)


async def test_the_last_attempt_counts_and_what_is_final_is_not_repeated():
    server = Files({}, failures=9)
    async with serving(server) as (address, session):
        assert (await build(session, retries=1).get(f"http://{address}/m")).status == 503
        server.failures = 0
        assert (await build(session).get(f"http://{address}/m")).status == 404
    assert len(server.requests) == 3


async def test_nobody_there_is_an_error_that_names_the_address():
    async with serving(Files({})) as (_, session):
        with pytest.raises(AgentError, match=r"^http://127\.0\.0\.1:1/m: .*"):
            await build(session, retries=1).get("http://127.0.0.1:1/m")
        with pytest.raises(AgentError, match="is no address"):
            await build(session).get("http://")


@pytest.mark.parametrize("address", ["http://a:99999/m", "http://a:b/m", "http://[a/m", "http://a..b/m"])
async def test_what_is_no_address_at_all_is_an_error_like_any_other(address):
    async with serving(Files({})) as (_, session):
        with pytest.raises(AgentError, match="is no address"):
            await build(session).get(address)


async def test_what_is_too_large_is_left(monkeypatch):
    monkeypatch.setattr(downloads, "LARGEST_BYTES", 1 << 20)
    async with serving(Files({"/m": bytes((1 << 20) + 1)})) as (address, session):
        with pytest.raises(AgentError, match="larger than 1 MiB"):
            await build(session).get(f"http://{address}/m")


def test_servers_are_told_apart_by_host_or_by_host_and_port():
    known = Downloads(None, insecure=("a.example.com", "b.example.com:5000"))  # type: ignore[arg-type]
    assert known.is_insecure("a.example.com:443")
    assert known.is_insecure("b.example.com:5000")
    assert not known.is_insecure("b.example.com")


@pytest.mark.parametrize(
    "wrapped",
    [
        MODULE,
        gzip.compress(MODULE),
        archive(readme=b"text", plugin__wasm=MODULE),
        gzip.compress(archive(plugin__wasm=MODULE)),
    ],
    ids=["plain", "compressed", "archive", "compressed archive"],
)
def test_a_module_is_found_in_what_it_is_wrapped_in(wrapped):
    assert unpack(wrapped) == MODULE


def sparse_archive(size: str, areas: str) -> bytes:
    """An archive with a module that is said to be a file with holes."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo("plugin.wasm")
        entry.size = len(MODULE)
        entry.pax_headers = {"GNU.sparse.map": areas, "GNU.sparse.size": size, "GNU.sparse.name": "plugin.wasm"}
        tar.addfile(entry, io.BytesIO(MODULE))
    return held.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>", "no Wasm module"),
        (b"", "no Wasm module"),
        (archive(plugin__wasm=b"text"), "no Wasm module"),
        (archive(readme=MODULE), "no Wasm module"),
        (gzip.compress(MODULE)[:-9], "cannot be decompressed"),
        (sparse_archive(str(1 << 40), "0,8"), "larger than 256 MiB when unpacked"),
        (sparse_archive("8", "none"), "no Wasm module"),
    ],
)
def test_anything_else_is_refused(content, message):
    with pytest.raises(AgentError, match=message):
        unpack(content)


def test_a_small_file_may_not_become_a_large_one(monkeypatch):
    monkeypatch.setattr(downloads, "LARGEST_BYTES", 1 << 20)
    with pytest.raises(AgentError, match="larger than 1 MiB when decompressed"):
        unpack(gzip.compress(bytes(2 << 20)))
