"""Values of policies held against texts, identities, tokens and paths."""

import pytest

from mizzen.diagnose.authorization import identities, templates, texts, tokens

DOMAINS = ("new.example", "legacy", "old.example")
WEB = "spiffe://legacy/ns/front/sa/web"


@pytest.mark.parametrize(
    ("value", "matching", "other"),
    [
        ("a", "a", "ab"),
        ("a*", "a", "ba"),
        ("a*", "abc", "A"),
        ("*a", "ba", "ab"),
        ("*", "x", ""),
        ("*a*", "xa*", "xax"),
        ("a*b", "a*b", "axb"),
    ],
)
def test_stars_stand_at_one_end(value, matching, other):
    assert texts.is_text(value, matching)
    assert not texts.is_text(value, other)


@pytest.mark.parametrize(
    ("value", "address", "expected"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.9/24", "10.0.0.1", True),
        ("10.0.0.0/24", "10.0.1.1", False),
        ("0.0.0.0/0", "10.0.0.1", True),
        ("::/0", "10.0.0.1", False),
        ("2001:db8::/32", "2001:db8::7", True),
        ("10.0.0.0/24", "", False),
    ],
)
def test_addresses_lie_in_ranges(value, address, expected):
    assert texts.is_address(value, address) is expected


@pytest.mark.parametrize(
    "value", ["", "localhost", "10.0.0", "10.0.0.0/33", "10.0.0.0/255.0.0.0", "10.0.0.0/", "fe80::1%1"]
)
def test_other_values_are_no_ranges(value):
    assert texts.read_network(value) is None


@pytest.mark.parametrize(
    ("value", "identity", "expected"),
    [
        ("*", WEB, True),
        ("*", "", False),
        ("legacy/ns/front/sa/web", WEB, True),
        ("new.example/ns/front/sa/web", WEB, True),
        ("cluster.local/ns/front/sa/web", WEB, True),
        ("foreign/ns/front/sa/web", WEB, False),
        ("new.example/ns/front/sa/w*", WEB, True),
        ("new.exam*/ns/front/sa/web", WEB, True),
        ("*.example/ns/front/sa/web", WEB, True),
        ("*.example/ns/front/sa/web", "spiffe://old.example/ns/front/sa/web", True),
        ("*.example/ns/front/sa/web", "spiffe://new.example/ns/front/sa/web", True),
        ("*.foreign/ns/front/sa/web", WEB, False),
        ("*/ns/front/sa/web", WEB, True),
        ("*/web", WEB, True),
        ("new.example/*", WEB, False),
        ("legacy/*", WEB, True),
        ("spiffe://legacy/ns/front/sa/web", WEB, False),
        ("legacy/ns/front/sa/web", "legacy/ns/front/sa/web", False),
    ],
)
def test_a_trust_domain_of_the_mesh_stands_for_all_of_them(value, identity, expected):
    assert identities.is_principal(value, identity, DOMAINS) is expected


def test_the_local_domain_of_a_policy_is_the_meshs_and_nobody_elses():
    foreign = "spiffe://cluster.local/ns/front/sa/web"
    assert not identities.is_principal("cluster.local/ns/front/sa/web", foreign, DOMAINS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("front", True), ("f*", True), ("*nt", True), ("f*t", True), ("*", True), ("fron", False), ("ront", False)],
)
def test_namespaces(value, expected):
    assert identities.is_namespace(value, WEB) is expected
    assert not identities.is_namespace(value, "")


@pytest.mark.parametrize(
    ("value", "expected"), [("web", False), ("front/web", True), ("front/we", False), ("f.ont/web", False)]
)
def test_service_accounts(value, expected):
    assert identities.is_service_account(value, WEB, "shop") is expected
    assert identities.is_service_account("web", WEB, "front")
    assert identities.is_service_account(value, "spiffe://x/ns/front/y/sa/web/z", "shop") is expected


@pytest.mark.parametrize(
    ("value", "domain", "expected"),
    [
        ("*", "any", True),
        ("legacy", "new.example", True),
        ("foreign", "foreign", True),
        ("foreign", "foreign.example", False),
        ("*.example", "foreign.example", True),
        ("f*e", "foreign.example", True),
        ("fo*of", "fof", False),
        ("foreign*", "foreign", True),
    ],
)
def test_trust_domains(value, domain, expected):
    assert identities.is_trust_domain(value, f"spiffe://{domain}/ns/a/sa/b", DOMAINS) is expected
    assert not identities.is_trust_domain(value, "", DOMAINS)


@pytest.mark.parametrize(
    ("value", "issuer", "subject", "expected"),
    [
        ("*", "i", "s", True),
        ("*", "i", "", False),
        ("https://i/s", "https://i", "s", True),
        ("https://i/*", "https://i", "s", True),
        ("https://i/*", "https://i", "", False),
        ("https://i/a*", "https://i", "abc", True),
        ("*/s", "i", "s", True),
        ("*i/s", "xi", "s", True),
        ("*/*", "i", "s", False),
        ("*/*", "i", "*", True),
        ("*-bot", "i", "a-bot", True),
        ("i*", "ix", "s", True),
        ("i", "i", "", True),
        ("i", "i", "s", False),
        ("i*/s", "ix", "s", False),
    ],
)
def test_request_principals_have_two_parts(value, issuer, subject, expected):
    assert tokens.is_request_principal(value, {"iss": issuer, "sub": subject}) is expected


@pytest.mark.parametrize("claims", [None, {}, {"iss": "i"}, {"sub": "s"}, {"iss": "i", "sub": 7}])
def test_without_issuer_and_subject_there_is_no_request_principal(claims):
    assert not tokens.is_request_principal("*", claims)


@pytest.mark.parametrize(
    ("template", "path", "expected"),
    [
        ("/a/{*}", "/a/b", True),
        ("/a/{*}", "/a/", False),
        ("/a/{*}", "/a/b/c", False),
        ("/a/{**}", "/a/", True),
        ("/a/{**}", "/a", False),
        ("/a/{**}", "/a/b/c", True),
        ("/a/{**}/c", "/a//c", True),
        ("/a/{*}", "/a/b*", True),
        ("/a/{**}", "/a/b/*", True),
        ("/a/{**}", "/a/b[", False),
        ("/a/{**}/c", "/a/c", False),
        ("/{*}/b/{*}", "/x/b/y", True),
        ("/a/{*}/", "/a/b/", True),
        ("/a.b/{*}", "/axb/c", False),
        ("/a/{*}", '/a/"', False),
    ],
)
def test_templates_match_whole_segments(template, path, expected):
    assert templates.is_readable(template)
    assert templates.is_path(template, path) is expected


@pytest.mark.parametrize(
    "template",
    [
        *("a/{*}", "//a/{*}", "/a//{*}", "/a/{*}//", "/a{*}", "/{**}/{*}", "/{**}/{**}", "/a b/{*}", "/{*}/a*"),
        "/" + "a" * 255 + "/{*}",
    ],
)
def test_other_templates_are_unreadable(template):
    assert templates.is_template(template)
    assert not templates.is_readable(template)
