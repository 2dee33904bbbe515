"""Policies of a workload as filters: order, dry runs, CUSTOM, and what is denied when something is wrong."""

import listener_mesh
import pytest

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.compile.security import authorization

_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")

GUARD = """
apiVersion: v1
kind: Service
metadata: {name: guard, namespace: shop}
spec: {clusterIP: 10.96.0.9, ports: [{name: grpc, port: 9000}, {name: http, port: 8000}]}
"""
GRPC = {"name": "g", "envoyExtAuthzGrpc": {"service": "guard.shop.svc.cluster.local", "port": 9000}}
HTTP = {"name": "h", "envoyExtAuthzHttp": {"service": "guard.shop.svc.cluster.local", "port": 8000}}


def policy(name, action="ALLOW", *, rules="[{}]", provider="", dry_run=False):
    extra = f", provider: {{name: {provider}}}" if provider else ""
    note = ', annotations: {istio.io/dry-run: "true"}' if dry_run else ""
    return f"""
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: shop{note}}}
spec: {{action: {action}, rules: {rules}{extra}}}
"""


def mesh(*documents, **config):
    db = listener_mesh.mesh_of("---\n".join((GUARD, *documents)), **config)
    return db, tuple(Key(*k) for k in sorted(db.keys("AuthorizationPolicy")))


def http(db, keys):
    encoded = (
        *authorization.custom_http_filters(db, keys, "istio"),
        *authorization.http_filters(db, keys, "istio"),
    )
    return [protos.to_json(_hcm_v3.HttpFilter.FromString(data)) for data in encoded]


def tcp(db, keys):
    return [protos.to_json(_listener_v3.Filter.FromString(d)) for d in authorization.network_filters(db, keys, "istio")]


def test_audit_stands_before_deny_before_allow():
    found = http(*mesh(policy("a"), policy("b", "DENY"), policy("c", "AUDIT")))
    assert [f["typedConfig"]["rules"].get("action", "ALLOW") for f in found] == ["LOG", "DENY", "ALLOW"]


def test_rules_are_named_by_policy_and_index():
    (found,) = http(*mesh(policy("a", rules="[{}, {to: [{operation: {ports: [x]}}]}, {}]")))
    assert set(found["typedConfig"]["rules"]["policies"]) == {
        "ns[shop]-policy[a]-rule[0]",
        "ns[shop]-policy[a]-rule[2]",
    }


def test_an_allow_policy_without_rules_allows_nothing():
    (found,) = http(*mesh(policy("a", rules="[]")))
    assert found["typedConfig"]["rules"]["policies"] == {
        "ns[shop]-policy[a]-rule[0]": {
            "permissions": [{"notRule": {"any": True}}],
            "principals": [{"notId": {"any": True}}],
        }
    }


def test_an_allow_policy_whose_rules_all_fall_away_allows_nothing():
    (found,) = http(*mesh(policy("a", rules="[{to: [{operation: {ports: [x]}}]}]")))
    assert found["typedConfig"]["rules"] == {}


@pytest.mark.parametrize(
    ("action", "prefix"), [("ALLOW", "istio_dry_run_allow_"), ("DENY", "istio_dry_run_deny_"), ("AUDIT", "")]
)
def test_a_dry_run_only_shadows(action, prefix):
    (found,) = http(*mesh(policy("a", action, dry_run=True)))
    config = found["typedConfig"]
    assert "rules" not in config
    assert set(config["shadowRules"]["policies"]) == {"ns[shop]-policy[a]-rule[0]"}
    assert config.get("shadowRulesStatPrefix", "") == prefix


def test_enforced_and_shadow_rules_share_a_filter():
    (found,) = http(*mesh(policy("a", "DENY"), policy("b", "DENY", dry_run=True)))
    assert set(found["typedConfig"]["rules"]["policies"]) == {"ns[shop]-policy[a]-rule[0]"}
    assert set(found["typedConfig"]["shadowRules"]["policies"]) == {"ns[shop]-policy[b]-rule[0]"}


def test_custom_marks_and_asks():
    found = http(*mesh(policy("a", "CUSTOM", provider="g"), extensionProviders=[GRPC]))
    marking, asking = (f["typedConfig"] for f in found)
    assert set(marking["shadowRules"]["policies"]) == {"istio-ext-authz-g-ns[shop]-policy[a]-rule[0]"}
    assert marking["shadowRulesStatPrefix"] == "istio_ext_authz_"
    assert asking["grpcService"]["envoyGrpc"]["clusterName"] == "outbound|9000||guard.shop.svc.cluster.local"
    assert asking["grpcService"]["timeout"] == "600s"
    enabled = asking["filterEnabledMetadata"]
    assert enabled["value"]["stringMatch"]["prefix"] == "istio-ext-authz-g"


