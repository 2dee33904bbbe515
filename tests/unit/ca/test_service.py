"""The certificate service and the control plane's own certificate, over real gRPC with real TLS."""

import contextlib
import time
from collections.abc import AsyncIterator

import grpc
import pytest
from certificate_requests import make_request, read_chain, verify_chain
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from plugged_authority import make_node, revoke

from mizzen import observe, protos, settings
from mizzen.ca import certificates, service, serving, tokens
from mizzen.ca.authority import Authority, State, start_self_signed
from mizzen.ca.certificates import Signer
from mizzen.ca.identity import Call, Caller, CertificateAuthenticator, FirstAuthenticator, TokenAuthenticator
from mizzen.ca.revocations import Revocations
from mizzen.errors import AuthorityError

DAY = 86_400.0
CART = "spiffe://cluster.local/ns/shop/sa/cart"
NEIGHBOUR = "spiffe://cluster.local/ns/shop/sa/neighbour"
HOST = "istiod.istio-system.svc"
METHOD = "/istio.v1.auth.IstioCertificateService/CreateCertificate"
KEY = tokens.generate_key()
AUTH = protos.package("istio.v1.auth")
CONFIG = settings.Authority(root_overlap=100.0)


async def describe(caller: Caller, _: Call) -> str:
    return f"who is {caller.identities[0]} of {caller.pod};by {caller.method}"


def impersonate(caller: Caller, other: str) -> None:
    if (caller.identities[0], caller.pod_uid, other) != (CART, "uid-0", NEIGHBOUR):
        raise AuthorityError("not for you")


class Mesh:
    """A control plane with a token port and a mutual TLS port, at a time of its own."""

    def __init__(self, signer: Signer | None = None) -> None:
        # TLS libraries ask the real clock, so the mesh's time starts there.
        self.offset = 0.0
        self.clock = lambda: time.time() + self.offset
        state = State(current=signer) if signer else start_self_signed("cluster.local", CONFIG, self.clock())
        self.revocations = Revocations(enabled=True)
        self.authority = Authority(state, CONFIG, self.clock, fresh=True)
        self.certificate = serving.ServingCertificate(self.authority, (HOST,), self.clock)
        verifier = tokens.KeyTokenVerifier([KEY.public_key()], self.clock)
        self.authenticator = authenticator = FirstAuthenticator(
            (
                CertificateAuthenticator(lambda: frozenset({"cluster.local"}), self.revocations),
                TokenAuthenticator(verifier, lambda: "cluster.local"),
            )
        )
        self.server = grpc.aio.server()
        self.server.add_generic_rpc_handlers(
            [
                service.CertificateService(
                    service.OwnIssuer(self.authority), authenticator, describe, impersonate
                ).handler()
            ]
        )
        self.token_port = self.server.add_secure_port("127.0.0.1:0", self.certificate.credentials(mutual=False))
        self.mutual_port = self.server.add_secure_port("127.0.0.1:0", self.certificate.credentials(mutual=True))

    def token(self, lifetime: float = 3600.0) -> str:
        account = tokens.ServiceAccount(namespace="shop", name="cart", pod="cart-0", pod_uid="uid-0")
        return tokens.TokenIssuer(KEY, self.clock).issue(account, lifetime=lifetime)

    async def ask(self, port: int, request, token: str = "", roots: bytes = b"", identity=(None, None)):
        key, chain = identity
        credentials = grpc.ssl_channel_credentials(roots or self.authority.bundle, key, chain)
        options = [("grpc.ssl_target_name_override", HOST), ("grpc.use_local_subchannel_pool", 1)]
        metadata = [("authorization", f"Bearer {token}")] if token else []
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
            call = channel.unary_unary(METHOD, protos.encode, AUTH.IstioCertificateResponse.FromString)
            return await call(request, metadata=metadata, timeout=60)


@contextlib.asynccontextmanager
async def serving_mesh(signer: Signer | None = None) -> AsyncIterator[Mesh]:
    made = Mesh(signer)
    await made.server.start()
    try:
        yield made
    finally:
        await made.server.stop(None)


@pytest.fixture
async def mesh() -> AsyncIterator[Mesh]:
    async with serving_mesh() as made:
        yield made


def request(csr: str = "", **fields):
    return AUTH.IstioCertificateRequest(csr=csr or make_request(), **fields)


def counters() -> dict[str, float]:
    lines = observe.render_metrics().decode().splitlines()
    return {line.split(" ")[0]: float(line.split(" ")[1]) for line in lines if line.startswith("citadel_")}


