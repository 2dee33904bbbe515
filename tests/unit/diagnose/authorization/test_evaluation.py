"""What policies make of a request: actions in their order, selection, dry runs, external authorizers, and why."""

import msgspec
import yaml

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key
from mizzen.diagnose.authorization.decision import Match
from mizzen.diagnose.authorization.evaluation import decide, hold_rules
from mizzen.diagnose.authorization.paths import Normalization
from mizzen.diagnose.authorization.request import Request
from mizzen.diagnose.authorization.workload import Workload

TILL = Workload(namespace="shop", labels={"app": "till"}, providers={"ask": "grpc", "ask-http": "http"})
WEB = "spiffe://cluster.local/ns/front/sa/web"
GET = Request(principal=WEB, source_ip="10.0.0.7", port=8080, host="till.shop", path="/pay?x=1")
TCP = Request(is_http=False, principal=WEB, source_ip="10.0.0.7", port=9000)


def policy(name, action="ALLOW", *rules, namespace="shop", dry_run="", **spec):
    """A policy; rules as flow YAML."""
    metadata = {"name": name, "namespace": namespace}
    if dry_run:
        metadata["annotations"] = {"istio.io/dry-run": dry_run}
    decoded = decode_object(
        {
            "apiVersion": "security.istio.io/v1",
            "kind": "AuthorizationPolicy",
            "metadata": metadata,
            "spec": {"action": action, "rules": [yaml.safe_load(rule) for rule in rules], **spec},
        }
    )
    assert decoded.object is not None, decoded.problems
    return decoded.object


EVERYTHING = "{}"
PAY = "{to: [{operation: {paths: [/pay]}}]}"
OTHER = "{to: [{operation: {paths: [/other]}}]}"


def decided(*policies, request=GET, workload=TILL):
    return decide(policies, workload, request)


def outcome(*policies, request=GET, workload=TILL):
    decision = decided(*policies, request=request, workload=workload)
    return decision.outcome, decision.reason


# -- actions ----------------------------------------------------------------------------------------------------------


def test_without_policies_all_is_allowed():
    assert outcome() == ("allowed", "no-allow-policy")


def test_an_entry_without_a_value_ends_an_allow_rule_and_narrows_no_other():
    for rule in ("{from: [{}]}", "{from: [{source: {}}]}", "{to: [{operation: {}}]}", "{when: [{key: source.ip}]}"):
        assert outcome(policy("a", "ALLOW", rule)) == ("denied", "no-allow-rule"), rule
        assert outcome(policy("a", "DENY", rule))[0] == "denied", rule
    (check,) = decided(policy("a", "ALLOW", "{to: [{operation: {}}]}")).nearest.failed
    assert (check.field, check.problem) == ("to[0].operation", "it names no value")


def test_with_an_allow_policy_a_rule_must_match():
    assert outcome(policy("a", "ALLOW", PAY)) == ("allowed", "allow-rule")
    assert outcome(policy("a", "ALLOW", OTHER)) == ("denied", "no-allow-rule")
    assert outcome(policy("a", "ALLOW", OTHER), policy("b", "ALLOW", PAY)) == ("allowed", "allow-rule")


def test_an_allow_policy_without_rules_allows_nothing():
    decision = decided(policy("nothing"))
    assert (decision.outcome, decision.reason) == ("denied", "no-allow-rule")
    assert decision.nearest is not None
    assert decision.nearest.failed == ()


def test_an_empty_rule_matches_everything():
    assert outcome(policy("a", "ALLOW", EVERYTHING)) == ("allowed", "allow-rule")
    assert outcome(policy("a", "DENY", EVERYTHING)) == ("denied", "deny-rule")


def test_deny_wins_over_allow():
    decision = decided(policy("open", "ALLOW", EVERYTHING), policy("shut", "DENY", OTHER, PAY))
    assert decision.outcome == "denied"
    assert decision.by.rule.name == "ns[shop]-policy[shut]-rule[1]"
    assert (decision.status, decision.details) == (
        403,
        "rbac_access_denied_matched_policy[ns[shop]-policy[shut]-rule[1]]",
    )


def test_of_several_rules_the_first_by_name_is_named():
    decision = decided(policy("b", "DENY", PAY), policy("a", "DENY", *[OTHER] * 2, *[PAY] * 10))
    assert decision.by.rule.name == "ns[shop]-policy[a]-rule[10]"


