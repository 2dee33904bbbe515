"""SPIFFE ids, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.model.spiffe import Identity, format_spiffe, parse_spiffe

PART = st.text(st.characters(exclude_characters="/@", codec="ascii", min_codepoint=33), min_size=1)


@given(PART, PART, PART)
def test_spiffe_ids_round_trip(trust_domain: str, namespace: str, account: str) -> None:
    identity = Identity(trust_domain, namespace, account)
    assert parse_spiffe(format_spiffe(identity)) == identity


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "spiffe://cluster.local",
        "spiffe://cluster.local/ns/shop/sa/cart/more",
        "spiffe://cluster.local/ns/shop/sa/",
        "spiffe://cluster.local/ns//sa/cart",
        "spiffe:///ns/shop/sa/cart",
        "spiffe://cluster.local/sa/cart/ns/shop",
        "SPIFFE://cluster.local/ns/shop/sa/cart",
        "https://cluster.local/ns/shop/sa/cart",
    ],
)
def test_other_forms_are_no_identity(uri: str) -> None:
    assert parse_spiffe(uri) is None


def test_at_sign_in_a_trust_domain_becomes_a_dot() -> None:
    assert format_spiffe(Identity("me@example.com", "a", "b")) == "spiffe://me.example.com/ns/a/sa/b"
