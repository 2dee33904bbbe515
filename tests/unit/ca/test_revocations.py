"""What a plugged-in authority revokes: only what Envoy can use is in force, and the last good one stays."""

import datetime
import logging

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from plugged_authority import Node, make_node, revoke

from mizzen.ca import certificates
from mizzen.ca.certificates import Signer, build_signer
from mizzen.ca.revocations import Revocations
from mizzen.errors import AuthorityError

NOW = 1_700_000_000.0
WHERE = "cacerts/ca-crl.pem"
ROOT = make_node("root", NOW)
ISSUING = make_node("issuing", NOW, ROOT)
LEAF = make_node("leaf", NOW, ISSUING, ca=False)


def signer_of(issuing: Node, *roots: Node) -> Signer:
    return build_signer(issuing.certificate, issuing.key, (), [root.certificate for root in roots])


SIGNER = signer_of(ISSUING, ROOT)
GOOD = revoke(ISSUING, NOW, [LEAF.certificate.serial_number]) + revoke(ROOT, NOW)


@pytest.fixture
def revocations() -> Revocations:
    return Revocations(enabled=True, clock=lambda: NOW)


def test_a_certificate_is_revoked_by_its_issuer_alone(revocations: Revocations):
    same_number = x509.CertificateBuilder(
        ROOT.certificate.subject,
        ISSUING.certificate.subject,
        ISSUING.key.public_key(),
        LEAF.certificate.serial_number,
        datetime.datetime(2023, 1, 1),
        datetime.datetime(2024, 1, 1),
    ).sign(ROOT.key, hashes.SHA256())
    assert revocations.find_revoked([LEAF.certificate]) is None
    revocations.take(GOOD, SIGNER, WHERE)
    assert revocations.find_revoked([ISSUING.certificate, LEAF.certificate]) == LEAF.certificate
    assert revocations.find_revoked([ISSUING.certificate, ROOT.certificate, same_number]) is None


def test_an_intermediate_is_revoked_by_the_root(revocations: Revocations):
    revocations.take(revoke(ISSUING, NOW) + revoke(ROOT, NOW, [ISSUING.certificate.serial_number]), SIGNER, WHERE)
    assert revocations.find_revoked([LEAF.certificate, ISSUING.certificate]) == ISSUING.certificate


def test_nothing_is_known_before_the_first_content_and_an_empty_one_revokes_nothing(revocations: Revocations):
    told: list[bytes] = []
    revocations.on_change(told.append)
    assert revocations.pem is None
    revocations.take(b"", SIGNER, WHERE)
    assert revocations.pem == b""
    revocations.take(GOOD, SIGNER, WHERE)
    revocations.take(GOOD, SIGNER, WHERE)
    assert revocations.pem == GOOD
    revocations.take(b"\n", SIGNER, WHERE)
    assert revocations.pem == b""
    assert told == [b"", GOOD, b""]
    assert revocations.find_revoked([LEAF.certificate]) is None


FORGED = revoke(Node(ROOT.certificate, LEAF.key), NOW)
NO_LIST_SIGNER = make_node("no lists", NOW)


@pytest.mark.parametrize(
    ("pem", "reason"),
    [
        pytest.param(b"nonsense", "holds no whole PEM of a CRL", id="nonsense"),
        pytest.param(revoke(ISSUING, NOW), "no CRL signed by CN=root", id="the root's lacks"),
        pytest.param(revoke(ROOT, NOW), "no CRL signed by CN=issuing", id="the intermediate's lacks"),
        pytest.param(revoke(ISSUING, NOW) + FORGED, "no CRL signed by CN=root", id="the root's is forged"),
    ],
)
def test_a_bad_content_is_told_and_the_last_good_one_stays(
    revocations: Revocations, caplog: pytest.LogCaptureFixture, pem: bytes, reason: str
):
    with pytest.raises(AuthorityError, match=reason):
        revocations.take(pem, SIGNER, WHERE)
    assert revocations.pem is None
    revocations.take(GOOD, SIGNER, WHERE)
    caplog.clear()
    revocations.take(pem, SIGNER, WHERE)
    assert revocations.pem == GOOD
    assert revocations.find_revoked([LEAF.certificate]) == LEAF.certificate
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert reason in record.message
    assert WHERE in record.message


def test_a_signer_that_the_last_good_one_would_shut_out_is_not_taken(revocations: Revocations):
    revocations.take(GOOD, SIGNER, WHERE)
    other = make_node("other", NOW)
    with pytest.raises(AuthorityError, match=r"do not fit: .* no CRL signed by CN=other"):
        revocations.take(b"nonsense", signer_of(other, other), WHERE)
    assert revocations.pem == GOOD