def test_audit_records_and_decides_nothing():
    decision = decided(policy("watch", "AUDIT", PAY, OTHER))
    assert decision.outcome == "allowed"
    assert [match.rule.index for match in decision.audited] == [0]


def test_dry_runs_are_told_beside_the_decision():
    decision = decided(
        policy("shut", "DENY", PAY, dry_run="true"),
        policy("open", "ALLOW", OTHER, dry_run="1"),
        policy("enforced", "DENY", OTHER, dry_run="yes"),
    )
    assert (decision.outcome, decision.reason) == ("allowed", "no-allow-policy")
    assert [(run.action, run.allows) for run in decision.dry_runs] == [("DENY", False), ("ALLOW", False)]
    assert outcome(policy("enforced", "DENY", PAY, dry_run="yes")) == ("denied", "deny-rule")


# -- external authorizers ---------------------------------------------------------------------------------------------


def test_a_custom_policy_asks():
    decision = decided(policy("ask", "CUSTOM", PAY, provider={"name": "ask"}))
    assert (decision.outcome, decision.question.provider) == ("asked", "ask")
    assert outcome(policy("ask", "CUSTOM", OTHER, provider={"name": "ask"})) == ("allowed", "no-allow-policy")


def test_what_is_denied_anyway_does_not_depend_on_the_answer():
    decision = decided(policy("ask", "CUSTOM", PAY, provider={"name": "ask"}), policy("shut", "DENY", PAY))
    assert (decision.outcome, decision.question.provider) == ("denied", "ask")


def test_nobody_can_be_asked():
    missing = policy("ask", "CUSTOM", PAY, provider={"name": "missing"})
    decision = decided(missing)
    assert (decision.outcome, decision.reason) == ("denied", "custom-unusable")
    assert decision.details == (
        "rbac_access_denied_matched_policy[istio-ext-authz-missing-ns[shop]-policy[ask]-rule[0]"
        "-deny-due-to-bad-CUSTOM-action]"
    )
    assert outcome(missing, request=msgspec.structs.replace(GET, path="/other")) == ("allowed", "no-allow-policy")


def test_two_authorizers_are_none():
    both = [policy(name, "CUSTOM", PAY, provider={"name": name}) for name in ("ask", "ask-http")]
    assert outcome(*both) == ("denied", "custom-unusable")


def test_a_dry_run_of_an_authorizer_denies():
    assert outcome(policy("ask", "CUSTOM", PAY, provider={"name": "ask"}, dry_run="true")) == (
        "denied",
        "custom-dry-run",
    )


def test_an_authorizer_over_http_is_not_asked_about_connections():
    assert outcome(policy("a", "CUSTOM", EVERYTHING, provider={"name": "ask-http"}), request=TCP)[0] == "allowed"
    assert outcome(policy("a", "CUSTOM", EVERYTHING, provider={"name": "ask"}), request=TCP)[0] == "asked"


def test_tokens_are_read_after_authorizers():
    token = msgspec.structs.replace(GET, claims={"iss": "i", "sub": "s"})
    rule = "{from: [{source: {requestPrincipals: ['*']}}]}"
    assert outcome(policy("a", "CUSTOM", rule, provider={"name": "ask"}), request=token)[0] == "allowed"
    assert outcome(policy("a", "DENY", rule), request=token)[0] == "denied"


# -- what applies -----------------------------------------------------------------------------------------------------


def test_policies_of_the_root_namespace_and_of_the_own_apply():
    policies = [policy("a", "DENY", PAY, namespace=namespace) for namespace in ("shop", "istio-system", "other")]
    decision = decided(*policies)
    assert [key.namespace for key in decision.applied] == ["istio-system", "shop"]
    assert decision.applied[0] == Key("AuthorizationPolicy", "istio-system", "a")
    assert outcome(policies[2]) == ("allowed", "no-allow-policy")


def test_selectors_must_fit_whole():
    for labels, denied in (({"app": "till"}, True), ({"app": "till", "v": "1"}, False), ({}, True)):
        found = outcome(policy("a", "DENY", PAY, selector={"matchLabels": labels}))[0]
        assert (found == "denied") is denied


