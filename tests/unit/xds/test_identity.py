"""Who may say to be which proxy."""

import pytest

from mizzen.model.proxy import Proxy
from mizzen.model.spiffe import Identity
from mizzen.xds.identity import Refused, check_claims

FRONT = Identity("cluster.local", "shop", "front")
CART = Identity("other.domain", "shop", "cart")


def proxy(namespace: str = "shop", service_account: str = "front") -> Proxy:
    return Proxy(
        id="x", kind="sidecar", ip_addresses=(), name="x", namespace=namespace, service_account=service_account
    )


def test_the_first_identity_that_fits_is_taken():
    assert check_claims(proxy(), [CART, FRONT]) is FRONT


def test_the_trust_domain_is_not_compared():
    assert check_claims(proxy(service_account="cart"), [CART]) is CART


def test_what_the_node_does_not_claim_is_not_compared():
    assert check_claims(proxy("", ""), [FRONT]) is FRONT
    assert check_claims(proxy("shop", ""), [FRONT]) is FRONT


@pytest.mark.parametrize("claim", [("shop", "cart"), ("bank", "front"), ("bank", "")])
def test_another_namespace_or_account_is_refused_by_name(claim):
    with pytest.raises(Refused) as refused:
        check_claims(proxy(*claim), [FRONT])
    assert refused.value.code == "PERMISSION_DENIED"
    assert str(refused.value) == (
        f"authorization failed: no identities ([spiffe://cluster.local/ns/shop/sa/front]) matched {claim[0]}/{claim[1]}"
    )
