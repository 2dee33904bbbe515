"""What is wrong with a certificate is said, and nothing that a Secret can hold raises."""

import odd_pems
import pytest
from cryptography.hazmat.primitives import serialization
from plugged_authority import make_node, revoke

from mizzen.model.convert import certificates

NOW = 1_700_000_000.0
NODE = make_node("one", NOW)
KEY = NODE.key.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
RUBBISH = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def test_a_pair_that_fits_has_no_fault():
    assert certificates.pair_fault(NODE.pem, KEY) is None


@pytest.mark.parametrize("change", [odd_pems.of_version_8, odd_pems.of_unknown_curve, odd_pems.of_broken_key])
def test_a_certificate_that_cannot_be_read_is_said_to_be_so(change):
    assert certificates.pair_fault(change(NODE.pem), KEY) == "failed to parse certificate"


def test_roots_that_cannot_be_read_are_said_to_be_so():
    assert certificates.roots_fault(NODE.pem) is None
    for text in (RUBBISH, odd_pems.of_version_8(NODE.pem)):
        assert certificates.roots_fault(text) == "the certificate is malformed"


def test_revocations_that_cannot_be_read_are_said_to_be_so():
    good = revoke(NODE, NOW)
    assert certificates.revocations_fault(good) is None
    for text in (RUBBISH, odd_pems.revocations_of_version_8(good)):
        assert certificates.revocations_fault(text) == "the list of revoked certificates is malformed"
