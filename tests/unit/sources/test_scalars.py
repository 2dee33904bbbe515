"""Plain scalars come out as `sigs.k8s.io/yaml` gives them to Kubernetes."""

import math

import pytest

from mizzen.sources.scalars import resolve_plain, resolve_tagged, spell_key


@pytest.mark.parametrize("text", ["yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
def test_words_of_yaml_1_1_are_true(text: str) -> None:
    assert resolve_plain(text) is True


@pytest.mark.parametrize("text", ["no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
def test_words_of_yaml_1_1_are_false(text: str) -> None:
    assert resolve_plain(text) is False


@pytest.mark.parametrize("text", ["y", "Y", "n", "N"])
def test_single_letters_stay_strings(text: str) -> None:
    assert resolve_plain(text) == text


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_words_for_nothing(text: str) -> None:
    assert resolve_plain(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("15", 15),
        ("-7", -7),
        ("+7", 7),
        ("1_000", 1000),
        ("0x1F", 31),
        ("-0x10", -16),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551616", 2.0**64),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("08", 8.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    found = resolve_plain(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "1:20",
        "190:20:30",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "1.2.3.4",
        "0x",
        "0o8",
        "1e",
        "-",
        "+",
        ".",
        "_1a",
        "yEs",
        "nULL",
        "tRue",
        "=",
        "<<",
        "v1",
        "100m",
        "10.0.0.1",
        "1__a",
        "é",
        "-foo",
        "0b2",
    ],
)
def test_everything_else_is_a_string(text: str) -> None:
    assert resolve_plain(text) == text


def test_numbers_that_json_lacks_are_told_apart() -> None:
    assert math.isnan(resolve_plain(".nan"))
    assert resolve_plain("-.inf") == -math.inf
    assert resolve_plain("9" * 500) == math.inf


TAG = "tag:yaml.org,2002:"


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        (TAG + "str", "5", "5"),
        (TAG + "int", "5", 5),
        (TAG + "float", "5", 5.0),
        (TAG + "bool", "yes", True),
        (TAG + "null", "", None),
        (TAG + "binary", "aGk=", "hi"),
        (TAG + "timestamp", "2024-01-01", "2024-01-01"),
        ("!mine", "5", "5"),
    ],
)
def test_tags_say_what_a_scalar_is(tag: str, text: str, value: object) -> None:
    assert resolve_tagged(tag, text) == value


@pytest.mark.parametrize(
    ("tag", "text"), [("int", "x"), ("int", "true"), ("bool", "1"), ("binary", "*"), ("float", "a")]
)
def test_text_that_is_not_what_its_tag_says_is_refused_without_being_quoted(tag: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"!!{tag}"):
        resolve_tagged(TAG + tag, text)


@pytest.mark.parametrize(
    ("key", "spelling"),
    [("a", "a"), (True, "true"), (False, "false"), (80, "80"), (1.5, "1.5"), (2.0, "2"), (-3, "-3")],
)
def test_keys_take_their_json_spelling(key: object, spelling: str) -> None:
    assert spell_key(key) == spelling


@pytest.mark.parametrize("key", [None, [1], math.nan])
def test_what_cannot_be_a_key_is_refused(key: object) -> None:
    with pytest.raises(ValueError, match="key"):
        spell_key(key)
