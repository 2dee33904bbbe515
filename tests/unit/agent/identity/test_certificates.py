"""The life of a certificate: obtained, renewed again and again, kept over restarts, roots followed."""

import asyncio
import contextlib
import datetime
import itertools

import grpc
import grpc.aio
import pytest
import tiny_control
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from plugged_authority import make_node, revoke

from mizzen import protos, settings
from mizzen.agent import control_plane, files
from mizzen.agent.identity import certificates, sds
from mizzen.errors import AuthorityError, DecodeError

FRONT = "spiffe://cluster.local/ns/web/sa/front"


class Authority:
    """Signs what it is asked to; fails as often as told."""

    def __init__(self, clock: "VirtualClock | None" = None, life: float = 600.0) -> None:
        self.root = tiny_control.Root()
        self.life = life
        self.asked_at: list[float] = []
        self._clock = clock
        self.failures = 0
        self.leaves: list[x509.Certificate] = []
        self.asked = 0

    async def ask(self, csr: bytes) -> list[str]:
        self.asked += 1
        if self._clock is not None:
            self.asked_at.append(self._clock.passed)
        if self.failures:
            self.failures -= 1
            raise AuthorityError("UNAVAILABLE")
        request = x509.load_pem_x509_csr(csr)
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        passed = self._clock.passed if self._clock is not None else 0
        leaf = self.root.issue(request.public_key(), list(names), passed + self.life)
        self.leaves.append(leaf)
        return [tiny_control.pem(leaf).decode(), self.root.pem.decode()]


class VirtualClock(certificates.Clock):
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._began = super().now()

    def now(self) -> datetime.datetime:
        return self._began + datetime.timedelta(seconds=self.passed)

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds
        await asyncio.sleep(0)


class QuickClock(certificates.Clock):
    """The machine's time, for somebody who sleeps little."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))


class Pod:
    """One pod's folder, and the certificates that are kept in it."""

    def __init__(self, folder, authority: Authority) -> None:
        self.folder = folder
        self.authority = authority
        self.secrets = sds.Secrets()
        self.mesh_roots = folder / "root-cert.pem"
        self.revocations = folder / "crl/ca-crl.pem"

    @contextlib.asynccontextmanager
    async def running(self, **options):
        places = certificates.Places(
            mesh_roots=self.mesh_roots,
            revocations=self.revocations,
            kept=self.folder / "identity",
            output=options.pop("output", None),
            mounted=options.pop("mounted", None),
        )
        made = certificates.Certificates(
            spiffe_id=FRONT,
            ask=self.authority.ask,
            options=settings.Agent(),
            places=places,
            secrets=self.secrets,
            **{"file_interval": 0.01, "clock": QuickClock(), **options},
        )
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(made.run())
            yield made
            task.cancel()

    def shown(self) -> x509.Certificate | None:
        """The leaf that Envoy has."""
        found = self.secrets.get("default")
        return found and x509.load_pem_x509_certificate(read(found).tls_certificate.certificate_chain.inline_bytes)

    def roots(self) -> list[x509.Certificate]:
        found = self.secrets.get("ROOTCA")
        return x509.load_pem_x509_certificates(read(found).validation_context.trusted_ca.inline_bytes) if found else []

    def revoked(self) -> bytes | None:
        """The revocation lists that Envoy has; None while it has no roots."""
        found = self.secrets.get("ROOTCA")
        return read(found).validation_context.crl.inline_bytes if found else None

    def write_revocations(self, pem: bytes) -> None:
        files.write_file(self.revocations, pem)


def read(found):
    return protos.unpack(protos.message_class("google.protobuf.Any").FromString(found[1]))


async def until(check) -> None:
    async with asyncio.timeout(60):
        while not check():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_certificate_is_renewed_around_half_of_its_life_again_and_again(tmp_path) -> None:
    clock = VirtualClock()
    authority = Authority(clock)
    pod = Pod(tmp_path, authority)
    async with pod.running(clock=clock):
        await until(lambda: len(authority.asked_at) > 3)
        await until(lambda: pod.shown() == authority.leaves[-1])
    lives = [later - earlier for earlier, later in itertools.pairwise(authority.asked_at)]
    # The ratio is 0.5, its jitter 0.01; X.509 counts whole seconds.
    assert all(0.48 * 600 - 1 <= life <= 0.52 * 600 + 2 for life in lives)
    assert len(set(lives)) > 1, "jitter"
    assert len({leaf.public_key().public_numbers() for leaf in authority.leaves}) == len(authority.leaves)


