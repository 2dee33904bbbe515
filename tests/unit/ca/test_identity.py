"""From credentials to identities: what is believed, and everything that is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.ca.identity import (
    Call,
    CertificateAuthenticator,
    FirstAuthenticator,
    Identity,
    TokenAuthenticator,
    bearer_token,
    format_spiffe,
    parse_spiffe,
)
from mizzen.errors import AuthorityError

CART = "spiffe://cluster.local/ns/shop/sa/cart"
PART = st.text(st.characters(exclude_characters="/@", codec="ascii", min_codepoint=33), min_size=1)


class OneToken:
    """Knows one token."""

    async def verify(self, token: str) -> tuple[str, str]:
        if token != "good":
            raise AuthorityError("the token is not good")
        return "shop", "cart"


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


def domains() -> frozenset[str]:
    return frozenset({"cluster.local", "old.local"})


@pytest.mark.parametrize("uri", [CART, "spiffe://old.local/ns/shop/sa/cart"])
async def test_certificate_of_a_trusted_domain_is_believed(uri: str) -> None:
    caller = await CertificateAuthenticator(domains).authenticate(Call(certificate_uris=(uri,)))
    assert (caller.identities, caller.method) == ((uri,), "certificate")


@pytest.mark.parametrize(
    ("uris", "reason"),
    [
        ((), "no client certificate"),
        ((CART, "spiffe://cluster.local/ns/shop/sa/payments"), "more than one"),
        (("spiffe://evil.local/ns/shop/sa/cart",), "not trusted"),
        (("https://cluster.local/cart",), "no SPIFFE id"),
    ],
)
async def test_other_certificates_prove_nothing(uris: tuple[str, ...], reason: str) -> None:
    with pytest.raises(AuthorityError, match=reason):
        await CertificateAuthenticator(domains).authenticate(Call(certificate_uris=uris))


async def test_token_gives_an_identity_of_the_own_trust_domain() -> None:
    authenticator = TokenAuthenticator(OneToken(), lambda: "mesh.example")
    caller = await authenticator.authenticate(Call(metadata={"authorization": "Bearer good"}))
    assert caller.identities == ("spiffe://mesh.example/ns/shop/sa/cart",)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("Istio abc", "abc"),
        ("Basic abc", None),
        ("Bearer ", None),
        ("abc", None),
        ("", None),
    ],
)
def test_bearer_tokens_are_read_from_their_header(header: str, token: str | None) -> None:
    assert bearer_token({"authorization": header}) == token


async def test_first_method_that_works_wins() -> None:
    authenticators = (CertificateAuthenticator(domains), TokenAuthenticator(OneToken(), lambda: "cluster.local"))
    call = Call(metadata={"authorization": "Bearer good"}, certificate_uris=())
    assert (await FirstAuthenticator(authenticators).authenticate(call)).method == "token"


async def test_when_none_works_all_reasons_are_told() -> None:
    authenticators = (CertificateAuthenticator(domains), TokenAuthenticator(OneToken(), lambda: "cluster.local"))
    call = Call(metadata={"authorization": "Bearer bad"})
    with pytest.raises(AuthorityError, match="no client certificate; the token is not good"):
        await FirstAuthenticator(authenticators).authenticate(call)


async def test_nobody_is_believed_without_authenticators() -> None:
    with pytest.raises(AuthorityError):
        await FirstAuthenticator(()).authenticate(Call())
