"""The node of a command's stream: of the namespace of what it shows, and of a type that istiod knows."""

import time

from certificate_requests import make_request
from cryptography.hazmat.primitives.asymmetric import ec

from mizzen.ca import tokens
from mizzen.ca.authority import Authority, State, start_self_signed
from mizzen.cli.ads_caller import build_node
from mizzen.settings import Settings


def _namespace(**shown) -> str:
    node = build_node(**shown)
    kind, address, name, domain = node["id"].split("~")
    assert (kind, address) == ("sidecar", "0.0.0.0")
    namespace = node["metadata"]["NAMESPACE"]
    assert (name, domain) == (f"mizzen.{namespace}", f"{namespace}.svc.cluster.local")
    return namespace


def test_a_token_says_the_namespace() -> None:
    issuer = tokens.TokenIssuer(tokens.generate_key(), time.time)
    assert _namespace(token=issuer.issue(tokens.ServiceAccount(namespace="shop", name="web"))) == "shop"


def test_a_certificate_says_the_namespace() -> None:
    config = Settings().authority
    authority = Authority(State(current=start_self_signed("o", config, time.time()).current), config, time.time)
    key = ec.generate_private_key(ec.SECP256R1())
    chain = "".join(authority.issue(make_request(key), ("spiffe://cluster.local/ns/cart/sa/c",)))
    assert _namespace(chain=chain.encode()) == "cart"


def test_whoever_shows_nothing_that_says_it_asks_as_the_system() -> None:
    assert _namespace() == "istio-system"
    assert _namespace(token="no token", chain=b"no certificate") == "istio-system"
