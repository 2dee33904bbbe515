"""YAML and JSON to plain data: as Kubernetes reads it, with lines, bounded."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.sources.documents import DocumentError, Locator, parse_json, parse_yaml, split_yaml


def values(text: str) -> list[object]:
    return [document.value for chunk in split_yaml(text) for document in parse_yaml(chunk.text)]


def test_documents_are_split_at_their_marks() -> None:
    text = "# head\na: 1\n---\nb: 2\n--- # note\nc: 3\n---\n"
    assert [(chunk.line, chunk.text) for chunk in split_yaml(text)] == [
        (1, "# head\na: 1\n"),
        (3, "---\nb: 2\n"),
        (5, "--- # note\nc: 3\n"),
        (7, "---\n"),
    ]
    assert values(text) == [{"a": 1}, {"b": 2}, {"c": 3}, None]


def test_comments_and_directives_belong_to_the_document_after_them() -> None:
    text = "# license\n%YAML 1.1\n---\na: 1\n"
    assert [chunk.line for chunk in split_yaml(text)] == [1]
    assert values(text) == [{"a": 1}]


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "   \n# x"])
def test_text_without_content_holds_no_document(text: str) -> None:
    assert [value for value in values(text) if value is not None] == []


def test_dashes_within_a_line_split_nothing() -> None:
    assert values("a: |\n  --- x\n  ----\nb: ---x\n") == [{"a": "--- x\n----\n", "b": "---x"}]


def test_windows_line_ends_are_lines() -> None:
    assert values("a: 1\r\n---\r\nb: 2\r\n") == [{"a": 1}, {"b": 2}]


def test_splitting_long_white_space_is_quick() -> None:
    started = time.process_time()
    list(split_yaml("\n" * 50_000 + " " * 50_000 + "a: 1\n---\n"))
    assert time.process_time() - started < 1


def test_quoted_and_block_scalars_stay_strings() -> None:
    assert values("a: 'yes'\nb: \"5\"\nc: |\n  no\nd: >-\n  1\n") == [{"a": "yes", "b": "5", "c": "no\n", "d": "1"}]


def test_keys_that_are_no_strings_take_their_json_spelling() -> None:
    assert values("8080: a\ntrue: b\n1.5: c\non: d\n'on': e\n") == [{"8080": "a", "true": "d", "1.5": "c", "on": "e"}]


def test_key_written_twice_is_reported_and_the_last_counts() -> None:
    (document,) = parse_yaml("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert document.value == {"a": 3, "b": {"c": 2}}
    assert document.repeated == (("c", 4), ("a", 5))


def test_merge_keys_give_way_to_own_entries() -> None:
    text = "base: &b {p: 1, q: 2}\nmore: &m {q: 3, r: 4}\nown:\n  q: 5\n  <<: [*b, *m]\n"
    assert values(text)[0]["own"] == {"q": 5, "p": 1, "r": 4}  # type: ignore[index]


def test_aliases_share_their_value() -> None:
    (document,) = parse_yaml("a: &x [1, 2]\nb: *x\n")
    assert document.value["a"] is document.value["b"]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\nb: [1,\nc: 2\n", 2, "did not find expected"),
        ("a:\n\tb: 1\n", 2, "cannot start any token"),
        ("a: 1\n b: 2\n", 2, "mapping values are not allowed"),
        ("a: 1\nb: 'x\n\n", 2, "quoted scalar"),
        ("a: *nope\n", 1, "undefined alias"),
        ("ok: 1\na: \x01\n", 2, "U\\+0001"),
        ("a: 1\n{{ .Values.name }}: x\n", 2, "a key must be"),
        ("a: {{ .Values.name }}\n", 1, "a key must be"),
        ("a: 1\n? [x]\n: y\n", 2, "a key must be"),
        ("~: 1\n", 1, "a key must be"),
        ("a: .inf\n", 1, "no number of JSON"),
        ("a: !!int x\n", 1, "no !!int"),
        ("a:\n  <<: 5\n", 2, "<< needs a map"),
        ("a: &a [*a]\n", 1, "contains itself"),
        ("a: &a\n  <<: *a\n", 1, "contains itself"),
        ("[" * 5000, 1, "nesting"),
    ],
)
def test_faults_have_their_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason) as caught:
        parse_yaml(text)
    assert caught.value.line == line


def test_aliases_cannot_expand_without_end() -> None:
    lines = ["a0: &a0 [" + ",".join(["x"] * 9) + "]"]
    lines += [f"a{n}: &a{n} [" + ",".join([f"*a{n - 1}"] * 9) + "]" for n in range(1, 12)]
    started = time.process_time()
    with pytest.raises(DocumentError, match="aliases expand too far"):
        parse_yaml("\n".join(lines))
    assert time.process_time() - started < 1


def test_ordinary_use_of_aliases_is_within_bounds() -> None:
    shared = "base: &b {" + ", ".join(f"k{n}: v" for n in range(50)) + "}\n"
    (document,) = parse_yaml(shared + "".join(f"u{n}: *b\n" for n in range(1000)))
    assert len(document.value) == 1001


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn", "Co"))),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz019 :-", max_size=8), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_json_text_means_the_same_in_both_readers(value: object) -> None:
    text = json.dumps({"v": value}, ensure_ascii=False)
    (from_json,) = parse_json(text)
    (from_yaml,) = parse_yaml(text)
    assert from_json.value == {"v": value}
    assert from_yaml.value == {"v": value}


def test_json_documents_follow_each_other() -> None:
    found = parse_json('\ufeff{"a": 1}\n\n  {"b": 2}\n')
    assert [(document.value, document.line) for document in found] == [({"a": 1}, 1), ({"b": 2}, 3)]


@pytest.mark.parametrize(
    ("text", "line"),
    [('{"a": 1,\n "b": }', 2), ('{"a": NaN}', 1), ("[" * 100_000, 1), ('{"a": 1}\n}', 2), ("{'a': 1}", 1)],
)
def test_faults_of_json_have_their_line(text: str, line: int) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_json(text)
    assert caught.value.line == line


TEXT = """\
kind: VirtualService
spec:
  http:
  - match: []
  - route:
    - destination: {host: a}
      weight: x
  labels:
    a.b/c: 1
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("spec.http[1].route[0].weight", 7),
        ("spec.http[1].route[0].destination.host", 6),
        ("spec.http[1].route", 5),
        ("spec.labels[a.b/c]", 9),
        ("spec.http[9]", 3),
        ("spec.nothing.here", 2),
        ("", 1),
    ],
)
def test_fields_are_found_in_their_text(path: str, line: int) -> None:
    assert Locator(TEXT).find_line(0, path) == line


def test_locator_answers_for_text_that_does_not_parse() -> None:
    assert Locator("a: [").find_line(0, "a") == 1


def test_half_a_character_in_json_is_refused_and_a_whole_one_is_not() -> None:
    (whole,) = parse_json(r'{"a": "\ud83d\ude00"}')
    assert whole.value == {"a": "\N{GRINNING FACE}"}
    for text in (r'{"a": "\ud83d"}', r'[{"\uDE00": 1}]'):
        with pytest.raises(DocumentError, match="half of a surrogate pair"):
            parse_json(text)
