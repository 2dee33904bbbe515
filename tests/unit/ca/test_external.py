"""Requests that are handed to a signer of somebody else's, and answers of a signer that cannot be trusted."""

import datetime

import pytest
from certificate_requests import make_request, read_chain, verify_chain
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from plugged_authority import Node, make_node

from mizzen.ca import certificates, external
from mizzen.errors import AuthorityError

NOW = 1_700_000_000.0
CART = "spiffe://cluster.local/ns/shop/sa/cart"
VAULT = "spiffe://cluster.local/ns/bank/sa/vault"
KEY = ec.generate_private_key(ec.SECP256R1())
ROOT = make_node("signer's root", NOW)
MIDDLE = make_node("signer", NOW, ROOT)
OTHER = make_node("another root", NOW)
URI = x509.UniformResourceIdentifier
BOTH = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


def wish() -> external.Wish:
    return external.check_wish(make_request(KEY, names=(CART,)), (CART,))


def sign(
    issuer: Node = MIDDLE,
    *,
    key=KEY,
    names: tuple[x509.GeneralName, ...] = (URI(CART),),
    common_name: str = "",
    is_ca: bool = False,
    usages=BOTH,
    days: tuple[float, float] = (-1, 1),
) -> bytes:
    start = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start + datetime.timedelta(days=days[0]))
        .not_valid_after(start + datetime.timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return certificates.encode(builder.sign(issuer.key, hashes.SHA256()))


def request_for(*names: x509.GeneralName, common_name: str = "") -> str:
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def test_a_request_for_what_the_sender_is_passes_as_it_is() -> None:
    pem = make_request(KEY, names=(CART,))
    found = external.check_wish("somebody's notes\n" + pem, (CART,))
    assert (found.key, found.names, found.pem) == (KEY.public_key(), {URI(CART)}, pem.encode())


@pytest.mark.parametrize(
    "pem",
    [
        request_for(URI(VAULT)),
        request_for(URI(CART), URI(VAULT)),
        request_for(URI(CART), x509.DNSName("vault.bank.svc")),
        request_for(URI(CART), x509.RFC822Name("root@example.com")),
        request_for(URI(CART), x509.OtherName(certificates.RECORD, b"\x0c\x01x")),
        request_for(x509.DNSName(CART)),
        request_for(URI(CART), common_name=VAULT),
        request_for(common_name=CART),
        request_for(),
        "rubbish",
    ],
    ids=["other", "both", "host", "mail", "record", "as-a-host", "common-name", "common-name-alone", "nobody", "none"],
)
def test_a_request_for_anything_else_never_gets_to_the_signer(pem: str) -> None:
    with pytest.raises(AuthorityError):
        external.check_wish(pem, (CART,))


@pytest.mark.parametrize("told", [(ROOT.certificate,), ()], ids=["root by the mesh", "root by the signer"])
def test_a_good_answer_is_leaf_intermediates_and_roots(told: tuple[x509.Certificate, ...]) -> None:
    texts = external.check_answer(sign() + MIDDLE.pem + ROOT.pem, wish(), told, NOW)
    chain, roots = read_chain(texts)
    assert (len(chain), roots) == (2, [ROOT.certificate])
    assert verify_chain(chain, roots, NOW) == [CART]


def test_a_signer_that_leaves_its_root_out_needs_it_in_the_mesh_config() -> None:
    texts = external.check_answer(sign() + MIDDLE.pem, wish(), (ROOT.certificate, OTHER.certificate), NOW)
    assert read_chain(texts)[1] == [ROOT.certificate, OTHER.certificate]
    with pytest.raises(AuthorityError, match="caCertificates"):
        external.check_answer(sign() + MIDDLE.pem, wish(), (), NOW)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (sign(key=ec.generate_private_key(ec.SECP256R1())), "another key"),
        (sign(names=(URI(VAULT),)), "other names"),
        (sign(names=(URI(CART), URI(VAULT))), "other names"),
        (sign(names=(URI(CART), x509.DNSName("vault.bank.svc"))), "other names"),
        (sign(names=()), "other names"),
        (sign(common_name="vault"), "other names"),
        (sign(is_ca=True), "made an authority"),
        (sign(usages=BOTH[:1]), "clients and servers"),
        (sign(days=(-2, -1)), "expired"),
        (sign(days=(1, 2)), "not valid before"),
        (sign(OTHER), "is not signed by"),
        (b"", "no certificate"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no readable PEM"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_that_is_not_what_was_asked_for_is_not_given_out(answer: bytes, reason: str) -> None:
    for told in ((ROOT.certificate,), ()):
        following = MIDDLE.pem + ROOT.pem if answer else b""
        with pytest.raises(AuthorityError, match=reason):
            external.check_answer(answer + following, wish(), told, NOW)


def test_a_chain_to_a_root_of_others_is_not_given_out() -> None:
    with pytest.raises(AuthorityError, match="none of the roots"):
        external.check_answer(sign(OTHER) + OTHER.pem, wish(), (ROOT.certificate,), NOW)


def test_a_workload_cannot_be_its_own_root() -> None:
    with pytest.raises(AuthorityError):
        external.check_answer(sign(Node(MIDDLE.certificate, KEY)) + sign(), wish(), (), NOW)