def test_target_references_are_for_what_they_name():
    reference = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}
    attached = policy("a", "DENY", PAY, targetRefs=[reference])
    gateway = msgspec.structs.replace(TILL, targets=frozenset({("gateway.networking.k8s.io", "Gateway", "edge")}))
    assert outcome(attached)[0] == "allowed"
    assert outcome(attached, workload=gateway)[0] == "denied"
    elsewhere = policy("a", "DENY", PAY, namespace="istio-system", targetRefs=[reference])
    assert outcome(elsewhere, workload=gateway)[0] == "allowed"


# -- why --------------------------------------------------------------------------------------------------------------


def test_the_nearest_rule_is_the_one_with_the_fewest_failing_fields():
    far = "{from: [{source: {namespaces: [x]}}], to: [{operation: {methods: [POST]}}]}"
    near = "{from: [{source: {namespaces: [front]}}], to: [{operation: {methods: [GET], paths: [/buy]}}]}"
    decision = decided(policy("a", "ALLOW", far, near))
    assert decision.nearest.rule.index == 1
    (check,) = decision.nearest.failed
    assert (check.field, check.values, check.actual) == ("to[0].operation.paths", ("/buy",), "/pay?x=1")
    assert [c.field for c in decision.nearest.held] == ["from[0].source.namespaces", "to[0].operation.methods"]


def test_the_best_alternative_of_a_rule_is_told():
    rule = "{from: [{source: {namespaces: [x], ipBlocks: [10.1.0.0/16]}}, {source: {namespaces: [y]}}]}"
    (check,) = decided(policy("a", "ALLOW", rule)).nearest.failed
    assert check.field == "from[1].source.namespaces"


def test_every_rule_can_be_held_against_the_request():
    held = hold_rules((policy("a", "ALLOW", OTHER, PAY), policy("b", "DENY", PAY)), TILL, GET)
    assert [isinstance(one, Match) for one in held] == [False, True, True]


# -- what cannot be held against a request ----------------------------------------------------------------------------


def test_connections_have_nothing_of_http():
    rule = "{to: [{operation: {ports: ['9000']}}, {operation: {notPaths: [/a]}}]}"
    allow = decided(policy("a", "ALLOW", rule), request=TCP)
    assert allow.outcome == "denied"
    assert [(check.field, bool(check.problem)) for check in allow.nearest.failed] == [
        ("to[1].operation.notPaths", True)
    ]
    assert outcome(policy("a", "DENY", rule), request=TCP) == ("denied", "deny-rule")


def test_values_that_mean_nothing_never_allow_and_never_keep_from_denying():
    for rule in (
        "{to: [{operation: {ports: [http]}}]}",
        "{to: [{operation: {notPorts: ['65536']}}]}",
        "{to: [{operation: {paths: ['a/{*}']}}]}",
        "{from: [{source: {ipBlocks: [10.0.0.0/33]}}]}",
        "{when: [{key: no.such.key, values: [x]}]}",
        "{when: [{key: 'request.headers[]', values: [x]}]}",
        "{when: [{key: request.auth.claims, values: [x]}]}",
    ):
        assert outcome(policy("a", "ALLOW", rule)) == ("denied", "no-allow-rule"), rule
        assert outcome(policy("a", "DENY", rule)) == ("denied", "deny-rule"), rule


# -- attributes -------------------------------------------------------------------------------------------------------


def allows(rule, **request):
    return outcome(policy("a", "ALLOW", rule), request=msgspec.structs.replace(GET, **request))[0] == "allowed"


def test_hosts_are_compared_in_any_case_and_with_their_port():
    rule = "{to: [{operation: {hosts: [Till.Shop]}}]}"
    assert allows(rule, host="tILL.shop")
    assert not allows(rule, host="till.shop:8080")


def test_methods_and_paths_are_compared_in_their_case():
    assert not allows("{to: [{operation: {methods: [get]}}]}")
    assert not allows("{to: [{operation: {paths: [/PAY]}}]}")


def test_headers_are_found_in_any_case_and_count_one_by_one():
    rule = "{when: [{key: 'request.headers[X-Role]', values: [admin]}]}"
    assert allows(rule, headers=(("x-role", "user"), ("X-ROLE", "admin")))
    assert not allows(rule, headers=(("x-role", "user,admin"),))
    assert not allows(rule)
    present = "{when: [{key: 'request.headers[x-role]', values: ['*']}]}"
    assert allows(present, headers=(("x-role", ""),))
    assert not allows(present)


