"""Certificates have Istio's fields and hold before a real verifier; requests give their key and nothing else."""

from typing import Any

import odd_pems
import pytest
from certificate_requests import make_request, verify_chain
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.verification import VerificationError
from plugged_authority import make_node

from mizzen.ca import certificates
from mizzen.errors import AuthorityError

NOW = 1_700_000_000.0
HOUR = 3600.0
CART = "spiffe://cluster.local/ns/shop/sa/cart"
ROOT = certificates.build_root("cluster.local", 87_600 * HOUR, 2048, NOW)


def leaf(names: tuple[str, ...] = (CART,), end: float = NOW + 24 * HOUR, **options: Any) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    return certificates.build_leaf(ROOT, key, names, end, NOW, **options)


def extension(certificate: x509.Certificate, kind: type) -> x509.Extension:
    return certificate.extensions.get_extension_for_class(kind)


def test_root_signs_certificates_for_its_organisation() -> None:
    root = ROOT.certificate
    assert root.subject.rfc4514_string().endswith("O=cluster.local")
    assert extension(root, x509.BasicConstraints).value.ca
    assert extension(root, x509.KeyUsage).value.key_cert_sign
    assert not extension(root, x509.KeyUsage).value.digital_signature
    assert certificates.expiry_of(root) == NOW + 87_600 * HOUR
    assert certificates.start_of(root) == NOW - 120


def test_two_roots_share_neither_name_nor_key() -> None:
    other = certificates.build_root("cluster.local", HOUR, 2048, NOW)
    assert other.certificate.subject != ROOT.certificate.subject
    assert other.certificate.public_key() != ROOT.certificate.public_key()


def test_leaf_has_the_fields_of_an_istio_workload_certificate() -> None:
    made = leaf()
    assert list(made.subject) == []
    names = extension(made, x509.SubjectAlternativeName)
    assert names.critical
    assert names.value.get_values_for_type(x509.UniformResourceIdentifier) == [CART]
    usage = extension(made, x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (True, True, False)
    assert [each.dotted_string for each in extension(made, x509.ExtendedKeyUsage).value] == [
        "1.3.6.1.5.5.7.3.1",
        "1.3.6.1.5.5.7.3.2",
    ]
    assert not extension(made, x509.BasicConstraints).value.ca
    assert certificates.start_of(made) == NOW - 120
    assert certificates.expiry_of(made) == NOW + 24 * HOUR
    assert made.serial_number != leaf().serial_number


def test_leaf_verifies_only_within_its_life() -> None:
    made = leaf()
    assert verify_chain([made], ROOT.roots, NOW) == [CART]
    with pytest.raises(VerificationError):
        verify_chain([made], ROOT.roots, NOW + 25 * HOUR)


def test_leaf_never_outlives_its_signer() -> None:
    assert certificates.expiry_of(leaf(end=NOW + 1_000_000 * HOUR)) == ROOT.expiry


def test_names_take_their_form() -> None:
    names = extension(leaf((CART, "10.0.0.1", "istiod.istio-system.svc")), x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["istiod.istio-system.svc"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]


def test_common_name_is_the_identity_where_it_fits() -> None:
    assert leaf(common_name=True).subject.rfc4514_string() == f"CN={CART}"
    assert list(leaf((f"spiffe://cluster.local/ns/{'x' * 60}/sa/cart",), common_name=True).subject) == []


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP384R1()),
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
    ],
)
def test_request_gives_its_key_and_none_of_its_names(key) -> None:
    request = certificates.check_request(make_request(key, names=("spiffe://cluster.local/ns/bank/sa/root",)))
    assert request.key == key.public_key()
    assert not request.has_common_name
    assert not hasattr(request, "names")


def test_request_signed_by_another_key_is_refused() -> None:
    der = bytearray(
        x509.load_pem_x509_csr(make_request().encode()).public_bytes(certificates.serialization.Encoding.DER)
    )
    der[-1] ^= 1
    broken = x509.load_der_x509_csr(bytes(der)).public_bytes(certificates.serialization.Encoding.PEM).decode()
    with pytest.raises(AuthorityError, match="signature does not verify"):
        certificates.check_request(broken)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (rsa.generate_private_key(public_exponent=65537, key_size=1024), "1024 bits"),
        (ec.generate_private_key(ec.SECP256K1()), "neither RSA"),
    ],
)
def test_request_with_a_weak_or_odd_key_is_refused(key, reason: str) -> None:
    with pytest.raises(AuthorityError, match=reason):
        certificates.check_request(make_request(key))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rubbish",
        "é",
        "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        "x" * 70_000,
    ],
)
def test_text_that_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(AuthorityError, match="request"):
        certificates.check_request(text)


