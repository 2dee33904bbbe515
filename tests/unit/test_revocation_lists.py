"""CRLs as PEM: all of a text or nothing of it."""

import odd_pems
import pytest
from plugged_authority import make_node, revoke

from mizzen import revocation_lists
from mizzen.errors import AuthorityError

NOW = 1_700_000_000.0
ONE, TWO = make_node("one", NOW), make_node("two", NOW)
PEM = revoke(ONE, NOW, [7]) + b"a comment\n" + revoke(TWO, NOW)


def test_all_lists_of_a_text_are_found_and_comments_are_passed_over():
    found = revocation_lists.decode(PEM, "file")
    assert [each.issuer for each in found] == [ONE.certificate.subject, TWO.certificate.subject]
    assert [[entry.serial_number for entry in each] for each in found] == [[7], []]


def test_an_empty_text_holds_none():
    assert revocation_lists.decode(b" \n", "file") == ()


@pytest.mark.parametrize(
    "pem",
    [
        pytest.param(PEM[:-40], id="cut off"),
        pytest.param(PEM[40:], id="without its beginning, of which the second list is whole"),
        pytest.param(b"no CRL at all", id="another text"),
        pytest.param(ONE.pem, id="a certificate"),
        pytest.param(PEM.replace(b"\nMI", b"\nAA"), id="broken within"),
        pytest.param(PEM + b"\xff", id="no UTF-8"),
        pytest.param(odd_pems.revocations_of_version_8(PEM), id="another version"),
    ],
)
def test_what_is_not_whole_is_refused_under_its_name(pem: bytes):
    with pytest.raises(AuthorityError, match=r"ca-crl\.pem holds"):
        revocation_lists.decode(pem, "ca-crl.pem")