def test_pseudo_headers_are_headers():
    assert allows("{when: [{key: 'request.headers[:method]', values: [GET]}]}")
    assert allows("{when: [{key: 'request.headers[host]', values: [till.*]}]}")


def test_the_name_that_tls_asks_for_has_no_case():
    assert allows("{when: [{key: connection.sni, values: [till.example]}]}", sni="Till.Example")


def test_the_client_is_whom_the_last_proxy_names():
    rule = "{from: [{source: {remoteIpBlocks: [203.0.113.0/24]}}]}"
    assert allows(rule, headers=(("X-Forwarded-For", "10.9.9.9, 203.0.113.7"),))
    assert not allows(rule, headers=(("x-forwarded-for", "203.0.113.7, 10.9.9.9"),))
    assert not allows(rule, headers=(("x-forwarded-for", "203.0.113.7, nobody"),))
    assert allows(rule, remote_ip="203.0.113.9")


def test_a_gateway_believes_as_many_proxies_as_it_is_told():
    rule = policy("a", "ALLOW", "{when: [{key: remote.ip, values: [203.0.113.7]}]}")
    request = msgspec.structs.replace(GET, headers=(("x-forwarded-for", "203.0.113.7, 10.9.9.9"),))
    for hops, allowed in ((0, False), (1, False), (2, True), (3, False)):
        edge = msgspec.structs.replace(TILL, is_edge=True, trusted_hops=hops)
        assert (outcome(rule, request=request, workload=edge)[0] == "allowed") is allowed, hops


def test_metadata_of_other_filters():
    metadata = {"envoy.filters.x": {"zone": "east", "tiers": ["gold"], "count": 3}}
    key = "experimental.envoy.filters.x"
    assert allows(f"{{when: [{{key: '{key}[zone]', values: ['ea*']}}]}}", metadata=metadata)
    assert allows(f"{{when: [{{key: '{key}[tiers]', values: ['[gold]']}}]}}", metadata=metadata)
    assert not allows(f"{{when: [{{key: '{key}[tiers]', values: [gold]}}]}}", metadata=metadata)
    assert not allows(f"{{when: [{{key: '{key}[zone]', values: ['[east]']}}]}}", metadata=metadata)
    assert not allows(f"{{when: [{{key: '{key}[count]', values: ['3']}}]}}", metadata=metadata)


def test_claims_are_texts_or_lists_of_texts():
    claims = {"aud": ["a", "b"], "azp": "cli", "scope": "read write", "age": 42, "r": {"n": "gold"}, "sub": "s"}
    for key, value, found in (
        ("request.auth.audiences", "b", True),
        ("request.auth.presenter", "c*", True),
        ("request.auth.claims[scope]", "write", True),
        ("request.auth.claims[scope]", "read write", False),
        ("request.auth.claims[age]", "42", False),
        ("request.auth.claims[r][n]", "gold", True),
        ("request.auth.claims[r]", "*", False),
        ("request.auth.claims[absent]", "*", False),
    ):
        rule = f"{{when: [{{key: '{key}', values: ['{value}']}}]}}"
        assert allows(rule, claims=claims) is found, rule


def test_a_service_account_without_namespace_is_of_the_policys():
    rule = "{from: [{source: {serviceAccounts: [web]}}]}"
    assert not allows(rule)
    assert allows(rule, principal="spiffe://any/ns/shop/sa/web")
    assert outcome(policy("a", "DENY", rule, namespace="istio-system"))[0] == "allowed"


def test_a_path_that_envoy_refuses_reaches_no_policy():
    decision = decided(policy("a", "DENY", EVERYTHING), request=msgspec.structs.replace(GET, path="/a%00"))
    assert (decision.outcome, decision.reason, decision.status) == ("denied", "bad-path", 400)
    edge = msgspec.structs.replace(TILL, normalization=Normalization(escaped_slashes="UNESCAPE_AND_REDIRECT"))
    decision = decided(request=msgspec.structs.replace(GET, path="/a%2Fb"), workload=edge)
    assert (decision.reason, decision.status, decision.path) == ("redirected-path", 307, "/a/b")
