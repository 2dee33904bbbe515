"""Expressions of Telemetry for an Envoy that knows less than Istio's proxies."""

import pytest

from mizzen.compile.filters.expressions import translate


@pytest.mark.parametrize(
    "expression",
    [
        "request.url_path",
        "response.code >= 400 && response.code < 600",
        "request.headers['x'].startsWith('a') || 'b' in request.headers",
        "has(request.headers.x) ? 'there' : 'none'",
        "request.time.getHours('UTC')",
        "size([1, 2u, 0x3]) + 'abc'.size()",
        "{'a': 1}['a'] == -1",
        "request.headers['nonsense(1)'] == 'node.x'",
    ],
)
def test_what_it_knows_stays(expression: str) -> None:
    for use in ("value", "filter"):
        found = translate(expression, use)
        assert found is not None
        assert found.replace(" ", "") == expression.replace(" ", "")


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 +",
        "has(request.headers['x'])",
        "has(x + y)",
        "[1].all(x, x > 0)",
        "request.headers.exists(k, k == 'a')",
        "nonsense(1)",
        "int(1, 2)",
        "'a'.size(1)",
        "google.Thing{seconds: 1}",
        "request.?headers",
        "request.headers[?'a']",
        "request.`a-b`",
        "(" * 40 + "1" + ")" * 40,
        "a" + ".b" * 40,
        "+".join(["1"] * 40),
    ],
)
def test_what_it_lacks_is_not_sent(expression: str) -> None:
    assert translate(expression, "value") is None
    assert translate(expression, "filter") is None


def test_words_stay_apart() -> None:
    assert translate("'a' in x", "value") == "'a' in x"
    assert translate("a ? b : -c", "value") == "a?b:-c"


def test_the_node_has_another_name() -> None:
    assert translate("node.metadata['ZONE']", "value") == "xds.node.metadata['ZONE']"
    assert translate("xds.node.id + a.node", "value") == "xds.node.id+a.node"


def test_a_label_needs_no_conversion_to_a_text() -> None:
    assert translate("string(destination.port)", "value") == "destination.port"
    assert translate("string(a) + string(b)", "value") is None
    assert translate("string(destination.port) == '80'", "filter") == "string(destination.port)=='80'"


def test_a_filter_knows_functions_of_texts() -> None:
    assert translate("'A'.lowerAscii() == 'a'", "filter") is not None
    assert translate("'A'.lowerAscii()", "value") is None


def test_a_value_must_fit_into_a_formatters_command() -> None:
    assert translate("'a)%b'", "value") is None
    assert translate("'''a\nb'''", "value") is None
    assert translate("'a)%b' == x", "filter") is not None
    assert translate("1\n+ 2 // three", "value") == "1+2"


def test_rows_of_conditions_may_be_long() -> None:
    expression = " || ".join(f"request.headers['x{number}'] == 'a'" for number in range(100))
    assert translate(expression, "filter") is not None
