"""Keys and certificate requests: what is asked for, what is believed of the answer."""

import datetime

import odd_pems
import pytest
import tiny_control
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mizzen import settings
from mizzen.agent.identity import keys
from mizzen.errors import AuthorityError
from mizzen.observe import Secret

FRONT = "spiffe://cluster.local/ns/web/sa/front"
ROOT = tiny_control.Root()
NOW = datetime.datetime.now(datetime.UTC)


def issue(key, spiffe_id: str = FRONT, seconds: float = 600, root=ROOT) -> str:
    names = [x509.UniformResourceIdentifier(spiffe_id)]
    return tiny_control.pem(root.issue(key.public_key(), names, seconds)).decode()


def double_an_extension(leaf: bytes) -> bytes:
    return odd_pems.replace(leaf, "0603551d13", "0603551d11")


def test_keys_are_of_the_kind_that_the_settings_name() -> None:
    p256 = keys.generate_key(settings.Agent())
    p384 = keys.generate_key(settings.Agent(key_curve="P384"))
    plain = keys.generate_key(settings.Agent(key_algorithm=""))
    assert isinstance(p256, ec.EllipticCurvePrivateKey)
    assert isinstance(p256.curve, ec.SECP256R1)
    assert isinstance(p384.curve, ec.SECP384R1)
    assert isinstance(plain, rsa.RSAPrivateKey)
    assert plain.key_size == 2048


def test_request_asks_for_the_identity_alone() -> None:
    key = keys.generate_key(settings.Agent())
    request = x509.load_pem_x509_csr(keys.build_request(key, FRONT))
    assert request.is_signature_valid
    assert request.public_key() == key.public_key()
    assert len(request.subject) == 0
    names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [FRONT]


def test_answer_splits_into_chain_and_roots() -> None:
    key = keys.generate_key(settings.Agent())
    leaf, intermediate, root = issue(key), tiny_control.Root("middle").pem.decode(), ROOT.pem.decode()
    identity = keys.parse_answer(key, FRONT, [leaf.rstrip(), intermediate, root], NOW)
    assert identity.chain_pem.decode() == leaf + intermediate
    assert identity.roots_pem.decode() == root
    assert b"PRIVATE KEY" in identity.key_pem.reveal()
    assert "PRIVATE" not in repr(identity)


def test_answers_that_are_not_ours_are_refused() -> None:
    key = keys.generate_key(settings.Agent())
    root = ROOT.pem.decode()
    other = issue(keys.generate_key(settings.Agent()))
    stranger = issue(key, "spiffe://cluster.local/ns/web/sa/other")
    for chain, reason in (
        ([issue(key)], "expected leaf and root"),
        ([], "expected leaf and root"),
        ([other, root], "another key"),
        ([stranger, root], "sa/other, not for"),
        (["rubbish", root], "unreadable"),
        ([issue(key), "rubbish"], "unreadable"),
    ):
        with pytest.raises(AuthorityError, match=reason):
            keys.parse_answer(key, FRONT, chain, NOW)


@pytest.mark.parametrize(
    "change", [odd_pems.of_version_8, odd_pems.of_unknown_curve, odd_pems.of_broken_key, double_an_extension]
)
def test_certificates_that_cannot_be_read_are_refused(change) -> None:
    key = keys.generate_key(settings.Agent())
    leaf = change(issue(key).encode()).decode()
    with pytest.raises(AuthorityError, match="unreadable"):
        keys.parse_answer(key, FRONT, [leaf, ROOT.pem.decode()], NOW)


def test_identity_without_names_is_for_nobody() -> None:
    key = keys.generate_key(settings.Agent())
    leaf = tiny_control.pem(ROOT.issue(key.public_key(), [], 600))
    with pytest.raises(AuthorityError, match="for nobody"):
        keys.load_identity(Secret(tiny_control.pem(key)), leaf, ROOT.pem, spiffe_id=FRONT)


def test_renewal_comes_when_the_wanted_part_of_life_is_left() -> None:
    key = keys.generate_key(settings.Agent())
    now = datetime.datetime.now(datetime.UTC)
    identity = keys.parse_answer(key, FRONT, [issue(key, seconds=1000), ROOT.pem.decode()], now)
    later = now + datetime.timedelta(seconds=300)
    assert identity.renewal_delay(now, 0.5) == pytest.approx(500, abs=5)
    assert identity.renewal_delay(later, 0.5) == pytest.approx(200, abs=5)
    assert identity.renewal_delay(now + datetime.timedelta(seconds=600), 0.5) == 0
    assert identity.renewal_delay(now, 0.1) == pytest.approx(900, abs=5)


def test_roots_merge_once_each_in_order_of_appearance() -> None:
    first, second = tiny_control.Root("a").pem, tiny_control.Root("b").pem
    assert keys.merge_roots([second, b"rubbish", first + second, b""]) == second + first
    assert keys.merge_roots([b"rubbish"]) == b""
    assert keys.merge_roots([odd_pems.of_version_8(first), second]) == second
