"""Routes of the Gateway API at a gateway: what each kind of match takes, and which rule wins where several would."""

from traffic_gateway_api import choice, route, routed, to
from traffic_manifests import behaviour, service


def under(path: str, kind: str = "PathPrefix") -> str:
    return f"path: {{type: {kind}, value: '{path}'}}"


@behaviour(
    routed(
        "api-paths",
        choice(
            "api-paths",
            {
                "prefix": f"{{{under('/one')}}}",
                "deep": f"{{{under('/one/deep/')}}}",
                "exact": f"{{{under('/one', 'Exact')}}}",
                "regex": f"{{{under('/item/[0-9]+', 'RegularExpression')}}}",
            },
        ),
    )
)
def test_paths_are_exact_or_begin_by_whole_segments_or_follow_a_pattern_wholly(entrance):
    expected: dict[str, str | int] = {
        "/one": "exact",
        "/one?two": "exact",
        "/one/": "prefix",
        "/one/two": "prefix",
        "/ones": 404,
        "/One": 404,
        "/one/deep": "deep",
        "/one/deep/er": "deep",
        "/one/deeper": "prefix",
        "/item/42": "regex",
        "/item/42?two": "regex",
        "/item/42/more": 404,
        "/an/item/42": 404,
        "/": 404,
    }
    assert {path: entrance.took("api-paths", path) for path in expected} == expected


HEADERS = {
    "exact": "{headers: [{name: X-Exact, value: a}]}",
    "regex": "{headers: [{type: RegularExpression, name: x-regex, value: 'v[0-9]+'}]}",
    "both": "{headers: [{name: x-exact, value: a}, {type: RegularExpression, name: x-regex, value: 'v[0-9]+'}]}",
    "none": "",
}


@behaviour(routed("api-headers", choice("api-headers", HEADERS)))
def test_headers_match_by_value_or_pattern_and_more_of_them_win(entrance):
    for headers, expected in (
        ({"x-exact": "a"}, "exact"),
        ({"X-EXACT": "a"}, "exact"),
        ({"x-exact": "A"}, "none"),
        ({"x-exact": "ab"}, "none"),
        ({"x-regex": "v12"}, "regex"),
        ({"x-regex": "v12a"}, "none"),
        ({"x-exact": "a", "x-regex": "v1"}, "both"),
        ({}, "none"),
    ):
        assert entrance.took("api-headers", headers=headers) == expected, headers


QUERIES = {
    "exact": "{queryParams: [{name: a, value: b}]}",
    "regex": "{queryParams: [{type: RegularExpression, name: n, value: '[0-9]+'}]}",
    "both": "{queryParams: [{name: a, value: b}, {type: RegularExpression, name: n, value: '[0-9]+'}]}",
    "none": "",
}


@behaviour(routed("api-queries", choice("api-queries", QUERIES)))
def test_query_parameters_match_by_value_or_pattern_and_more_of_them_win(entrance):
    expected = {
        "/?a=b": "exact",
        "/?z=1&a=b": "exact",
        "/?A=b": "none",
        "/?a=bc": "none",
        "/?a": "none",
        "/?n=12": "regex",
        "/?n=12x": "none",
        "/?n=1&a=b": "both",
        "/": "none",
    }
    assert {path: entrance.took("api-queries", path) for path in expected} == expected


METHODS = {"reads": "{method: GET}", "writes": "{method: POST}, {method: PUT}", "others": ""}


@behaviour(routed("api-methods", choice("api-methods", METHODS)))
def test_methods_match_and_one_of_several_matches_is_enough(entrance):
    expected = {"GET": "reads", "POST": "writes", "PUT": "writes", "DELETE": "others", "PATCH": "others"}
    assert {method: entrance.took("api-methods", method=method) for method in expected} == expected


ALL_OF_IT = (
    "{path: {value: /all}, method: POST, headers: [{name: x-a, value: '1'}], queryParams: [{name: q, value: '2'}]}"
)


