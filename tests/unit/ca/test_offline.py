"""Intermediates under a root, and what is wrong with a chain."""

import itertools

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from mizzen.ca import certificates, offline
from mizzen.errors import AuthorityError

NOW = 1_800_000_000.0
CART = "spiffe://cluster.local/ns/shop/sa/cart"


@pytest.fixture(scope="module")
def root() -> certificates.Signer:
    return certificates.build_root("test", 7200.0, 2048, NOW)


@pytest.fixture(scope="module")
def intermediate(root: certificates.Signer) -> certificates.Signer:
    return offline.build_intermediate(root, "test", 10 * 7200.0, 2048, NOW)


def faults(chain, roots, identity="", now=NOW):  # type: ignore[no-untyped-def]
    return list(offline.find_faults(chain, roots, identity, now))


@pytest.fixture(scope="module")
def leaf(intermediate: certificates.Signer):  # type: ignore[no-untyped-def]
    key = ec.generate_private_key(ec.SECP256R1())
    return certificates.build_leaf(intermediate, key.public_key(), (CART,), NOW + 3600.0, NOW)


def test_an_intermediate_never_outlives_its_root(root, intermediate) -> None:  # type: ignore[no-untyped-def]
    assert certificates.expiry_of(intermediate.certificate) == certificates.expiry_of(root.certificate)


def test_an_intermediate_can_be_plugged_in(root, intermediate) -> None:  # type: ignore[no-untyped-def]
    plugged = certificates.build_signer(
        intermediate.certificate, intermediate.key, intermediate.intermediates, intermediate.roots
    )

    assert plugged.intermediates == (intermediate.certificate,)
    assert plugged.roots == (root.certificate,)


def test_a_key_of_another_authority_is_refused(root, intermediate) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AuthorityError, match="does not belong"):
        certificates.build_signer(intermediate.certificate, root.key, (), intermediate.roots)


def test_a_whole_chain_has_no_fault(root, intermediate, leaf) -> None:  # type: ignore[no-untyped-def]
    assert faults([leaf, intermediate.certificate], [root.certificate], CART) == []
    assert faults([leaf, intermediate.certificate, root.certificate], [root.certificate]) == []


def test_every_fault_is_named(root, intermediate, leaf) -> None:  # type: ignore[no-untyped-def]
    roots = [root.certificate]

    assert faults([], roots) == ["there is no certificate"]
    assert faults([leaf], roots) == ["the chain leads to none of the roots"]
    assert faults([intermediate.certificate, leaf], roots) == [
        "certificate 0 is not signed by certificate 1",
        "certificate 1 may not sign certificates",
        "the chain leads to none of the roots",
    ]
    assert [f.split(" at ")[0] for f in faults([leaf, intermediate.certificate], roots, now=NOW + 5000.0)] == [
        "certificate 0 expired"
    ]
    early = faults([leaf, intermediate.certificate], roots, now=NOW - 1000.0)
    assert all("is not valid before" in fault for fault in early)
    assert len(early) == 2


def test_serial_numbers_differ(root) -> None:  # type: ignore[no-untyped-def]
    made = [offline.build_intermediate(root, "test", 60.0, 2048, NOW).certificate for _ in range(2)]

    assert all(a.serial_number != b.serial_number for a, b in itertools.pairwise(made))
