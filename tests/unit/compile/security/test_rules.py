"""One rule as an RBAC policy, above all what becomes of it when something cannot be matched."""

import pytest

from mizzen import protos
from mizzen.api.policy import Condition, From, Operation, Rule, Source, To
from mizzen.compile.security.principals import Context
from mizzen.compile.security.rules import build_rule

_rbac_v3 = protos.package("envoy.config.rbac.v3")
CONTEXT = Context(namespace="shop", trust_domains=("cluster.local",))
ANY_PERMISSION = [{"andRules": {"rules": [{"any": True}]}}]
ANY_PRINCIPAL = [{"andIds": {"ids": [{"any": True}]}}]


def built(rule, action="ALLOW", *, tcp=False, dialect="istio"):
    data = build_rule(rule, action, CONTEXT, dialect, tcp=tcp)
    return None if data is None else protos.to_json(_rbac_v3.Policy.FromString(data))


def called(**operation):
    return Rule(to=(To(operation=Operation(**operation)),))


def calling(**source):
    return Rule(from_=(From(source=Source(**source)),))


def when(key, *values, excluded=()):
    return Rule(when=(Condition(key=key, values=values, not_values=excluded),))


def permission(policy):
    return policy["permissions"][0]["andRules"]["rules"]


def principal(policy):
    return policy["principals"][0]["andIds"]["ids"]


def test_an_empty_rule_matches_everything():
    assert built(Rule()) == {"permissions": ANY_PERMISSION, "principals": ANY_PRINCIPAL}


def test_values_are_alternatives_and_fields_all_must_hold():
    first, second = permission(built(called(methods=("GET", "HEAD"), ports=("80",))))
    assert [m["header"]["stringMatch"]["exact"] for m in first["orRules"]["rules"]] == ["GET", "HEAD"]
    assert second == {"orRules": {"rules": [{"destinationPort": 80}]}}


def test_excluded_values_follow_those_of_the_same_field():
    first, second = permission(built(called(paths=("/a*",), not_paths=("/a/b",))))
    assert "orRules" in first
    assert second == {"notRule": {"orRules": {"rules": [{"urlPath": {"path": {"exact": "/a/b"}}}]}}}


def test_a_condition_stands_in_every_alternative():
    rule = Rule(
        to=(To(operation=Operation(methods=("GET",))), To(operation=Operation(paths=("/a",)))),
        when=(Condition(key="destination.port", values=("80",)),),
    )
    for element in built(rule)["permissions"]:
        assert element["andRules"]["rules"][-1] == {"orRules": {"rules": [{"destinationPort": 80}]}}


@pytest.mark.parametrize("path", ["/{*}", "/{**}", "/a/{*}/", "/a/{**}/b/c", "/" + "a" * 253 + "/{*}"])
def test_path_templates_are_envoys(path):
    (template,) = permission(built(called(paths=(path,))))[0]["orRules"]["rules"]
    expected = path.replace("{**}", "**").replace("{*}", "*")
    assert template["uriTemplate"]["typedConfig"]["pathTemplate"] == expected


# -- fail closed ------------------------------------------------------------------------------------------------------

UNMATCHABLE = [
    called(ports=("http",)),
    called(ports=("65536",)),
    called(not_ports=("-1",)),
    called(paths=("/a/{**}/{*}",)),
    called(paths=("/a{*}",)),
    called(paths=("a/{*}",)),
    called(paths=("//a/{*}",)),
    called(paths=("/a/{*}//",)),
    called(paths=("/" + "a" * 255 + "/{*}",)),
    calling(ip_blocks=("10.0.0.300",)),
    calling(remote_ip_blocks=("10.0.0.0/33",)),
    when("destination.ip", "nowhere"),
    when("request.headers[]", "x"),
    when("request.headers", "x"),
    when("request.auth.claims", "x"),
    when("experimental.envoy.filters.a", "x"),
    when("no.such.attribute", "x"),
    when("request.headers[a]"),
    when("source.ip"),
    Rule(from_=(From(),)),
    calling(),
    Rule(to=(To(),)),
    called(),
]


@pytest.mark.parametrize("rule", UNMATCHABLE)
def test_allow_does_not_allow_what_it_cannot_match(rule):
    assert built(rule) is None


@pytest.mark.parametrize("action", ["DENY", "AUDIT", "CUSTOM"])
@pytest.mark.parametrize("rule", UNMATCHABLE)
def test_other_actions_match_more_instead(rule, action):
    assert built(rule, action) == {"permissions": ANY_PERMISSION, "principals": ANY_PRINCIPAL}