BROKEN = [
    [],
    [{"name": "g", "envoyExtAuthzGrpc": {"service": "nobody.example", "port": 9000}}],
    [{"name": "g", "envoyExtAuthzGrpc": {"service": "guard.shop.svc.cluster.local", "port": 0}}],
    [{"name": "g", "envoyExtAuthzHttp": {**HTTP["envoyExtAuthzHttp"], "pathPrefix": "check"}}],
    [{"name": "g", "envoyExtAuthzHttp": {**HTTP["envoyExtAuthzHttp"], "statusOnError": "999"}}],
    [{"name": "g", "envoyExtAuthzHttp": {**HTTP["envoyExtAuthzHttp"], "headersToUpstreamOnAllow": ["*"]}}],
    [{"name": "g", "envoyExtAuthzHttp": {**HTTP["envoyExtAuthzHttp"], "includeRequestBodyInCheck": {}}}],
    [{"name": "g", "envoyExtAuthzGrpc": {**GRPC["envoyExtAuthzGrpc"], "includeRequestBodyInCheck": {}}}],
    *(
        [{"name": "g", "envoyExtAuthzHttp": {**HTTP["envoyExtAuthzHttp"], "includeAdditionalHeadersInCheck": added}}]
        for added in ({"": "x"}, {"a\nb": "x"}, {"host": "x"}, {":path": "x"}, {"a": "x\ny"}, {"a": "100%"})
    ),
    [{"name": "g", "prometheus": {}}],
]


@pytest.mark.parametrize("providers", BROKEN)
def test_a_provider_that_cannot_be_asked_denies(providers):
    db, keys = mesh(policy("a", "CUSTOM", provider="g"), extensionProviders=providers)
    for found in (http(db, keys), tcp(db, keys)):
        (refusing,) = found
        rules = refusing["typedConfig"]["rules"]
        assert rules["action"] == "DENY"
        assert set(rules["policies"]) == {"istio-ext-authz-g-ns[shop]-policy[a]-rule[0]-deny-due-to-bad-CUSTOM-action"}


def test_two_providers_at_one_workload_are_both_refused():
    found = http(
        *mesh(policy("a", "CUSTOM", provider="h"), policy("b", "CUSTOM", provider="g"), extensionProviders=[GRPC, HTTP])
    )
    assert [f["name"] for f in found] == ["envoy.filters.http.rbac"] * 2
    assert all(f["typedConfig"]["rules"]["action"] == "DENY" for f in found)


def test_an_authorizer_over_http_is_not_asked_about_tcp():
    db, keys = mesh(policy("a", "CUSTOM", provider="h"), extensionProviders=[HTTP])
    assert tcp(db, keys) == []
    db, keys = mesh(policy("a", "CUSTOM", provider="g"), extensionProviders=[GRPC])
    assert [f["name"] for f in tcp(db, keys)] == ["envoy.filters.network.rbac", "envoy.filters.network.ext_authz"]


def test_a_change_of_one_policy_compiles_only_that_policy():
    db, keys = mesh(*(policy(f"p{i}", "DENY") for i in range(5)))
    authorization.http_filters(db, keys, "istio")
    before = db.runs_by_query["compiled_policy"]
    listener_mesh.add(db, policy("p3", "DENY", rules='[{to: [{operation: {methods: ["GET"]}}]}]'))
    authorization.http_filters(db, keys, "istio")
    assert db.runs_by_query["compiled_policy"] == before + 1


def test_a_policy_that_cannot_be_compiled_denies_everything_and_leaves_the_others():
    db, keys = mesh(policy("good", "DENY"))
    broken = Key("AuthorizationPolicy", "shop", "broken")
    db.set(broken, "not a policy")
    for (found,) in (http(db, (*keys, broken)), tcp(db, (*keys, broken))):
        rules = found["typedConfig"]["rules"]
        assert rules["action"] == "DENY"
        assert rules["policies"]["ns[shop]-policy[broken]"] == {
            "permissions": [{"any": True}],
            "principals": [{"any": True}],
        }
        assert "ns[shop]-policy[good]-rule[0]" in rules["policies"]


def test_a_policy_that_is_gone_denies_nothing():
    db, _ = mesh()
    assert http(db, (Key("AuthorizationPolicy", "shop", "gone"),)) == []