def test_request_of_another_version_is_refused() -> None:
    request = make_request(ec.generate_private_key(ec.SECP256R1())).encode()
    with pytest.raises(AuthorityError, match="request"):
        certificates.check_request(odd_pems.replace(request, "020100", "020107").decode())


def test_certificate_of_another_version_is_not_readable() -> None:
    with pytest.raises(AuthorityError, match="file holds no readable PEM"):
        certificates.decode(odd_pems.of_version_8(certificates.encode(ROOT.certificate)), "file")


def test_signer_finds_its_way_to_the_root() -> None:
    root = make_node("root", NOW)
    middle = make_node("middle", NOW, root)
    issuing = make_node("issuing", NOW, middle)
    other = make_node("other root", NOW)
    signer = certificates.build_signer(
        issuing.certificate,
        issuing.key,
        [root.certificate, middle.certificate, issuing.certificate],
        [other.certificate, root.certificate],
    )
    assert signer.intermediates == (issuing.certificate, middle.certificate)
    assert signer.roots == (root.certificate, other.certificate)
    made = certificates.build_leaf(
        signer, ec.generate_private_key(ec.SECP256R1()).public_key(), (CART,), NOW + HOUR, NOW
    )
    assert verify_chain([made, *signer.intermediates], [root.certificate], NOW) == [CART]


def test_root_itself_needs_no_chain() -> None:
    root = make_node("root", NOW)
    signer = certificates.build_signer(root.certificate, root.key, [], [root.certificate])
    assert signer.intermediates == ()


def test_chain_expires_with_its_shortest_part() -> None:
    root = make_node("root", NOW, days=30)
    issuing = make_node("issuing", NOW, root, days=10)
    signer = certificates.build_signer(issuing.certificate, issuing.key, [], [root.certificate])
    assert signer.expiry == pytest.approx(NOW + 10 * 24 * HOUR, abs=200)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    root, stranger = make_node("root", NOW), make_node("stranger", NOW)
    issuing = make_node("issuing", NOW, root)
    with pytest.raises(AuthorityError, match="does not belong to its certificate"):
        certificates.build_signer(issuing.certificate, stranger.key, [], [root.certificate])
    with pytest.raises(AuthorityError, match="does not lead to any of its roots"):
        certificates.build_signer(issuing.certificate, issuing.key, [], [stranger.certificate])
    workload = make_node("workload", NOW, root, ca=False)
    with pytest.raises(AuthorityError, match="may not sign"):
        certificates.build_signer(workload.certificate, workload.key, [], [root.certificate])


def test_signer_never_shows_its_key() -> None:
    number = str(ROOT.key.private_numbers().d)
    for text in (repr(ROOT), str(ROOT)):
        assert number not in text
        assert "PRIVATE" not in text
    with pytest.raises(AuthorityError) as caught:
        certificates.decode_key(b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "ca-key.pem")
    assert "c2VjcmV0" not in str(caught.value)
    assert caught.value.__cause__ is None


def records(certificate: x509.Certificate) -> list[bytes]:
    names = extension(certificate, x509.SubjectAlternativeName).value
    return [name.value for name in names if isinstance(name, x509.OtherName) and name.type_id == certificates.RECORD]


@pytest.mark.parametrize(
    ("length", "prefix"), [(1, b"\x0c\x01"), (127, b"\x0c\x7f"), (128, b"\x0c\x81\x80"), (1024, b"\x0c\x82\x04\x00")]
)
def test_a_record_is_one_more_name_and_changes_no_other(length: int, prefix: bytes) -> None:
    made = leaf(record="w" * length)
    assert records(made) == [prefix + b"w" * length]
    names = extension(made, x509.SubjectAlternativeName)
    assert names.critical
    assert len(names.value) == 2
    assert list(made.subject) == []
    assert verify_chain([made], [ROOT.certificate], NOW) == [CART]


@pytest.mark.parametrize("record", ["", "w" * 1025])
def test_a_record_that_is_empty_or_too_long_is_left_out(record: str) -> None:
    assert records(leaf(record=record)) == []