HTTP_ONLY = [
    called(hosts=("a",)),
    called(methods=("GET",)),
    called(not_paths=("/a",)),
    calling(request_principals=("*",)),
    when("request.headers[x]", "a"),
    when("request.auth.claims[a]", "b"),
    when("request.auth.presenter", excluded=("a",)),
]


@pytest.mark.parametrize("rule", HTTP_ONLY)
def test_tcp_lacks_what_http_has(rule):
    assert built(rule) is not None
    assert built(rule, tcp=True) is None
    assert built(rule, "DENY", tcp=True) == {"permissions": ANY_PERMISSION, "principals": ANY_PRINCIPAL}


def test_one_alternative_of_http_drops_the_whole_rule_on_tcp():
    rule = Rule(to=(To(operation=Operation(ports=("80",))), To(operation=Operation(methods=("GET",)))))
    assert built(rule, tcp=True) is None


# -- sources ----------------------------------------------------------------------------------------------------------


def test_sources_stand_in_istios_order():
    ids = principal(
        built(
            calling(
                ip_blocks=("10.0.0.1",),
                remote_ip_blocks=("10.0.0.0/8",),
                namespaces=("web",),
                trust_domains=("td",),
                service_accounts=("a",),
                request_principals=("iss/sub",),
                principals=("td/ns/web/sa/a",),
            )
        )
    )
    kinds = [next(iter(i["orIds"]["ids"][0])) if "orIds" in i else "token" for i in ids]
    assert kinds == [
        "authenticated",
        "token",
        "authenticated",
        "authenticated",
        "authenticated",
        "remoteIp",
        "directRemoteIp",
    ]


def test_a_bare_address_is_one_host():
    ids = principal(built(calling(ip_blocks=("10.0.0.1", "fd00::1", "10.1.0.0/16"))))[0]["orIds"]["ids"]
    assert [(i["directRemoteIp"]["addressPrefix"], i["directRemoteIp"]["prefixLen"]) for i in ids] == [
        ("10.0.0.1", 32),
        ("fd00::1", 128),
        ("10.1.0.0", 16),
    ]


@pytest.mark.parametrize(
    ("value", "issuer", "subject"),
    [
        ("*", {"safeRegex": {"regex": ".+"}}, {"safeRegex": {"regex": ".+"}}),
        ("https://id/alice", {"exact": "https://id"}, {"exact": "alice"}),
        ("https://id/*", {"exact": "https://id"}, {"safeRegex": {"regex": ".+"}}),
        ("https://id/a*", {"exact": "https://id"}, {"prefix": "a"}),
        ("*/alice", {"safeRegex": {"regex": ".+"}}, {"exact": "alice"}),
        ("*.example/alice", {"suffix": ".example"}, {"exact": "alice"}),
        ("*-bot", {"safeRegex": {"regex": ".+"}}, {"suffix": "-bot"}),
        ("issuer*", {"prefix": "issuer"}, {"safeRegex": {"regex": ".+"}}),
        ("issuer", {"exact": "issuer"}, {"exact": ""}),
    ],
)
def test_request_principals_split_at_the_last_slash(value, issuer, subject):
    (token,) = principal(built(calling(request_principals=(value,))))
    iss, sub = token["andIds"]["ids"]
    assert iss["metadata"]["path"][1] == {"key": "iss"}
    assert iss["metadata"]["value"]["stringMatch"] == issuer
    assert sub["metadata"]["value"]["stringMatch"] == subject


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("request.auth.claims[a]", ["payload", "a"]),
        ("request.auth.claims[a][b]", ["payload", "a", "b"]),
        ("request.auth.claims[a[b]", ["payload", "a[b"]),
        ("request.auth.audiences", ["payload", "aud"]),
        ("request.auth.presenter", ["payload", "azp"]),
    ],
)
def test_claims_may_be_nested(key, path):
    (claim,) = principal(built(when(key, "x")))
    assert [p["key"] for p in claim["metadata"]["path"]] == path


def test_upstream_envoy_gets_metadata_under_its_new_name():
    rule = Rule(
        from_=(From(source=Source(request_principals=("a/b",), not_request_principals=("c/d", "e/f"))),),
        when=(Condition(key="experimental.envoy.filters.x[y]", values=("[v]",)),),
    )
    text = str(built(rule, dialect="envoy"))
    assert "'metadata'" not in text
    assert text.count("sourcedMetadata") == 7
    assert "sourcedMetadata" not in str(built(rule))
