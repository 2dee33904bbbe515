"""SDS: what a stream is sent and when, in both forms, and secrets that lie in files."""

import asyncio
import contextlib
import gc
import logging

import faults
import grpc
import grpc.aio
import odd_pems
import pytest
import tiny_control
from adsclient import CHANNEL_OPTIONS

from mizzen import protos
from mizzen.agent.identity import sds
from mizzen.observe import Secret

_discovery = protos.package("envoy.service.discovery.v3")


def put(secrets: sds.Secrets, name: str, content: bytes) -> None:
    secrets.put(sds.build_roots(name, content))


def ask(*names: str, **fields) -> bytes:
    return protos.encode(_discovery.DiscoveryRequest(type_url=sds.SECRET, resource_names=names, **fields))


def ask_delta(*names: str, **fields) -> bytes:
    return protos.encode(
        _discovery.DeltaDiscoveryRequest(type_url=sds.SECRET, resource_names_subscribe=names, **fields)
    )


def contents(response: bytes | None, *, delta: bool = False) -> dict[str, bytes]:
    assert response is not None
    if delta:
        packed = [resource.resource for resource in _discovery.DeltaDiscoveryResponse.FromString(response).resources]
    else:
        packed = list(_discovery.DiscoveryResponse.FromString(response).resources)
    secrets = [protos.unpack(one) for one in packed]
    return {secret.name: secret.validation_context.trusted_ca.inline_bytes for secret in secrets}


def test_stream_is_sent_what_it_asked_for_once_and_again_when_it_changes() -> None:
    secrets = sds.Secrets()
    put(secrets, "ROOTCA", b"one")
    put(secrets, "other", b"x")
    stream = sds.Stream(secrets, delta=False)
    assert stream.next_response() is None
    stream.receive(ask("ROOTCA"))
    first = stream.next_response()
    assert contents(first) == {"ROOTCA": b"one"}
    stream.receive(ask("ROOTCA", response_nonce="1", version_info="v"))
    assert stream.next_response() is None
    put(secrets, "ROOTCA", b"one")
    assert stream.next_response() is None
    put(secrets, "other", b"y")
    assert stream.next_response() is None
    put(secrets, "ROOTCA", b"two")
    second = stream.next_response()
    assert contents(second) == {"ROOTCA": b"two"}
    parse = _discovery.DiscoveryResponse.FromString
    assert parse(first).version_info != parse(second).version_info
    assert parse(first).nonce != parse(second).nonce


def test_secret_that_is_not_there_yet_is_sent_when_it_comes() -> None:
    secrets = sds.Secrets()
    stream = sds.Stream(secrets, delta=False)
    stream.receive(ask("default", "ROOTCA"))
    assert stream.next_response() is None
    put(secrets, "ROOTCA", b"r")
    assert contents(stream.next_response()) == {"ROOTCA": b"r"}
    put(secrets, "default", b"d")
    assert contents(stream.next_response()) == {"ROOTCA": b"r", "default": b"d"}


def test_refused_secret_is_sent_again_only_when_it_changes(caplog) -> None:
    secrets = sds.Secrets()
    put(secrets, "ROOTCA", b"bad")
    stream = sds.Stream(secrets, delta=False)
    stream.receive(ask("ROOTCA"))
    assert stream.next_response()
    stream.receive(ask("ROOTCA", response_nonce="1", error_detail={"code": 13, "message": "not PEM"}))
    assert stream.next_response() is None
    assert "not PEM" in caplog.text
    put(secrets, "ROOTCA", b"good")
    assert stream.next_response()


def test_delta_stream_sends_changes_and_forgets_what_is_unsubscribed() -> None:
    secrets = sds.Secrets()
    put(secrets, "ROOTCA", b"r")
    put(secrets, "default", b"d")
    stream = sds.Stream(secrets, delta=True)
    stream.receive(ask_delta("ROOTCA", "default"))
    assert contents(stream.next_response(), delta=True) == {"ROOTCA": b"r", "default": b"d"}
    put(secrets, "default", b"d2")
    assert contents(stream.next_response(), delta=True) == {"default": b"d2"}
    stream.receive(ask_delta(resource_names_unsubscribe=["default"]))
    put(secrets, "default", b"d3")
    assert stream.next_response() is None
    stream.receive(ask_delta("default", response_nonce="2"))
    assert contents(stream.next_response(), delta=True) == {"default": b"d3"}


def test_delta_stream_that_comes_again_is_sent_only_what_differs() -> None:
    secrets = sds.Secrets()
    put(secrets, "ROOTCA", b"r")
    put(secrets, "default", b"d")
    have = {"ROOTCA": secrets.get("ROOTCA")[0], "default": "old"}
    stream = sds.Stream(secrets, delta=True)
    stream.receive(ask_delta("ROOTCA", "default", initial_resource_versions=have))
    assert contents(stream.next_response(), delta=True) == {"default": b"d"}


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("file-cert:/a/chain.pem~/a/key.pem", ["/a/chain.pem", "/a/key.pem"]),
        ("file-root:/a/ca.pem", ["/a/ca.pem"]),
        ("file-cert:/a/chain.pem", None),
        ("default", None),
    ],
)
def test_names_of_files(name: str, paths: list[str] | None) -> None:
    found = sds.parse_file_name(name)
    assert (found and [str(path) for path in found]) == paths


