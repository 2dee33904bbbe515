"""RequestAuthentications as one JWT filter."""

import json

import listener_mesh
import pytest

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.api.policy import JWTRule
from mizzen.compile.security import tokens

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
KEYS = '{"keys": [{"kty": "oct", "k": "AAAA"}]}'


def policy(name, *rules):
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "RequestAuthentication",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"jwtRules": list(rules)},
    }


def jwt(*policies, router=False, key_sets=()):
    db = listener_mesh.mesh_of("")
    for uri, text in key_sets:
        db.set(Key(tokens.KEY_SET, "", uri), text)
    for raw in policies:
        listener_mesh.add(db, raw)
    keys = tuple(Key("RequestAuthentication", "shop", raw["metadata"]["name"]) for raw in policies)
    found = tokens.http_filters(db, keys, router)
    return [protos.to_json(_hcm_v3.HttpFilter.FromString(data))["typedConfig"] for data in found]


def test_no_rule_no_filter():
    assert jwt(policy("a")) == []


def test_issuers_are_sorted_and_equal_ones_keep_their_order():
    (found,) = jwt(
        policy("a", {"issuer": "b", "jwks": KEYS}, {"issuer": "a", "jwks": KEYS, "audiences": ["first"]}),
        policy("c", {"issuer": "a", "jwks": KEYS, "audiences": ["second"]}),
    )
    providers = [found["providers"][f"origins-{i}"] for i in range(3)]
    assert [(p["issuer"], p.get("audiences")) for p in providers] == [
        ("a", ["first"]),
        ("a", ["second"]),
        ("b", None),
    ]


def test_one_issuer_may_be_missing_but_not_wrong():
    (found,) = jwt(policy("a", {"issuer": "a", "jwks": KEYS}))
    (rule,) = found["rules"]
    assert rule["requires"]["requiresAny"]["requirements"] == [{"providerName": "origins-0"}, {"allowMissing": {}}]


def test_a_bad_token_of_one_issuer_is_not_excused_by_the_others():
    (found,) = jwt(policy("a", {"issuer": "a", "jwks": KEYS}, {"issuer": "b", "jwks": KEYS}))
    *named, fallback = found["rules"][0]["requires"]["requiresAny"]["requirements"]
    assert named == [{"providerName": "origins-0"}, {"providerName": "origins-1"}]
    each = fallback["requiresAll"]["requirements"]
    assert [e["requiresAny"]["requirements"][1] for e in each] == [{"allowMissing": {}}] * 2


@pytest.mark.parametrize(
    "jwks", ["not json", "[]", '{"keys": 3}', '{"keys": []}', "{}", '{"keys": [{"kty": "RSA", "e": "AQAB", "n": "x"}]}']
)
def test_keys_that_envoy_would_not_read_let_nobody_in(jwks):
    (found,) = jwt(policy("a", {"issuer": "a", "jwks": jwks}))
    assert found["providers"]["origins-0"]["localJwks"]["inlineString"] == tokens.UNKNOWN_KEYS


def test_the_key_that_nobody_has_is_one_rsa_key():
    (key,) = json.loads(tokens.UNKNOWN_KEYS)["keys"]
    assert key["kty"] == "RSA"
    assert len(key["n"]) == 342


def test_fetched_keys_are_inputs():
    rule = {"issuer": "https://id.example", "jwksUri": "https://id.example/keys"}
    (absent,) = jwt(policy("a", rule))
    (present,) = jwt(policy("a", rule), key_sets=[("https://id.example/keys", KEYS)])
    assert absent["providers"]["origins-0"]["localJwks"]["inlineString"] == tokens.UNKNOWN_KEYS
    assert present["providers"]["origins-0"]["localJwks"]["inlineString"] == KEYS


def test_without_a_uri_the_issuer_says_where_its_keys_are():
    rule = JWTRule(issuer="https://id.example/")
    assert tokens.key_set_uri(rule) == "https://id.example/.well-known/openid-configuration"


def test_gateways_choose_the_route_again():
    rule = {"issuer": "a", "jwks": KEYS}
    assert "clearRouteCache" not in jwt(policy("a", rule))[0]["providers"]["origins-0"]
    assert jwt(policy("a", rule), router=True)[0]["providers"]["origins-0"]["clearRouteCache"] is True


def test_a_place_where_no_token_can_be_is_none():
    (found,) = jwt(
        policy(
            "a",
            {
                "issuer": "a",
                "jwks": KEYS,
                "fromHeaders": [
                    {"name": ""},
                    {"name": "a b"},
                    {"name": "x-other", "prefix": "a\nb"},
                    {"name": "x-token", "prefix": "T "},
                ],
                "fromParams": ["", "token"],
                "fromCookies": ["", "cookie"],
                "outputPayloadToHeader": "a\nb",
                "outputClaimToHeaders": [{"header": "", "claim": "sub"}, {"header": "x-sub", "claim": ""}],
            },
        )
    )
    provider = found["providers"]["origins-0"]
    assert provider["fromHeaders"] == [{"name": "x-token", "valuePrefix": "T "}]
    assert (provider["fromParams"], provider["fromCookies"]) == (["token"], ["cookie"])
    assert not provider.keys() & {"forwardPayloadHeader", "claimToHeaders"}
