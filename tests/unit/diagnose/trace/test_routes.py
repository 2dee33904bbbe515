"""Which route takes a request, with every kind of condition."""

from typing import Any

import pytest

from mizzen.diagnose.trace import routes
from mizzen.diagnose.trace.request import Message

REGEX = {"regex": "/v[0-9]+"}


def message(path: str = "/a/b", **more: Any) -> Message:
    return Message(path=path, **more)


@pytest.mark.parametrize(
    ("match", "path", "takes"),
    [
        ({"prefix": "/a"}, "/ab", True),
        ({"prefix": "/A", "caseSensitive": False}, "/ab", True),
        ({"prefix": "/A"}, "/ab", False),
        ({"path": "/a"}, "/a?x=1", True),
        ({"path": "/a"}, "/a/", False),
        ({"pathSeparatedPrefix": "/a"}, "/a/b", True),
        ({"pathSeparatedPrefix": "/a"}, "/a", True),
        ({"pathSeparatedPrefix": "/a"}, "/ab", False),
        ({"safeRegex": REGEX}, "/v12", True),
        ({"safeRegex": REGEX}, "/v12/x", False),
        ({"pathMatchPolicy": {"typedConfig": {"pathTemplate": "/a/*/c"}}}, "/a/b/c", True),
        ({"pathMatchPolicy": {"typedConfig": {"pathTemplate": "/a/**"}}}, "/a/b/c", True),
        ({"pathMatchPolicy": {"typedConfig": {"pathTemplate": "/a/{x}"}}}, "/a/b/c", False),
    ],
)
def test_paths(match, path, takes):
    assert (routes.mismatch(match, message(path), {}, is_tls=False) == "") is takes


@pytest.mark.parametrize(
    ("condition", "value", "takes"),
    [
        ({"stringMatch": {"exact": "b"}}, "b", True),
        ({"stringMatch": {"exact": "b"}}, "B", False),
        ({"stringMatch": {"exact": "b", "ignoreCase": True}}, "B", True),
        ({"stringMatch": {"prefix": "b"}}, "bc", True),
        ({"stringMatch": {"suffix": "c"}}, "bc", True),
        ({"stringMatch": {"contains": "c"}}, "bcd", True),
        ({"stringMatch": {"safeRegex": {"regex": "b+"}}}, "bbb", True),
        ({"stringMatch": {"safeRegex": {"regex": "b"}}}, "bbb", False),
        ({"presentMatch": True}, None, False),
        ({"presentMatch": False}, None, True),
        ({"presentMatch": True, "invertMatch": True}, None, True),
        ({"stringMatch": {"exact": "b"}, "invertMatch": True}, "c", True),
        ({"stringMatch": {"exact": "b"}, "invertMatch": True}, None, False),
        ({"stringMatch": {"exact": "b"}, "invertMatch": True, "treatMissingHeaderAsEmpty": True}, None, True),
        ({"rangeMatch": {"start": "1", "end": "5"}}, "4", True),
        ({"rangeMatch": {"start": "1", "end": "5"}}, "5", False),
        ({"exactMatch": "b"}, "b", True),
    ],
)
def test_headers(condition, value, takes):
    headers = (("x", value),) if value is not None else ()
    match = {"prefix": "/", "headers": [{"name": "x", **condition}]}
    assert (routes.mismatch(match, message(headers=headers), {}, is_tls=False) == "") is takes


def test_pseudo_headers_are_headers():
    match = {"prefix": "/", "headers": [{"name": ":method", "stringMatch": {"exact": "PUT"}}]}
    assert routes.mismatch(match, message(method="PUT"), {}, is_tls=False) == ""
    assert "wants header :method exact 'PUT', has 'GET'" in routes.mismatch(match, message(), {}, is_tls=False)


def test_query_parameters():
    match = {"prefix": "/", "queryParameters": [{"name": "x", "stringMatch": {"exact": "1"}}]}
    assert routes.mismatch(match, message("/?x=1"), {}, is_tls=False) == ""
    assert routes.mismatch(match, message("/?x=2&x=1"), {}, is_tls=False) != ""
    present = {"prefix": "/", "queryParameters": [{"name": "x", "presentMatch": True}]}
    assert routes.mismatch(present, message("/?x"), {}, is_tls=False) == ""


def test_metadata_of_tokens():
    value = {"orMatch": {"valueMatchers": [{"listMatch": {"oneOf": {"stringMatch": {"exact": "a"}}}}]}}
    condition = {"filter": "f", "path": [{"key": "payload"}, {"key": "groups"}], "value": value}
    match = {"prefix": "/", "dynamicMetadata": [condition]}
    assert routes.mismatch(match, message(), {"f": {"payload": {"groups": ["b", "a"]}}}, is_tls=False) == ""
    assert "wants metadata f payload.groups" in routes.mismatch(match, message(), {}, is_tls=False)


def test_certificates():
    match = {"prefix": "/", "tlsContext": {"presented": True}}
    assert routes.mismatch(match, message(), {}, is_tls=True) == ""
    assert routes.mismatch(match, message(), {}, is_tls=False) != ""


def test_connect_is_taken_by_its_own_matcher_only():
    tunnel = message("", method="CONNECT")
    assert routes.mismatch({"connectMatcher": {}}, tunnel, {}, is_tls=False) == ""
    assert routes.mismatch({"prefix": "/"}, tunnel, {}, is_tls=False) == "does not take CONNECT"
    assert routes.mismatch({"connectMatcher": {}}, message(), {}, is_tls=False) == "takes CONNECT only"


def test_the_first_that_fits_is_taken_and_shares_are_told():
    half = {"defaultValue": {"numerator": 50, "denominator": "HUNDRED"}}
    host = {
        "routes": [
            {"name": "other", "match": {"prefix": "/x"}},
            {"name": "half", "match": {"prefix": "/", "runtimeFraction": half}},
            {"name": "rest", "match": {"prefix": "/"}},
        ]
    }
    chosen = routes.select(host, message(), {}, is_tls=False)
    assert chosen.route is not None
    assert (chosen.route["name"], chosen.index) == ("rest", 2)
    assert [(route["name"], part) for route, part in chosen.partial] == [("half", 0.5)]
    assert chosen.passed_over == (
        "#0 other /x*: path '/a/b' does not start with '/x'",
        "#1 half /*: takes 0.5 of the requests",
    )
