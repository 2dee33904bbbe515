"""The rules of single values, at their edges."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.api.validate.faults import join_messages, list_of, quote
from mizzen.api.validate.values.addresses import is_cidr, is_ip, unix_fault
from mizzen.api.validate.values.expressions import expression_fault, tokens
from mizzen.api.validate.values.headers import value_fault
from mizzen.api.validate.values.names import (
    check_labels,
    covers,
    fqdn_fault,
    is_label,
    overlapping_pairs,
    wildcard_fault,
)
from mizzen.api.validate.values.numbers import duration_text
from mizzen.api.validate.values.texts import syntax_fault


@pytest.mark.parametrize("name", ["a", "A", "9", "a-b", "a" * 63])
def test_dns_labels(name: str) -> None:
    assert is_label(name)


@pytest.mark.parametrize("name", ["", "-a", "a-", "a.b", "a_b", "é", "a\n", "a" * 64, "*"])
def test_what_is_no_dns_label(name: str) -> None:
    assert not is_label(name)


@pytest.mark.parametrize("name", ["a", "a.b", "a.b.", "A.example", "1.a", f"{'a.' * 127}b"])
def test_domain_names(name: str) -> None:
    assert fqdn_fault(name) is None
    assert wildcard_fault(name) is None
    assert wildcard_fault(f"*.{name[:250]}") is None or len(name) > 250


@pytest.mark.parametrize("name", ["", ".", "..", "a..b", "*.a", "a.5", "a.-b", f"{'a' * 64}.b", "a." * 128])
def test_what_is_no_domain_name(name: str) -> None:
    assert fqdn_fault(name) is not None


@pytest.mark.parametrize("name", ["*", "*.a", "*-a.b", "*a.b", "a"])
def test_domain_names_with_wildcards(name: str) -> None:
    assert wildcard_fault(name) is None


@pytest.mark.parametrize("name", ["**", "a.*", "a*.b", "*.*.a", "*.", "*_a"])
def test_what_is_no_domain_name_with_a_wildcard(name: str) -> None:
    # A lone `*.` ends in a dot, as names may.
    assert (wildcard_fault(name) is not None) == (name != "*.")


@pytest.mark.parametrize(
    ("pattern", "host", "covered"),
    [
        ("*", "a.b", True),
        ("*.b", "a.b", True),
        ("*.b", "b", False),
        ("*.b", "*.a.b", True),
        ("*.a.b", "*.b", False),
        ("a.b", "a.b", True),
        ("a.b", "*", False),
    ],
)
def test_covering(pattern: str, host: str, covered: bool) -> None:
    assert covers(pattern, host) is covered


HOSTS = st.lists(st.from_regex(r"(\*\.?)?([ab]\.){0,2}[ab]?", fullmatch=True), max_size=12)


@given(HOSTS)
def test_overlaps_are_found_as_by_comparing_each_with_each(hosts: list[str]) -> None:
    pairs = {
        (one, other)
        for one in range(len(hosts))
        for other in range(one + 1, len(hosts))
        if covers(hosts[one], hosts[other]) or covers(hosts[other], hosts[one])
    }
    first = {host: hosts.index(host) for host in hosts}
    # A repeated host pairs with the first of its kind only, and stands for nothing else.
    expected = {
        (one, other)
        for one, other in pairs
        if (first[hosts[other]] == other or hosts[one] == hosts[other]) and first[hosts[one]] == one
    }

    assert overlapping_pairs(hosts) == expected


def test_overlaps_of_very_many_hosts_are_found_at_once() -> None:
    started = time.process_time()
    assert overlapping_pairs([f"*.h{number}.example.com" for number in range(20_000)]) == set()
    assert time.process_time() - started < 10, "in CPU time, which a busy machine does not stretch"


@pytest.mark.parametrize("labels", [{"a": ""}, {"a.b/c": "d"}, {"a_b": "A.b-c"}, {"a" * 63: "b" * 63}])
def test_labels(labels: dict[str, str]) -> None:
    assert list(check_labels(labels, "")) == []


@pytest.mark.parametrize(
    "labels", [{"": "a"}, {"/a": ""}, {"a/": ""}, {"a//b": ""}, {"a": "-"}, {"a" * 64: ""}, {"a": "b" * 64}, {"_a": ""}]
)
def test_what_is_no_label(labels: dict[str, str]) -> None:
    assert len(list(check_labels(labels, ""))) == 1


def test_a_hostile_label_takes_no_time() -> None:
    assert len(list(check_labels({f"{'a' * 252}!/b": "c"}, ""))) == 1


@pytest.mark.parametrize(
    ("text", "ip", "cidr"),
    [
        ("1.2.3.4", True, False),
        ("::1", True, False),
        ("fe80::1%eth0", True, False),
        ("01.2.3.4", False, False),
        ("1.2.3.4/24", False, True),
        ("::1/128", False, True),
        ("1.2.3.4/33", False, False),
        ("1.2.3.4/08", False, False),
        ("1.2.3.4/255.0.0.0", False, False),
        ("fe80::1%eth0/64", False, False),
        ("", False, False),
    ],
)
def test_addresses(text: str, ip: bool, cidr: bool) -> None:
    assert (is_ip(text), is_cidr(text)) == (ip, cidr)


@pytest.mark.parametrize(("path", "fine"), [("/a", True), ("@a", True), ("@", True), ("a", False), ("/a/", False)])
def test_sockets(path: str, fine: bool) -> None:
    assert (unix_fault(path) is None) is fine


@pytest.mark.parametrize(
    "value", ["", "a", "100%%", "%PROTOCOL%", "%REQ(:path?x-a):10%", "%START_TIME(%s)%", "%START_TIME(a\\)b)%", "é"]
)
def test_values_of_headers(value: str) -> None:
    assert value_fault(value) is None


@pytest.mark.parametrize("value", ["%", "%%%", "%a%", "%REQ(a", "%REQ%%", "%REQ:a%", "a\x00", "a\r\nb"])
def test_what_is_no_value_of_a_header(value: str) -> None:
    assert value_fault(value) is not None


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (20_000_000, "20ms"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h0m0s"),
        (-1_000_000_000, "-1s"),
    ],
)
def test_durations_print_as_go_prints_them(nanoseconds: int, text: str) -> None:
    assert duration_text(nanoseconds) == text


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", r"\1", "(a", "a**", "[z-a]", "a{1001}", "\ud800"])
def test_patterns_that_re2_does_not_have(pattern: str) -> None:
    assert str(syntax_fault(pattern)).startswith("error parsing regexp: ")


@pytest.mark.parametrize("pattern", ["", ".*", r"\d+", "(?i)a", "(?P<n>a)", r"\pL", "a{1000}"])
def test_patterns_that_re2_has(pattern: str) -> None:
    assert syntax_fault(pattern) is None


EXPRESSIONS = [
    "response.code >= 400",
    "has(request.headers['a']) && !(a || b)",
    "a.b.c(1, 2)[3] ? x : y ? z : -1",
    "'x' in ['a', \"b\",]",
    "{1: 2, 'a': b}",
    "pkg.Type{field: 1}",
    "1 + 2.5e3 * .5 - 0xFFu % 3u",
    r"r'\d+' + b'x'",
    "'''a\n'b'\n'''",
    ".a.`b-c`[?0].?d",
    "a < b // why",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str) -> None:
    assert expression_fault(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "a &&", "(a", "a b", "'abc", "a..b", "[1 2]", "{1}", "a ? b", "if", "a = b", "@", f"{'(' * 200}a{')' * 200}"],
)
def test_what_is_no_expression(text: str) -> None:
    assert expression_fault(text) is not None


def test_tokens_of_an_expression() -> None:
    assert tokens("a.b >= 'c' // d") == (
        ("name", "a"),
        ("sign", "."),
        ("name", "b"),
        ("sign", ">="),
        ("text", "'c'"),
    )
    assert tokens("a >=") is None


@given(st.text(alphabet="ab.()[]{}?:!-+*/%<>=&|'\"`1 ,\n", max_size=40))
def test_any_text_is_an_expression_or_not(text: str) -> None:
    fault = expression_fault(text)

    assert fault is None or fault


def test_texts_are_quoted_as_go_quotes_them() -> None:
    assert quote('a"\\\n\t\x01é\u2028\U000e0001') == '"a\\"\\\\\\n\\t\\x01é\\u2028\\U000e0001"'


def test_lists_and_several_messages() -> None:
    assert list_of(["a", "b"]) == "[a b]"
    assert join_messages(["a"]) == "1 error occurred:\n\t* a\n\n"
    assert join_messages(["a", "b"]) == "2 errors occurred:\n\t* a\n\t* b\n\n"