@behaviour(routed("api-all", choice("api-all", {"all": ALL_OF_IT, "rest": ""})))
def test_everything_in_one_match_must_hold_at_once(entrance):
    every = {"path": "/all/of/it?q=2", "method": "POST", "headers": {"x-a": "1"}}
    assert entrance.took("api-all", **every) == "all"
    for change in ({"path": "/al?q=2"}, {"path": "/all?q=3"}, {"method": "PUT"}, {"headers": {"x-a": "2"}}):
        assert entrance.took("api-all", **{**every, **change}) == "rest", change


RANKED = {
    "query": "{path: {value: /p}, queryParams: [{name: q, value: '1'}]}",
    "regex": "{path: {type: RegularExpression, value: '/p/.*'}, method: GET}",
    "short": "{path: {value: /p}}",
    "header": "{path: {value: /p}, headers: [{name: x-a, value: '1'}]}",
    "two-headers": "{path: {value: /p}, headers: [{name: x-a, value: '1'}, {name: x-b, value: '1'}]}",
    "method": "{path: {value: /p}, method: GET}",
    "long": "{path: {value: /p/q}}",
    "exact": "{path: {type: Exact, value: /p/q}}",
}
"""In an order that no rank follows."""


@behaviour(routed("api-ranks", choice("api-ranks", RANKED)))
def test_the_most_specific_rule_wins_wherever_it_stands(entrance):
    """Path kind, then length, then the method, then how many headers, then how many query parameters."""
    both = {"x-a": "1", "x-b": "1"}
    for path, method, headers, expected in (
        ("/p/q?q=1", "GET", both, "exact"),
        ("/p/q/r?q=1", "GET", both, "long"),
        ("/p/x?q=1", "GET", both, "method"),
        ("/p/x?q=1", "POST", both, "two-headers"),
        ("/p/x?q=1", "POST", {"x-a": "1"}, "header"),
        ("/p/x?q=1", "POST", {}, "query"),
        ("/p/x", "POST", {}, "short"),
    ):
        assert entrance.took("api-ranks", path, method=method, headers=headers) == expected, path


AGES = "api-ages"


@behaviour(
    service(AGES),
    route(
        "api-age-younger",
        choice(AGES, {"younger": "{path: {value: /a}}", "younger-long": "{path: {value: /a/b}}"}),
        hosts="api-ages.door.example.com",
        created="2026-02-02",
    ),
    route(
        "api-age-older",
        choice(AGES, {"older": "{path: {value: /a}}", "older-last": "{path: {value: /}}"}),
        hosts="api-ages.door.example.com",
        created="2026-02-01",
    ),
)
def test_rules_of_several_routes_for_one_host_are_one_list_where_age_decides_between_equals(entrance):
    expected = {"/a": "older", "/a/c": "older", "/a/b": "younger-long", "/c": "older-last"}
    assert {path: entrance.took(AGES, path) for path in expected} == expected


@behaviour(
    service("api-hosts"),
    route(
        "api-host-exact",
        choice("api-hosts", {"exact": "{path: {value: /here}}"}),
        hosts="one.api-hosts.door.example.com",
    ),
    route("api-host-any", choice("api-hosts", {"any": ""}), hosts='"*.api-hosts.door.example.com"'),
    route(
        "api-host-two",
        f"- {{{to('api-hosts')}}}",
        hosts="two.api-hosts.door.example.com, three.api-hosts.door.example.com",
    ),
)
def test_the_closest_host_decides_alone_and_others_do_not_fill_its_gaps(entrance):
    for host, path, expected in (
        ("one", "/here", "exact"),
        ("one", "/elsewhere", 404),
        ("other", "/here", "any"),
        ("a.deep.other", "/here", "any"),
        ("two", "/here", ""),
        ("three", "/here", ""),
    ):
        assert entrance.took(f"{host}.api-hosts.door.example.com", path) == expected, host
    assert entrance.took("api-hosts.door.example.com", "/here") == 404