async def test_token_gets_a_certificate_for_its_account(mesh: Mesh) -> None:
    before = counters()
    key = ec.generate_private_key(ec.SECP256R1())
    csr = make_request(key, names=("spiffe://cluster.local/ns/bank/sa/vault",))
    earliest = int(mesh.clock()) + 3600  # Certificates count whole seconds.
    answer = await mesh.ask(mesh.token_port, request(csr, validity_duration=3600), mesh.token())
    chain, roots = read_chain(answer.cert_chain)
    assert verify_chain(chain, roots, mesh.clock()) == [CART]
    assert chain[0].public_key() == key.public_key()
    assert earliest <= certificates.expiry_of(chain[0]) <= mesh.clock() + 3600
    after = counters()
    assert after["citadel_server_csr_count"] - before["citadel_server_csr_count"] == 1
    issued = "citadel_server_success_cert_issuance_count"
    assert after[issued] - before[issued] == 1


async def test_certificate_renews_itself_over_mutual_tls(mesh: Mesh) -> None:
    identity = await workload_identity(mesh)
    answer = await mesh.ask(mesh.mutual_port, request(), identity=identity)
    chain, roots = read_chain(answer.cert_chain)
    assert verify_chain(chain, roots, mesh.clock()) == [CART]


@pytest.mark.parametrize("revoked", ["leaf", "intermediate"])
async def test_what_is_revoked_renews_nothing_but_a_token_still_does(revoked: str) -> None:
    root = make_node("root", time.time())
    issuing = make_node("issuing", time.time(), root)
    signer = certificates.build_signer(issuing.certificate, issuing.key, (), [root.certificate])
    async with serving_mesh(signer) as mesh:
        identity = await workload_identity(mesh)
        await mesh.ask(mesh.mutual_port, request(), identity=identity)
        leaf = certificates.decode(identity[1], "own")[0]
        found = {"leaf": (leaf, issuing, root), "intermediate": (issuing.certificate, root, issuing)}
        certificate, issuer, other = found[revoked]
        lists = revoke(issuer, time.time(), [certificate.serial_number]) + revoke(other, time.time())
        mesh.revocations.take(lists, signer, "ca-crl.pem")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await mesh.ask(mesh.mutual_port, request(), identity=identity)
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        await mesh.ask(mesh.mutual_port, request(), mesh.token(), identity=identity)


async def workload_identity(mesh: Mesh) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    answer = await mesh.ask(mesh.token_port, request(make_request(key)), mesh.token())
    return certificates.encode_key(key), "".join(answer.cert_chain[:-1]).encode()


async def refusal(mesh: Mesh, asked, token: str) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await mesh.ask(mesh.token_port, asked, token)
    return caught.value.code(), caught.value.details() or ""


async def test_caller_without_credentials_is_refused(mesh: Mesh) -> None:
    before = counters()["citadel_server_authentication_failure_count"]
    for token in ("", "rubbish", mesh.token(lifetime=-1)):
        code, details = await refusal(mesh, request(), token)
        assert (code, details) == (grpc.StatusCode.UNAUTHENTICATED, "request authenticate failure")
    assert counters()["citadel_server_authentication_failure_count"] - before == 3


@pytest.mark.parametrize("other", ["spiffe://cluster.local/ns/bank/sa/vault", "", None, 3])
async def test_impersonation_is_refused(mesh: Mesh, other: object) -> None:
    asked = request(metadata={"ImpersonatedIdentity": other})
    code, details = await refusal(mesh, asked, mesh.token())
    assert (code, details) == (grpc.StatusCode.UNAUTHENTICATED, "request impersonation authentication failure")


async def test_who_may_have_anothers_certificate_gets_that_and_no_record_of_itself(mesh: Mesh) -> None:
    asked = request(make_request(names=(CART,)), metadata={"ImpersonatedIdentity": NEIGHBOUR})
    chain, roots = read_chain((await mesh.ask(mesh.token_port, asked, mesh.token())).cert_chain)
    assert verify_chain(chain, roots, mesh.clock()) == [NEIGHBOUR]
    names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.UniformResourceIdentifier(NEIGHBOUR)]


async def test_nobody_may_have_anothers_certificate_unless_that_is_set_up(mesh: Mesh) -> None:
    closed = service.CertificateService(service.OwnIssuer(mesh.authority), mesh.authenticator)
    mesh.server = grpc.aio.server()
    mesh.server.add_generic_rpc_handlers([closed.handler()])
    mesh.token_port = mesh.server.add_secure_port("127.0.0.1:0", mesh.certificate.credentials(mutual=False))
    await mesh.server.start()
    try:
        asked = request(metadata={"ImpersonatedIdentity": NEIGHBOUR})
        assert (await refusal(mesh, asked, mesh.token()))[0] == grpc.StatusCode.UNAUTHENTICATED
    finally:
        await mesh.server.stop(None)