async def test_failures_are_spread_out_but_never_end(tmp_path) -> None:
    clock = VirtualClock()
    authority = Authority(clock)
    authority.failures = 40
    pod = Pod(tmp_path, authority)
    async with pod.running(clock=clock):
        await until(lambda: pod.shown() is not None)
    delays = [later - earlier for earlier, later in itertools.pairwise(authority.asked_at)]
    assert len(delays) >= 40
    assert delays[0] <= 0.1
    assert all(5.0 <= delay <= 10.0 for delay in delays[10:40])


async def test_certificate_that_is_over_by_this_machines_clock_counts_as_a_failure(tmp_path, caplog) -> None:
    clock = VirtualClock()
    authority = Authority(clock, life=-30.0)
    pod = Pod(tmp_path, authority)
    async with pod.running(clock=clock):
        await until(lambda: len(authority.asked_at) > 20)
        assert pod.shown() is None
        authority.life = 600.0
        await until(lambda: pod.shown() is not None)
    delays = [later - earlier for earlier, later in itertools.pairwise(authority.asked_at)]
    assert all(delay >= 5.0 for delay in delays[10:20])
    assert "by this machine's clock" in caplog.text


async def test_service_that_answers_nonsense_is_asked_again() -> None:
    async with answering(b"\xff\xff") as address:
        ask = certificates.ask_authority(control_plane.Endpoint(address=address, tls=False), 600.0)
        with pytest.raises(AuthorityError, match="no answer to a certificate request"):
            await ask(b"a request")


@contextlib.asynccontextmanager
async def answering(answer: bytes):
    """A certificate service that says the same to everybody; its address."""

    async def create(_: bytes, __: object) -> bytes:
        return answer

    server = grpc.aio.server()
    methods = {"CreateCertificate": grpc.unary_unary_rpc_method_handler(create)}
    service = "istio.v1.auth.IstioCertificateService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def test_service_that_fails_is_asked_again_and_the_old_certificate_stays(tmp_path) -> None:
    authority = Authority()
    authority.failures = 2
    pod = Pod(tmp_path, authority)
    pod.mesh_roots.write_bytes(authority.root.pem + tiny_control.Root("earlier").pem)
    async with pod.running():
        # Both roots: those of the mesh are followed, too.
        await until(lambda: pod.shown() is not None and len(pod.roots()) == 2)
        assert authority.asked == 3
        first = pod.shown()
        authority.failures = 1_000_000
        pod.mesh_roots.write_bytes(authority.root.pem + tiny_control.Root("b").pem)
        await until(lambda: authority.asked > 5)
        assert pod.shown() == first
        authority.failures = 0
        await until(lambda: len(authority.leaves) == 2)


async def test_three_rotations_of_the_root_never_leave_a_peer_untrusted(tmp_path) -> None:
    authority = Authority()
    pod = Pod(tmp_path, authority)
    pod.mesh_roots.write_bytes(authority.root.pem + tiny_control.Root("earlier").pem)
    async with pod.running():
        # Both roots: those of the mesh are followed, too.
        await until(lambda: pod.shown() is not None and len(pod.roots()) == 2)
        for name in ("second", "third", "fourth"):
            old, new = authority.root, tiny_control.Root(name)
            asked = authority.asked
            pod.mesh_roots.write_bytes(old.pem + new.pem)
            await until(lambda new=new: new.certificate in pod.roots())
            assert old.certificate in pod.roots()
            await until(lambda asked=asked: authority.asked > asked)
            authority.root = new
            asked = authority.asked
            pod.mesh_roots.write_bytes(new.pem)
            await until(lambda asked=asked: authority.asked > asked)
            await until(lambda new=new: pod.roots() == [new.certificate])


async def test_restart_goes_on_with_the_kept_certificate(tmp_path) -> None:
    authority = Authority()
    async with Pod(tmp_path, authority).running():
        await until(lambda: (tmp_path / "identity/root-cert.pem").exists())
    authority.failures = 1000
    again = Pod(tmp_path, authority)
    async with again.running():
        await until(lambda: again.shown() is not None)
        await asyncio.sleep(0.05)
    assert again.shown() == authority.leaves[0]
    assert authority.asked == 1


