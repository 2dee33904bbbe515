"""Values of policies as matchers."""

import pytest

from mizzen.compile.security import matching
from mizzen.model import patterns


@pytest.mark.parametrize(
    ("value", "matcher"),
    [
        ("*", {"safe_regex": {"regex": ".+"}}),
        ("*.example.com", {"suffix": ".example.com"}),
        ("/api/*", {"prefix": "/api/"}),
        ("/exact", {"exact": "/exact"}),
        ("a*b", {"exact": "a*b"}),
        ("*both*", {"suffix": "both*"}),
    ],
)
def test_only_a_star_at_an_end_means_something(value, matcher):
    assert matching.match_string(value) == matcher


def test_a_header_that_may_be_anything_must_be_there():
    assert matching.match_header(":method", "*") == {"name": ":method", "present_match": True}
    found = matching.match_header(":authority", "Shop.example", ignore_case=True)
    assert found["string_match"] == {"exact": "Shop.example", "ignore_case": True}


@pytest.mark.parametrize(
    ("value", "matcher"),
    [
        ("*", {"safe_regex": {"regex": ".+"}}),
        ("td/ns/web/*", {"prefix": "spiffe://td/ns/web/"}),
        ("td/ns/web/sa/a", {"exact": "spiffe://td/ns/web/sa/a"}),
        ("*/sa/a.b", {"safe_regex": {"regex": r"spiffe://.*/sa/a\.b"}}),
        ("*/sa/robot*", {"safe_regex": {"regex": r"spiffe://.*/sa/robot\*"}}),
    ],
)
def test_identities_get_their_scheme(value, matcher):
    assert matching.match_principal(value) == matcher


def test_namespaces_match_inside_the_identity():
    assert matching.match_namespace("stage-*") == {"safe_regex": {"regex": ".*/ns/stage-.*/.*"}}
    assert matching.match_namespace("a.b") == {"safe_regex": {"regex": r".*/ns/a\.b/.*"}}


def test_a_service_account_alone_is_of_the_policys_namespace():
    alone = matching.match_service_account("front", "shop")["safe_regex"]["regex"]
    assert alone == "spiffe://.+/ns/shop/(.+/|)sa/front(/.+)?"
    written = matching.match_service_account("web/front", "shop")["safe_regex"]["regex"]
    assert written == "spiffe://.+/ns/web/(.+/|)sa/front(/.+)?"


def test_one_star_is_a_part_of_a_trust_domain():
    assert matching.match_trust_domain("*") == {"prefix": "spiffe://"}
    assert matching.match_trust_domain("a.example") == {"prefix": "spiffe://a.example/"}
    regex = matching.match_trust_domain("*.partner.example")["safe_regex"]["regex"]
    assert regex == r"spiffe://[^/]*\.partner\.example/.*"


@pytest.mark.parametrize("text", [r"a.b+c(d)[e]{f}|^$\*?", "plain"])
def test_quoted_text_matches_only_itself(text):
    import re2

    pattern = re2.compile(patterns.quote(text))
    assert pattern.fullmatch(text)
    assert not pattern.fullmatch(text + "x")
