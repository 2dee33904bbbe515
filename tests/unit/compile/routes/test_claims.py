"""Routes that match verified claims of a token."""

from mizzen.api.networking.virtual_service import HTTPMatchRequest, StringMatch
from mizzen.compile.routes import matches

ANY, GOLD = StringMatch(), StringMatch(regex="go+ld")


def claim_of(dialect, condition, **fields):
    name = "@request.auth.claims[realm][tier]"
    match = HTTPMatchRequest(**(fields or {"headers": {name: condition}}))
    return matches.build_match(match, dialect, gateway_semantics=False)


def test_a_claim_is_one_text_or_one_of_several():
    (found,) = claim_of("envoy", GOLD)["dynamic_metadata"]
    single = {"string_match": {"safe_regex": {"regex": "go+ld"}}}
    assert found["path"] == [{"key": "payload"}, {"key": "realm"}, {"key": "tier"}]
    assert found["value"] == {"or_match": {"value_matchers": [{"list_match": {"one_of": single}}, single]}}
    assert claim_of("istio", GOLD) == claim_of("envoy", GOLD)


def test_upstream_envoy_is_asked_whether_there_is_any_value():
    (found,) = claim_of("envoy", ANY)["dynamic_metadata"]
    assert found["value"] == {"present_match": True}
    (reference,) = claim_of("istio", ANY)["dynamic_metadata"]
    assert reference["value"]["or_match"]["value_matchers"][1] == {"string_match": {}}


def test_the_absence_of_a_claim_is_the_inversion():
    without = {"@request.auth.claims.level": ANY}
    (found,) = claim_of("envoy", ANY, without_headers=without)["dynamic_metadata"]
    assert found["value"] == {"present_match": True}
    assert found["invert"] is True


def test_expressions_are_found_wherever_a_match_has_them():
    found = claim_of(
        "envoy",
        ANY,
        uri=StringMatch(regex="/a+"),
        headers={"x": StringMatch(regex="b+"), "@request.auth.claims.c": StringMatch(regex="c+"), "y": ANY},
        query_params={"d": StringMatch(regex="d+"), "e": StringMatch(exact="e")},
    )
    assert sorted(matches.regexes(found)) == ["/a+", "b+", "c+", "d+"]