async def test_bad_request_and_long_life_are_invalid_arguments(mesh: Mesh) -> None:
    before = counters()
    code, details = await refusal(mesh, request("rubbish"), mesh.token())
    assert (code, details[:18]) == (grpc.StatusCode.INVALID_ARGUMENT, "CSR signing error ")
    code, details = await refusal(mesh, request(validity_duration=int(91 * DAY)), mesh.token())
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert "greater than the max allowed TTL" in details
    after = counters()
    for kind in ("CSR_ERROR", "TTL_ERROR"):
        name = f'citadel_server_csr_sign_err_count{{error="{kind}"}}'
        assert after[name] - before.get(name, 0) == 1
    parsing = "citadel_server_csr_parsing_err_count"
    assert after[parsing] - before[parsing] == 1


async def test_mutual_port_refuses_strangers(mesh: Mesh) -> None:
    stranger = certificates.build_root("cluster.local", DAY, 2048, mesh.clock())
    key = ec.generate_private_key(ec.SECP256R1())
    forged = certificates.build_leaf(stranger, key.public_key(), (CART,), mesh.clock() + DAY, mesh.clock())
    identity = (certificates.encode_key(key), certificates.encode(forged))
    for shown in (identity, (None, None)):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await mesh.ask(mesh.mutual_port, request(), mesh.token(), identity=shown)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


async def test_mutual_port_refuses_a_foreign_trust_domain(mesh: Mesh) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    other = "spiffe://other.local/ns/shop/sa/cart"
    signer, now = mesh.authority.state.current, mesh.clock()
    made = certificates.build_leaf(signer, key.public_key(), (other,), now + DAY, now)
    identity = (certificates.encode_key(key), certificates.encode(made))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await mesh.ask(mesh.mutual_port, request(), identity=identity)
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_root_rotates_while_the_ports_stay_open(mesh: Mesh) -> None:
    old_bundle = mesh.authority.bundle
    identity = await workload_identity(mesh)
    mesh.authority.adopt(mesh.authority.build_successor())
    both = mesh.authority.bundle
    assert both.count(b"BEGIN CERTIFICATE") == 2
    # Announced: whoever still has the old bundle is served.
    await mesh.ask(mesh.token_port, request(), mesh.token(), roots=old_bundle)
    mesh.offset += 101
    mesh.authority.advance()
    # Switched: the server shows the new root's certificate, old workload certificates are still believed.
    await mesh.ask(mesh.mutual_port, request(), identity=identity, roots=both)
    with pytest.raises(grpc.aio.AioRpcError):
        await mesh.ask(mesh.token_port, request(), mesh.token(), roots=old_bundle)
    renewed = await workload_identity(mesh)
    await mesh.ask(mesh.mutual_port, request(), identity=renewed, roots=both)


async def test_serving_certificate_is_renewed_at_half_of_its_life(mesh: Mesh) -> None:
    first = mesh.certificate.chain_pem
    mesh.offset += DAY / 2 - 60
    assert not mesh.certificate.renew_if_due()
    mesh.offset += 61
    assert mesh.certificate.renew_if_due()
    assert mesh.certificate.chain_pem != first
    names = x509.load_pem_x509_certificate(mesh.certificate.chain_pem).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == [HOST]


async def test_serving_certificate_of_a_clock_that_was_ahead_is_renewed(mesh: Mesh) -> None:
    mesh.offset += 3600
    mesh.certificate.renew()
    mesh.offset -= 3600
    assert mesh.certificate.renew_if_due()
    assert not mesh.certificate.renew_if_due()
    await mesh.ask(mesh.token_port, request(), mesh.token())


def test_control_plane_names_are_istiods() -> None:
    assert serving.control_plane_names("istio-system", "default", ("mesh.example",)) == (
        "istio-pilot.istio-system.svc",
        "istiod-remote.istio-system.svc",
        "istiod.istio-system.svc",
        "mesh.example",
    )
    assert "istiod-canary.mesh.svc" in serving.control_plane_names("mesh", "canary", ())


async def test_expiry_metrics_follow_the_authority(mesh: Mesh) -> None:
    service.watch_expiry(mesh.authority)
    root = certificates.expiry_of(mesh.authority.state.current.roots[0])
    shown = counters()
    assert shown["citadel_server_root_cert_expiry_timestamp"] == root
    assert shown["citadel_server_cert_chain_expiry_seconds"] == pytest.approx(root - mesh.clock(), abs=60)
    successor = certificates.build_root("cluster.local", DAY, 2048, mesh.clock())
    mesh.authority.adopt(successor)
    mesh.offset += 101
    mesh.authority.advance()
    assert counters()["citadel_server_root_cert_expiry_timestamp"] == successor.expiry


async def test_a_certificate_says_which_workload_it_is_for_by_what_the_mesh_knows(mesh: Mesh) -> None:
    answer = await mesh.ask(mesh.token_port, request(make_request(record="liar;bank;;;;;")), mesh.token())
    (leaf, *_), _ = read_chain(answer.cert_chain)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    (record,) = names.get_values_for_type(x509.OtherName)
    assert record.type_id == certificates.RECORD
    assert record.value[2:] == f"who is {CART} of cart-0;by token".encode()
