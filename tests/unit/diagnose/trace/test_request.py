"""What is asked, read from a command line."""

import pytest

from mizzen.diagnose.trace import request
from mizzen.diagnose.trace.request import Message, Request
from mizzen.errors import DecodeError


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("http://a", ("http", "a", 80, "/")),
        ("https://a/b?c=d", ("https", "a", 443, "/b?c=d")),
        ("http://[2001:db8::1]:81/", ("http", "2001:db8::1", 81, "/")),
        ("grpc://a:9000", ("grpc", "a", 9000, "/")),
        ("a.b:5432", ("tcp", "a.b", 5432, "")),
        ("tcp://a:1", ("tcp", "a", 1, "/")),
    ],
)
def test_targets(text, read):
    assert request.parse_target(text) == read


@pytest.mark.parametrize(
    "text", ["a", "a:b", "ftp://a", "http://", "tcp://a", "http://a:99999", "http://[::1", "http://[x]/"]
)
def test_what_is_no_target_is_refused(text):
    with pytest.raises(DecodeError):
        request.parse_target(text)


def test_headers():
    assert request.parse_headers(["a: b", "C:d:e"]) == (("a", "b"), ("C", "d:e"))
    with pytest.raises(DecodeError):
        request.parse_headers(["none"])


@pytest.mark.parametrize(
    ("scheme", "port", "headers", "authority"),
    [
        ("http", 80, (), "a"),
        ("http", 81, (), "a:81"),
        ("https", 443, (), "a"),
        ("http", 80, (("Host", "b:1"),), "b:1"),
    ],
)
def test_the_host_that_is_sent(scheme, port, headers, authority):
    asked = Request(source="x", scheme=scheme, host="a", port=port, headers=headers)
    assert asked.authority == asked.message().authority == authority


def test_grpc_calls_are_posts_over_http2():
    sent = Request(source="x", scheme="grpc", host="a", port=80).message()
    assert (sent.method, sent.http2, sent.header("content-type")) == ("POST", True, "application/grpc")


def test_headers_of_a_message():
    sent = Message(path="/a?b=c&b=d", authority="h", headers=(("x", "1"), ("x", "2")))
    assert (sent.url_path, sent.query) == ("/a", [("b", "c"), ("b", "d")])
    assert (sent.header("X"), sent.header(":authority"), sent.header("host"), sent.header("y")) == (
        "1,2",
        "h",
        "h",
        None,
    )
    assert sent.with_header("X", "3").header("x") == "3"
    assert sent.with_header("x", "3", append=True).header("x") == "1,2,3"
    assert sent.with_header("Host", "i").authority == "i"
    assert sent.without_header("X").header("x") is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("takes", -5.0),
        ("takes", float("nan")),
        ("gives_up", float("inf")),
        ("answers", 9999),
        ("answers", 99),
        ("answers", -1),
        ("authorizer", 600),
        ("at_once", 0),
        ("earlier", -1),
        ("method", "GE\nT"),
        ("method", ""),
        ("address", "banana"),
        ("client", "10.0.0"),
        ("headers", (("x y", "1"),)),
        ("headers", (("x", "1\r\nhost: other"),)),
    ],
)
def test_what_nobody_could_send_is_refused_by_its_field(field, value):
    with pytest.raises(DecodeError) as refused:
        request.check(Request(**{"source": "x", "host": "a", "port": 80, field: value}))
    assert refused.value.path == field


def test_what_anybody_could_send_passes():
    sent = Request(
        source="x",
        host="a",
        port=80,
        method="M-SEARCH",
        headers=((":authority", "b"), ("x-empty", "")),
        takes=0.5,
        answers=0,
        address="2001:db8::1",
    )
    assert request.check(sent) is sent