@contextlib.asynccontextmanager
async def serving(folder, secrets: sds.Secrets):
    path = folder / "sds"
    ready = asyncio.Event()
    server = sds.Server(secrets, file_interval=0.01)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(server.run(path, uid=None, ready=ready))
        await ready.wait()
        async with grpc.aio.insecure_channel(f"unix:{path}", options=CHANNEL_OPTIONS) as channel:
            yield channel
        task.cancel()
    assert not path.exists()


async def test_server_sends_on_both_kinds_of_stream(short_path) -> None:
    secrets = sds.Secrets()
    async with serving(short_path, secrets) as channel, asyncio.timeout(60):
        assert (short_path / "sds").stat().st_mode & 0o777 == 0o600
        plain = channel.stream_stream(f"/{sds.SERVICE}/StreamSecrets")()
        delta = channel.stream_stream(f"/{sds.SERVICE}/DeltaSecrets")()
        await plain.write(ask("ROOTCA"))
        await delta.write(ask_delta("ROOTCA"))
        put(secrets, "ROOTCA", b"r")
        assert contents(await plain.read()) == {"ROOTCA": b"r"}
        assert contents(await delta.read(), delta=True) == {"ROOTCA": b"r"}
        put(secrets, "ROOTCA", b"s")
        assert contents(await plain.read()) == {"ROOTCA": b"s"}
        assert contents(await delta.read(), delta=True) == {"ROOTCA": b"s"}
        plain.cancel()
        delta.cancel()


async def test_secrets_in_files_follow_them_and_hold_nothing_but_certificates(short_path) -> None:
    root = tiny_control.Root()
    chain, key = short_path / "chain.pem", short_path / "key.pem"
    chain.write_bytes(b"root:x:0:0")
    key.write_bytes(tiny_control.pem(root.key))
    name = f"file-cert:{chain}~{key}"
    async with serving(short_path, sds.Secrets()) as channel, asyncio.timeout(60):
        call = channel.stream_stream(f"/{sds.SERVICE}/StreamSecrets")()
        await call.write(ask(name))
        await asyncio.sleep(0.1)
        chain.write_bytes(root.pem)
        response = _discovery.DiscoveryResponse.FromString(await call.read())
        secret = protos.unpack(response.resources[0])
        assert secret.name == name
        assert secret.tls_certificate.certificate_chain.inline_bytes == root.pem
        assert secret.tls_certificate.private_key.inline_bytes == key.read_bytes()
        call.cancel()


async def test_files_that_cannot_be_read_as_certificates_or_at_all_end_nothing(short_path) -> None:
    root = tiny_control.Root()
    odd, good = short_path / "odd.pem", short_path / "good.pem"
    odd.write_bytes(odd_pems.of_version_8(root.pem))
    good.write_bytes(root.pem)
    names = ["file-root:/a\0b", f"file-root:/{'x' * 300}", f"file-root:{odd}", f"file-root:{short_path}"]
    async with serving(short_path, sds.Secrets()) as channel, asyncio.timeout(60):
        call = channel.stream_stream(f"/{sds.SERVICE}/StreamSecrets")()
        await call.write(ask(*names))
        await asyncio.sleep(0.1)
        await call.write(ask(*names, f"file-root:{good}"))
        assert contents(await call.read()) == {f"file-root:{good}": root.pem}
        odd.write_bytes(root.pem)
        assert set(contents(await call.read())) == {f"file-root:{good}", f"file-root:{odd}"}
        call.cancel()


async def test_envoy_that_goes_away_while_it_is_sent_a_secret_is_no_fault(short_path, caplog) -> None:
    secrets = sds.Secrets()
    put(secrets, "ROOTCA", b"r" * 10_000_000)
    async with serving(short_path, secrets) as channel, asyncio.timeout(60):
        for _ in range(20):
            stream = channel.stream_stream(f"/{sds.SERVICE}/StreamSecrets")()
            await stream.write(ask("ROOTCA"))
            await stream.initial_metadata()
            stream.cancel()
    assert faults.logged(caplog) == []


def test_key_is_in_the_secret_and_nowhere_else() -> None:
    secret = sds.build_certificate("default", b"chain", Secret(b"the key"))
    assert secret.tls_certificate.private_key.inline_bytes == b"the key"


async def test_streams_that_ask_while_the_server_ends_leave_nothing_behind(short_path, caplog) -> None:
    gc.collect()
    caplog.clear()  # Of what tests before have left.
    file = short_path / "root.pem"
    file.write_bytes(tiny_control.Root().pem)
    for turn in range(10):
        ready = asyncio.Event()
        server = sds.Server(sds.Secrets(), file_interval=0.01)
        path = short_path / f"sds{turn}"
        running = asyncio.ensure_future(server.run(path, uid=None, ready=ready))
        await ready.wait()
        async with grpc.aio.insecure_channel(f"unix:{path}", options=CHANNEL_OPTIONS) as channel:
            streams = [channel.stream_stream(f"/{sds.SERVICE}/StreamSecrets")() for _ in range(10)]
            for number, stream in enumerate(streams):
                await stream.write(ask(f"file-root:{file}?{number}", f"file-root:{file}"))
            await asyncio.sleep(0.002 * turn)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    gc.collect()
    assert faults.logged(caplog, logging.ERROR) == []
