"""Compiled policies over requests: who decides, and what came nearest."""

from typing import Any

import pytest
from traced_mesh import SHOP, ask, blamed, pod, world_of

from mizzen.diagnose.trace import rbac
from mizzen.diagnose.trace.rbac import Caller
from mizzen.diagnose.trace.request import Message
from mizzen.diagnose.trace.wire import Peer

CLIENT = "spiffe://cluster.local/ns/web/sa/client"


def policy(spec: str, name: str = "rules") -> str:
    return f"""
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: web}}
spec: {{selector: {{matchLabels: {{app: server}}}}, {spec}}}
"""


def test_a_deny_rule_is_named():
    deny = policy('action: DENY, rules: [{to: [{operation: {paths: ["/a"]}}]}, {to: [{operation: {paths: ["/b*"]}}]}]')
    found = ask(world_of(SHOP, deny), "http://server/bc")
    assert (found.outcome, found.status, found.flag, found.link) == ("denied", 403, "-", "policy")
    assert found.details == "rbac_access_denied_matched_policy[ns[web]-policy[rules]-rule[1]]"
    assert (found.policy, blamed(found)) == ("ns[web]-policy[rules]-rule[1]", "AuthorizationPolicy/rules")
    assert found.seen_by_client == (403, "-", "via_upstream")
    assert ask(world_of(SHOP, deny), "http://server/c").outcome == "delivered"


def test_the_nearest_rule_is_told_where_none_allows():
    allow = policy(
        'rules: [{from: [{source: {principals: ["a"]}}], to: [{operation: {methods: [PUT]}}]},'
        " {from: [{source: {namespaces: [web]}}], to: [{operation: {methods: [POST]}}]}]"
    )
    found = ask(world_of(SHOP, allow), "http://server/")
    assert found.details == "rbac_access_denied_matched_policy[none]"
    assert "rule 1 of AuthorizationPolicy web/rules" in found.reason
    assert "header :method exact 'POST', has 'GET'" in found.reason


def test_a_policy_without_rules_allows_nothing():
    found = ask(world_of(SHOP, policy("action: ALLOW")), "http://server/")
    assert (found.status, blamed(found)) == (403, "AuthorizationPolicy/rules")
    assert "allows nothing" in found.reason


def test_the_identity_of_the_source_may_be_stated():
    allow = policy('rules: [{from: [{source: {principals: ["cluster.local/ns/x/sa/y"]}}]}]')
    world = world_of(SHOP, allow)
    assert ask(world, "http://server/").status == 403
    assert ask(world, "http://server/", principal="spiffe://cluster.local/ns/x/sa/y").outcome == "delivered"


def test_a_caller_without_mutual_tls_has_no_principal():
    allow = policy('rules: [{from: [{source: {principals: ["*"]}}]}]')
    found = ask(world_of(SHOP, pod("outer", namespace="bare"), allow), "http://server.web/", source="outer.bare")
    assert (found.outcome, found.status) == ("denied", 403)
    assert "no mutual TLS" in found.reason


def test_connections_are_closed():
    deny = policy('action: DENY, rules: [{to: [{operation: {ports: ["8080"]}}]}]')
    text = SHOP.replace("{name: http, port: 80, targetPort: 8080}", "{name: tcp, port: 80, targetPort: 8080}")
    found = ask(world_of(text, deny), "server:80")
    assert (found.outcome, found.status, found.link) == ("denied", 0, "policy")
    assert found.details == "rbac_access_denied_matched_policy[ns[web]-policy[rules]-rule[0]]"
    assert found.seen_by_client == (0, "-", "")


def decide(permission: dict[str, Any], principal: dict[str, Any], caller: Caller) -> bool:
    rules = {"policies": {"p": {"permissions": [permission], "principals": [principal]}}}
    return rbac.decide(rules, caller).allowed


ANY = {"any": True}
CALLER = Caller(
    peer=Peer(
        address="10.1.0.9",
        client="198.51.100.2",
        is_mutual=True,
        identity=CLIENT,
        port=8080,
        destination="10.1.0.1",
        server_name="a.b",
    ),
    message=Message(path="/a/b/c"),
)


@pytest.mark.parametrize(
    ("permission", "holds"),
    [
        ({"destinationPort": 8080}, True),
        ({"destinationPortRange": {"start": 8000, "end": 8080}}, False),
        ({"destinationIp": {"addressPrefix": "10.1.0.0", "prefixLen": 24}}, True),
        ({"requestedServerName": {"exact": "a.b"}}, True),
        ({"urlPath": {"path": {"prefix": "/a"}}}, True),
        ({"uriTemplate": {"typedConfig": {"pathTemplate": "/a/*/c"}}}, True),
        ({"notRule": {"destinationPort": 8080}}, False),
        ({"andRules": {"rules": [ANY, {"destinationPort": 1}]}}, False),
        ({"orRules": {"rules": [{"destinationPort": 1}, ANY]}}, True),
        ({"orRules": {"rules": []}}, False),
    ],
)
def test_permissions(permission, holds):
    assert decide(permission, ANY, CALLER) is holds


@pytest.mark.parametrize(
    ("principal", "holds"),
    [
        ({"authenticated": {}}, True),
        ({"authenticated": {"principalName": {"exact": CLIENT}}}, True),
        ({"authenticated": {"principalName": {"safeRegex": {"regex": ".*/ns/web/.*"}}}}, True),
        ({"authenticated": {"principalName": {"safeRegex": {"regex": "/ns/web/"}}}}, False),
        ({"filterState": {"key": "io.istio.peer_principal", "stringMatch": {"prefix": "spiffe://"}}}, True),
        ({"directRemoteIp": {"addressPrefix": "10.1.0.0", "prefixLen": 16}}, True),
        ({"remoteIp": {"addressPrefix": "198.51.100.2", "prefixLen": 32}}, True),
        ({"remoteIp": {"addressPrefix": "192.0.2.1", "prefixLen": 32}}, False),
        ({"notId": {"authenticated": {}}}, False),
    ],
)
def test_principals(principal, holds):
    assert decide(ANY, principal, CALLER) is holds


def test_conditions_of_http_fail_for_connections():
    caller = Caller(peer=CALLER.peer)
    assert not decide({"urlPath": {"path": {"prefix": "/"}}}, ANY, caller)
    assert decide({"destinationPort": 8080}, ANY, caller)


def test_a_rule_about_another_path_is_farther_than_one_about_another_caller():
    other = policy('rules: [{to: [{operation: {paths: ["/a"], methods: [GET]}}]}]', name="about-a")
    own = policy(
        'rules: [{from: [{source: {principals: ["x"]}}], to: [{operation: {paths: ["/z"]}}],'
        " when: [{key: 'request.headers[x-pass]', values: [y]}]}]",
        name="of-others",
    )
    found = ask(world_of(SHOP, other, own), "http://server/z")
    assert (found.outcome, blamed(found)) == ("denied", "AuthorizationPolicy/of-others")
    assert blamed(ask(world_of(SHOP, other, own), "http://server/a", method="PUT")) == "AuthorizationPolicy/about-a"