@pytest.mark.parametrize("damage", ["expired", "torn", "another's"])
async def test_kept_certificate_that_is_no_good_is_replaced(tmp_path, damage: str) -> None:
    authority = Authority()
    async with Pod(tmp_path, authority).running():
        await until(lambda: (tmp_path / "identity/root-cert.pem").exists())
    if damage == "expired":
        key = serialization.load_pem_private_key((tmp_path / "identity/key.pem").read_bytes(), None)
        leaf = authority.root.issue(key.public_key(), [x509.UniformResourceIdentifier(FRONT)], -1)
        (tmp_path / "identity/cert-chain.pem").write_bytes(tiny_control.pem(leaf))
    if damage == "torn":
        (tmp_path / "identity/cert-chain.pem").write_bytes(b"-----BEGIN CERT")
    if damage == "another's":
        (tmp_path / "identity/key.pem").write_bytes(tiny_control.pem(tiny_control.Root().key))
    asked = authority.asked
    again = Pod(tmp_path, authority)
    async with again.running():
        await until(lambda: again.shown() == authority.leaves[-1])
    assert authority.asked > asked


async def test_further_roots_are_trusted_too_and_everything_is_written_where_asked(tmp_path) -> None:
    authority, further = Authority(), tiny_control.Root("further")
    pod = Pod(tmp_path, authority)
    async with pod.running(further_roots=(further.pem,), output=tmp_path / "out"):
        await until(lambda: len(pod.roots()) == 2 and pod.shown() is not None)
    assert pod.roots() == [authority.root.certificate, further.certificate]
    written = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()}
    assert written == {"key.pem": 0o600, "cert-chain.pem": 0o644, "root-cert.pem": 0o644}
    assert (tmp_path / "out/root-cert.pem").read_bytes() == authority.root.pem + further.pem


async def test_folder_that_cannot_be_written_costs_a_warning_only(tmp_path, caplog) -> None:
    (tmp_path / "out").write_text("a file")
    pod = Pod(tmp_path, Authority())
    async with pod.running(output=tmp_path / "out"):
        await until(lambda: pod.shown() is not None)
    assert "cannot write certificates" in caplog.text


def bundle_of(*roots: tiny_control.Root) -> bytes:
    """What the control plane pushes."""
    kind = protos.message_class("istio.mesh.v1alpha1.ProxyConfig")
    return protos.encode(kind(ca_certificates_pem=[root.pem.decode() for root in roots]))


async def test_pushed_root_is_trusted_at_once_and_costs_no_certificate(tmp_path) -> None:
    authority, new = Authority(), tiny_control.Root("new")
    pod = Pod(tmp_path, authority)
    async with pod.running() as made:
        await until(lambda: pod.shown() is not None)
        made.take_pushed([bundle_of(authority.root, new)])
        assert pod.roots() == [authority.root.certificate, new.certificate]
        await asyncio.sleep(0.05)
        assert authority.asked == 1
    again = Pod(tmp_path, authority)
    async with again.running():
        await until(lambda: again.shown() is not None)
    assert again.roots() == pod.roots(), "a restarted agent remembers"


async def test_root_that_is_pushed_no_longer_leaves_with_a_new_certificate(tmp_path) -> None:
    authority = Authority()
    old, new = authority.root, tiny_control.Root("new")
    pod = Pod(tmp_path, authority)
    async with pod.running() as made:
        await until(lambda: pod.shown() is not None)
        made.take_pushed([bundle_of(old, new)])
        authority.root = new
        made.take_pushed([bundle_of(new)])
        await until(lambda: pod.roots() == [new.certificate])
    assert pod.shown() == authority.leaves[-1]
    assert authority.asked == 2


@pytest.mark.parametrize("pushed", [b"\xff\xff", bundle_of(), protos.encode(protos.struct({}))])
async def test_push_without_a_certificate_is_refused(tmp_path, pushed: bytes) -> None:
    authority = Authority()
    pod = Pod(tmp_path, authority)
    async with pod.running() as made:
        await until(lambda: pod.shown() is not None)
        with pytest.raises(DecodeError, match="pushed roots"):
            made.take_pushed([pushed])
        made.take_pushed([])
        assert pod.roots() == [authority.root.certificate]