def test_an_authority_that_may_not_sign_lists_is_told(revocations: Revocations):
    key_usage = x509.KeyUsage(
        *[False] * 5, key_cert_sign=True, crl_sign=False, encipher_only=False, decipher_only=False
    )
    now = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    subject = NO_LIST_SIGNER.certificate.subject
    builder = x509.CertificateBuilder(subject, subject, NO_LIST_SIGNER.key.public_key(), 1, now, now)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.add_extension(key_usage, critical=True).sign(NO_LIST_SIGNER.key, hashes.SHA256())
    node = Node(certificate, NO_LIST_SIGNER.key)
    with pytest.raises(AuthorityError, match="CN=no lists may not sign CRLs"):
        revocations.take(revoke(node, NOW), signer_of(node, node), WHERE)


def test_lists_that_shut_out_everybody_for_their_time_are_in_force_and_warned_of(
    revocations: Revocations, caplog: pytest.LogCaptureFixture
):
    pem = revoke(ISSUING, NOW, life=-10) + revoke(ROOT, NOW + 3600)
    revocations.take(pem, SIGNER, WHERE)
    assert revocations.pem == pem
    first, second = (record.message for record in caplog.records if record.levelno == logging.WARNING)
    assert f"the CRL of CN=issuing in {WHERE} has expired" in first
    assert f"the CRL of CN=root in {WHERE} is of the future" in second


OLD = make_node("old", NOW)
TRUSTED = (*SIGNER.authorities, OLD.certificate)


def test_a_content_without_the_list_of_a_trusted_authority_waits_until_that_is_trusted_no_more(
    revocations: Revocations, caplog: pytest.LogCaptureFixture
):
    revocations.take(GOOD, SIGNER, WHERE, TRUSTED)
    assert revocations.pem is None
    assert f"{WHERE} holds no CRL signed by CN=old, which is still trusted" in caplog.text
    revocations.reconsider(TRUSTED)
    assert revocations.pem is None
    revocations.reconsider(SIGNER.authorities)
    assert revocations.pem == GOOD


def test_a_content_with_the_list_of_every_trusted_authority_does_not_wait(revocations: Revocations):
    both = GOOD + revoke(OLD, NOW)
    revocations.take(both, SIGNER, WHERE, TRUSTED)
    assert revocations.pem == both
    revocations.take(GOOD, signer_of(ISSUING, ROOT, OLD), WHERE)
    assert revocations.pem == both, "further roots of the operator are trusted, too"


def test_what_waits_gives_way_to_what_the_file_holds_next(revocations: Revocations, caplog: pytest.LogCaptureFixture):
    both = GOOD + revoke(OLD, NOW)
    revocations.take(both, SIGNER, WHERE, TRUSTED)
    revocations.take(GOOD, SIGNER, WHERE, TRUSTED)
    revocations.take(b"nonsense", SIGNER, WHERE, TRUSTED)
    revocations.reconsider(SIGNER.authorities)
    assert revocations.pem == both
    revocations.take(b"", SIGNER, WHERE, TRUSTED)
    assert revocations.pem == b"", "nothing to wait for"


def test_a_signer_that_waits_for_its_list_longer_than_the_last_good_one_holds_is_not_taken(revocations: Revocations):
    revocations.take(GOOD, SIGNER, WHERE)
    with pytest.raises(AuthorityError, match=r"no CRL signed by CN=issuing, which .* no CRL signed by CN=old"):
        revocations.take(revoke(OLD, NOW), signer_of(OLD, OLD), WHERE, SIGNER.authorities)
    revocations.reconsider([OLD.certificate])
    assert revocations.pem == GOOD


def test_a_self_signed_authority_revokes_nothing(revocations: Revocations):
    revocations.take(GOOD, SIGNER, WHERE)
    revocations.withdraw()
    assert revocations.pem == b""


def test_switched_off_it_reads_nothing_and_knows_nothing():
    revocations = Revocations(enabled=False)
    revocations.take(b"nonsense", SIGNER, WHERE)
    revocations.withdraw()
    assert revocations.pem is None


def test_mizzens_own_roots_may_sign_lists(revocations: Revocations):
    signer = certificates.build_root("mesh", 3600.0, 2048, NOW)
    revocations.take(revoke(Node(signer.certificate, signer.key), NOW), signer, WHERE)  # type: ignore[arg-type]
    assert revocations.pem
