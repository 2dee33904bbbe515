"""Certificates on their way to a real Envoy: the first, the next, a new root, files, and no service at all."""

import asyncio
import datetime
import signal
import ssl
import time

import agent_runs
import envoy_resources
import pytest
import tiny_control
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from mizzen import protos

pytestmark = pytest.mark.envoy

PORT = 8443
FRONT = "spiffe://cluster.local/ns/demo/sa/front"


@pytest.fixture
async def control():
    control = tiny_control.TinyControl()
    await control.start()
    yield control
    await control.stop()


class Peer:
    """A client with a certificate of its own, on one connection that stays open."""

    def __init__(self, folder, root: tiny_control.Root, trusted: bytes) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = root.issue(
            key.public_key(), [x509.UniformResourceIdentifier("spiffe://cluster.local/ns/demo/sa/x")], 600
        )
        certificate = folder / "peer.pem"
        certificate.write_bytes(tiny_control.pem(leaf) + tiny_control.pem(key))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.load_cert_chain(certificate)
        self._context.load_verify_locations(cadata=trusted.decode())
        self.writer: asyncio.StreamWriter | None = None

    async def connect(self, address: str) -> x509.Certificate:
        """The certificate that the server shows; a connection from before ends."""
        self.close()
        self.reader, self.writer = await asyncio.open_connection(address, PORT, ssl=self._context)
        return x509.load_der_x509_certificate(self.writer.get_extra_info("ssl_object").getpeercert(True))

    async def ask(self) -> bytes:
        """The body of the answer to a request on the open connection."""
        self.writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 60)
        length = next(int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: "))
        return await asyncio.wait_for(self.reader.readexactly(length), 60)

    def close(self) -> None:
        """At once: closing TLS politely would outlive the test."""
        if self.writer is not None:
            self.writer.transport.abort()


def names_of(certificate: x509.Certificate) -> list[str]:
    extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return extension.value.get_values_for_type(x509.UniformResourceIdentifier)


async def serve_tls(control: tiny_control.TinyControl, run: agent_runs.AgentRun) -> None:
    await control.set(envoy_resources.build_listener("tls", run.address, PORT, "hello", mutual_tls=True))
    await run.until_ready()


async def test_rotation_reaches_envoy_and_open_connections_go_on(control, tmp_path) -> None:
    control.life = 12.0
    began = time.monotonic()
    async with agent_runs.running(tmp_path, control) as run:
        await serve_tls(control, run)
        peer, later = (Peer(tmp_path, control.root, control.root.pem) for _ in range(2))
        first = await peer.connect(run.address)
        assert names_of(first) == [FRONT]

        async def renewed() -> bool:
            certificate = await later.connect(run.address)
            later.close()
            return certificate.serial_number != first.serial_number

        await run.until(renewed, "another certificate")
        keys = {leaf.public_key().public_numbers() for leaf in control.issued}
        assert len(keys) == len(control.issued), "a fresh key each time"
        assert await peer.ask() == b"hello"
        left = first.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        await asyncio.sleep(max(left.total_seconds(), 0) + 1)
        assert await peer.ask() == b"hello", "the connection outlives the certificate that it began with"
        assert 2 <= len(control.issued) <= 2 + (time.monotonic() - began) / 3, "one for each half of a life"
        peer.close()


async def test_new_root_is_trusted_before_a_certificate_of_it_is_shown(control, tmp_path) -> None:
    old, new = control.root, tiny_control.Root("new")
    async with agent_runs.running(tmp_path, control) as run:
        await serve_tls(control, run)
        stranger = Peer(tmp_path, new, old.pem)
        await stranger.connect(run.address)
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await stranger.ask()
        run.root_file.write_bytes(old.pem + new.pem)

        async def accepted() -> bool:
            try:
                await stranger.connect(run.address)
                return await stranger.ask() == b"hello"
            except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
                return False
            finally:
                stranger.close()

        await run.until(accepted, "trust in the new root")
        friend = Peer(tmp_path, old, old.pem)
        await friend.connect(run.address)
        assert await friend.ask() == b"hello"
        friend.close()

        async def asked_again() -> bool:
            return len(control.issued) > 1

        await run.until(asked_again, "a request after the change of roots")


async def test_pushed_root_is_trusted_of_peers_and_of_the_control_plane(control, tmp_path) -> None:
    """The file in which the mesh distributes its roots stays as it was: it follows a minute later, or never."""
    old, new = control.root, tiny_control.Root("new")
    async with agent_runs.running(tmp_path, control) as run:
        await serve_tls(control, run)
        bundle = protos.message_class("istio.mesh.v1alpha1.ProxyConfig")
        both = bundle(ca_certificates_pem=[old.pem.decode(), new.pem.decode()])
        await control.set(both, "trust-bundle")
        stranger = Peer(tmp_path, new, old.pem)

        async def accepted() -> bool:
            try:
                await stranger.connect(run.address)
                return await stranger.ask() == b"hello"
            except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
                return False
            finally:
                stranger.close()

        await run.until(accepted, "trust in the pushed root")
        await control.stop()
        control.root = new
        await control.start()
        await control.set(envoy_resources.build_listener("tls", run.address, PORT, "again", mutual_tls=True))

        async def reached() -> bool:
            await stranger.connect(run.address)
            body = await stranger.ask()
            stranger.close()
            return body == b"again"

        await run.until(reached, "an answer of the control plane with a certificate of the new root")
        assert run.root_file.read_bytes() == old.pem


async def test_certificates_are_written_as_files_where_asked(control, tmp_path) -> None:
    async with agent_runs.running(tmp_path, control, {"OUTPUT_CERTS": "./certs"}) as run:
        await serve_tls(control, run)
        certs = tmp_path / "certs"
        leaf = x509.load_pem_x509_certificate((certs / "cert-chain.pem").read_bytes())
        assert leaf == control.issued[-1]
        assert (certs / "key.pem").stat().st_mode & 0o777 == 0o600
        assert (certs / "root-cert.pem").read_bytes() == control.root.pem


async def test_restart_without_control_plane_goes_on_with_the_kept_certificate(control, tmp_path) -> None:
    run = agent_runs.AgentRun(tmp_path, control)
    await run.start()
    try:
        await serve_tls(control, run)
        await control.stop()
        await run.stop(signal.SIGKILL)
        await run.start()
        await run.until_ready()
        peer = Peer(tmp_path, control.root, control.root.pem)
        assert (await peer.connect(run.address)).serial_number == control.issued[0].serial_number
        assert await peer.ask() == b"hello"
        peer.close()
        kept = tmp_path / "etc/istio/proxy/identity"
        assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}
    finally:
        await run.stop(signal.SIGKILL)


async def test_agent_asks_until_its_token_is_there(control, tmp_path) -> None:
    run = agent_runs.AgentRun(tmp_path, control)
    token = tmp_path / "var/run/secrets/tokens/istio-token"
    token.unlink()
    await run.start()
    try:

        async def refused() -> bool:
            return "UNAUTHENTICATED: request authenticate failure" in run.log

        await run.until(refused, "a refusal")
        token.write_text(f"{tiny_control.TOKEN}\n")
        await serve_tls(control, run)
        assert len(control.issued) == 1
    finally:
        await run.stop(signal.SIGKILL)
    assert "PRIVATE KEY" not in run.log
    assert tiny_control.TOKEN not in run.log