def mount(folder, authority: Authority, root: tiny_control.Root) -> x509.Certificate:
    """A certificate of another trust domain, laid where the pod brings it along."""
    folder.mkdir(exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    leaf = root.issue(key.public_key(), [x509.UniformResourceIdentifier("spiffe://else.example/ns/web/sa/front")], 600)
    (folder / "key.pem").write_bytes(tiny_control.pem(key))
    (folder / "cert-chain.pem").write_bytes(tiny_control.pem(leaf))
    (folder / "root-cert.pem").write_bytes(root.pem)
    return leaf


async def test_certificate_in_files_is_followed_and_none_is_asked_for(tmp_path) -> None:
    authority, mounted = Authority(), tmp_path / "mounted"
    first, second = tiny_control.Root("first"), tiny_control.Root("second")
    leaf = mount(mounted, authority, first)
    pod = Pod(tmp_path, authority)
    async with pod.running(mounted=mounted) as made:
        await until(lambda: pod.shown() == leaf)
        assert pod.roots() == [first.certificate]
        made.take_pushed([bundle_of(second)])
        assert pod.roots() == [first.certificate, second.certificate]
        leaf = mount(mounted, authority, second)
        await until(lambda: pod.shown() == leaf)
        await until(lambda: pod.roots() == [second.certificate])
        (mounted / "key.pem").write_bytes(tiny_control.pem(first.key))
        await asyncio.sleep(0.05)
        assert pod.shown() == leaf, "what does not fit together is not used"
    assert authority.asked == 0
    assert not (tmp_path / "identity/key.pem").exists()


async def test_files_that_come_later_are_waited_for(tmp_path, caplog) -> None:
    authority = Authority()
    pod = Pod(tmp_path, authority)
    async with pod.running(mounted=tmp_path / "mounted"):
        await until(lambda: "is not used" in caplog.text)
        leaf = mount(tmp_path / "mounted", authority, tiny_control.Root())
        await until(lambda: pod.shown() == leaf)
    assert authority.asked == 0


LISTS = make_node("root", 1_700_000_000.0)
ONE, TWO = (revoke(LISTS, 1_700_000_000.0, range(1, number)) for number in (2, 3))


async def test_revocation_lists_go_with_the_roots_and_follow_their_file(tmp_path) -> None:
    pod = Pod(tmp_path, Authority())
    async with pod.running():
        await until(lambda: pod.revoked() == b"")
        for pem in (ONE, TWO, b"", ONE):
            pod.write_revocations(pem)
            await until(lambda pem=pem: pod.revoked() == pem)
        pod.revocations.unlink()
        await until(lambda: pod.revoked() == b"")
        assert pod.roots() == [pod.authority.root.certificate]


async def test_roots_never_go_out_without_the_lists_that_were_there_at_the_start(tmp_path) -> None:
    first = Pod(tmp_path, Authority())
    async with first.running():
        await until(lambda: first.shown() is not None)
    pod = Pod(tmp_path, first.authority)
    seen: list[bytes | None] = []
    pod.secrets.on_change(lambda: seen.append(pod.revoked()))
    pod.write_revocations(ONE)
    async with pod.running():
        await until(lambda: pod.shown() is not None)
    assert set(seen) == {ONE}


async def test_an_unreadable_list_is_told_and_the_last_good_one_stays(tmp_path, caplog) -> None:
    pod = Pod(tmp_path, Authority())
    pod.write_revocations(ONE)
    async with pod.running():
        await until(lambda: pod.revoked() == ONE)
        pod.write_revocations(TWO[:-30])
        await until(lambda: "ca-crl.pem holds no whole PEM of a CRL; the last good one stays in force" in caplog.text)
        assert pod.revoked() == ONE
        pod.write_revocations(TWO)
        await until(lambda: pod.revoked() == TWO)


async def test_an_unreadable_list_at_the_start_leaves_nobody_trusted(tmp_path, caplog) -> None:
    pod = Pod(tmp_path, Authority())
    pod.write_revocations(b"nonsense")
    async with pod.running():
        await until(lambda: pod.shown() is not None)
        assert pod.roots() == []
        assert caplog.text.count("nobody is trusted") == 1
        pod.write_revocations(ONE)
        await until(lambda: pod.revoked() == ONE)


async def test_a_certificate_in_files_has_the_lists_of_the_mesh_beside_it(tmp_path) -> None:
    authority, mounted = Authority(), tmp_path / "mounted"
    mount(mounted, authority, tiny_control.Root("first"))
    pod = Pod(tmp_path, authority)
    pod.write_revocations(ONE)
    async with pod.running(mounted=mounted):
        await until(lambda: pod.revoked() == ONE)
        pod.write_revocations(TWO)
        await until(lambda: pod.revoked() == TWO)
