"""From credentials to identities: what is believed, and everything that is not."""

import pytest

from mizzen.ca.identity import (
    Call,
    CertificateAuthenticator,
    FirstAuthenticator,
    TokenAuthenticator,
    bearer_token,
)
from mizzen.ca.revocations import Revocations
from mizzen.ca.tokens import ServiceAccount
from mizzen.errors import AuthorityError

CART = "spiffe://cluster.local/ns/shop/sa/cart"
NOTHING = Revocations(enabled=True)


class OneToken:
    """Knows one token."""

    async def verify(self, token: str) -> ServiceAccount:
        if token != "good":
            raise AuthorityError("the token is not good")
        return ServiceAccount(namespace="shop", name="cart", pod="cart-0")


def domains() -> frozenset[str]:
    return frozenset({"cluster.local", "old.local"})


@pytest.mark.parametrize("uri", [CART, "spiffe://old.local/ns/shop/sa/cart"])
async def test_certificate_of_a_trusted_domain_is_believed(uri: str) -> None:
    caller = await CertificateAuthenticator(domains, NOTHING).authenticate(Call(certificate_uris=(uri,)))
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
        await CertificateAuthenticator(domains, NOTHING).authenticate(Call(certificate_uris=uris))


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
    authenticators = (
        CertificateAuthenticator(domains, NOTHING),
        TokenAuthenticator(OneToken(), lambda: "cluster.local"),
    )
    call = Call(metadata={"authorization": "Bearer good"}, certificate_uris=())
    assert (await FirstAuthenticator(authenticators).authenticate(call)).method == "token"


async def test_when_none_works_all_reasons_are_told() -> None:
    authenticators = (
        CertificateAuthenticator(domains, NOTHING),
        TokenAuthenticator(OneToken(), lambda: "cluster.local"),
    )
    call = Call(metadata={"authorization": "Bearer bad"})
    with pytest.raises(AuthorityError, match="no client certificate; the token is not good"):
        await FirstAuthenticator(authenticators).authenticate(call)


async def test_nobody_is_believed_without_authenticators() -> None:
    with pytest.raises(AuthorityError):
        await FirstAuthenticator(()).authenticate(Call())


async def test_a_tokens_pod_is_known_with_its_caller() -> None:
    found = await TokenAuthenticator(OneToken(), lambda: "cluster.local").authenticate(
        Call(metadata={"authorization": "Bearer good"})
    )
    assert (found.identities, found.pod) == ((CART,), "cart-0")
    assert (await CertificateAuthenticator(domains, NOTHING).authenticate(Call(certificate_uris=(CART,)))).pod == ""
