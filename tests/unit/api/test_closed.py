"""What stands for a policy of security.istio.io that cannot be read."""

from typing import Any

import listener_mesh
import pytest

from mizzen.api.closed import closed_namespace, closed_policy
from mizzen.api.decode import decode_object
from mizzen.api.policy import PeerAuthentication, RequestAuthentication, Rule
from mizzen.compile.security import tokens
from mizzen.incremental import Engine
from mizzen.model import policies

CART = (("app", "cart"),)


def make(kind: str, api_version: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "shop"}, **fields}


def make_policy(**spec: Any) -> dict[str, Any]:
    return make("AuthorizationPolicy", "security.istio.io/v1", spec=spec)


def closed_peer(**spec: Any) -> PeerAuthentication:
    closed = closed_policy(decode_object(make("PeerAuthentication", "security.istio.io/v1", spec=spec)))
    assert isinstance(closed, PeerAuthentication)
    return closed


def closed_request(**spec: Any) -> RequestAuthentication:
    closed = closed_policy(decode_object(make("RequestAuthentication", "security.istio.io/v1", spec=spec)))
    assert isinstance(closed, RequestAuthentication)
    return closed


# -- authorization ----------------------------------------------------------------------------------------------------


def test_a_broken_policy_denies_what_it_selects() -> None:
    document = make_policy(selector={"matchLabels": {"app": "cart"}}, action="ALLOW", rules=[{"from": "nobody"}])
    closed = closed_policy(decode_object(document))
    assert closed is not None
    assert closed.metadata.namespace == "shop"
    assert closed.spec.selector is not None
    assert closed.spec.selector.match_labels == {"app": "cart"}
    assert (closed.spec.action, closed.spec.rules) == ("DENY", (Rule(),))


@pytest.mark.parametrize(
    "spec",
    [
        {"selector": {"matchLabels": ["app"]}, "rules": [{}]},
        {"selector": {"matchLabels": {"app": 1}}},
        {"targetRefs": [{"kind": "Gateway", "name": 1}]},
        {"target_refs": 3},
    ],
)
def test_a_policy_with_an_unreadable_selector_denies_its_namespace(spec: dict[str, Any]) -> None:
    closed = closed_policy(decode_object(make_policy(**spec)))
    assert closed is not None
    assert closed.spec.selector is None
    assert closed.spec.target_refs == ()
    assert (closed.spec.action, closed.spec.rules) == ("DENY", (Rule(),))


def test_a_policy_whose_spec_is_unreadable_denies_its_namespace() -> None:
    closed = closed_policy(decode_object(make("AuthorizationPolicy", "security.istio.io/v1", spec=[])))
    assert closed is not None
    assert closed.spec.rules == (Rule(),)


def test_a_policy_of_an_unknown_version_denies_what_it_selects() -> None:
    document = make_policy(selector={"matchLabels": {"app": "cart"}}) | {"apiVersion": "security.istio.io/v1beat1"}
    closed = closed_policy(decode_object(document))
    assert closed is not None
    assert closed.spec.selector is not None


def test_only_broken_policies_are_closed() -> None:
    assert closed_policy(decode_object(make_policy(rules=[{}]))) is None
    assert closed_policy(decode_object(make("VirtualService", "networking.istio.io/v1", spec={"hosts": 7}))) is None


# -- peers ------------------------------------------------------------------------------------------------------------


def modes(*objects: PeerAuthentication, written: str = "") -> policies.PeerModes:
    """The modes of the cart, with these objects beside those that are written."""
    db = listener_mesh.mesh_of(written)
    for each in objects:
        db.set(("PeerAuthentication", each.metadata.namespace, each.metadata.name), each)
    return policies.peer_modes(db, "shop", CART)


@pytest.mark.parametrize(
    "spec",
    [
        {"mtls": {"mode": "PERMISIVE"}},
        {"mtls": {"mode": "DISABLE"}, "portLevelMtls": {"http": {"mode": "DISABLE"}}},
        {"mtls": {"moode": "STRICT"}},
        {"mtls": []},
    ],
)
def test_peers_must_prove_themselves_where_a_broken_policy_selects(spec: dict[str, Any]) -> None:
    closed = closed_peer(selector={"matchLabels": {"app": "cart"}}, **spec)
    assert modes(closed).default == "STRICT"
    assert modes(closed).by_port == ()
    assert policies.peer_modes(_with(closed), "shop", (("app", "other"),)).default == "PERMISSIVE"


def _with(closed: PeerAuthentication) -> Engine:
    db = listener_mesh.mesh_of("")
    db.set(("PeerAuthentication", closed.metadata.namespace, closed.metadata.name), closed)
    return db


OLDER = """
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: older, namespace: shop, creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {mtls: {mode: DISABLE}}
"""


def test_an_unreadable_selector_closes_the_namespace_against_older_policies() -> None:
    assert modes(closed_peer(selector=7), written=OLDER).default == "STRICT"
    unreadable = closed_namespace("PeerAuthentication", "x", "shop")
    assert isinstance(unreadable, PeerAuthentication)
    assert modes(unreadable, written=OLDER).default == "STRICT"


def test_a_broken_policy_for_a_namespace_counts_by_its_age_as_it_would_have() -> None:
    assert modes(closed_peer(mtls={"mode": "x"}), written=OLDER).default == "DISABLE"


# -- tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [[{"issuer": 7}], [{"issuer": "a", "audience": ["b"]}], 5])
def test_no_token_is_taken_where_a_broken_policy_selects(rules: Any) -> None:
    closed = closed_request(selector={"matchLabels": {"app": "cart"}}, jwtRules=rules)
    assert closed.spec.selector is not None
    assert closed.spec.selector.match_labels == {"app": "cart"}
    (rule,) = closed.spec.jwt_rules
    db = Engine()
    db.set(("RequestAuthentication", "shop", "a"), closed)
    (found,) = tokens.http_filters(db, (("RequestAuthentication", "shop", "a"),), False)
    assert b'"nobody"' in found
    assert rule.issuer == "urn:mizzen:unreadable"


def test_an_unreadable_selector_closes_the_namespace_to_tokens() -> None:
    assert closed_request(targetRefs=3, jwtRules=[{"issuer": "a"}]).spec.target_refs == ()
    assert closed_request(selector=3).spec.selector is None
