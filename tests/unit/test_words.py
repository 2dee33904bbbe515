"""Words of operators: durations as Go writes them, and what is refused."""

import pytest

from mizzen import words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("1h30m", 5400), ("100ms", 0.1), ("1.5s", 1.5), (".5m", 30), ("2us", 2e-6), ("3µs", 3e-6)],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert words.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (words.parse_duration, "1"),
        (words.parse_duration, "-1s"),
        (words.parse_duration, ""),
        (words.parse_bool, "flase"),
        (words.parse_count, "-1"),
        (words.parse_rate, "inf"),
        (words.parse_percentage, "101"),
        (words.parse_ratio, "1.1"),
        (words.parse_network, "10.0.0.0/33"),
    ],
)
def test_what_says_nothing_of_the_kind_is_refused(parse, text):
    with pytest.raises(ValueError):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "sentence"),
    [
        (words.parse_count, "'some' is not a whole number"),
        (words.parse_rate, "'some' is not a number"),
        (words.parse_percentage, "'some' is not a number"),
        (words.parse_ratio, "'some' is not a number"),
    ],
)
def test_what_is_no_number_is_told_in_words_for_operators(parse, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        parse("some")


def test_blanks_and_empty_names_are_left_out():
    assert words.parse_names(" a,, b ,") == ("a", "b")
    assert words.parse_bool_or_auto("AUTO") is None
