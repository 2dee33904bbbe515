from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mizzen.api.scalars import Duration, Quantity, decode_scalar, encode_scalar


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("1.5s", 1_500_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1h1m1.001s", 3_661_001_000_000),
        ("250ms", 250_000_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("3us", 3_000),
        ("3µs", 3_000),
        ("7ns", 7),
        ("-2s", -2_000_000_000),
        ("+2s", 2_000_000_000),
        ("0.0000000019s", 1),
        ("9223372036.854775807s", 2**63 - 1),
    ],
)
def test_durations_are_read_as_go_and_protobuf_write_them(text: str, nanoseconds: int) -> None:
    assert Duration.parse(text) == nanoseconds


@pytest.mark.parametrize(
    "value",
    ["", "-", "5", "s", ".s", "1d", "1 s", "1s ", "1,5s", "1e3s", "--1s", "9223372036.854775808s", 5, 1.5, True, None],
)
def test_what_is_no_duration_is_refused_with_the_value(value: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        Duration.parse(value)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (10**9, "1s"),
        (15 * 10**8, "1.500s"),
        (1_000, "0.000001s"),
        (1, "0.000000001s"),
        (-5 * 10**8, "-0.500s"),
    ],
)
def test_durations_print_as_protobuf_does(nanoseconds: int, text: str) -> None:
    assert str(Duration(nanoseconds)) == text
    assert repr(Duration(nanoseconds)) == f"Duration({text!r})"


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_durations_survive_their_text(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == nanoseconds


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_the_parts_of_a_duration_have_its_sign(nanoseconds: int) -> None:
    parts = Duration(nanoseconds).protobuf()
    assert parts["seconds"] * 10**9 + parts["nanos"] == nanoseconds
    assert abs(parts["nanos"]) < 10**9
    assert parts["seconds"] * parts["nanos"] >= 0


def test_durations_are_built_of_parts() -> None:
    assert Duration.of(hours=1, minutes=1, seconds=1, milliseconds=1) == Duration.parse("1h1m1.001s")
    assert Duration.of(milliseconds=1500).total_seconds == 1.5


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("100m", Fraction(1, 10)),
        ("1.5Gi", Fraction(3 * 2**30, 2)),
        ("2", Fraction(2)),
        (2, Fraction(2)),
        (0.5, Fraction(1, 2)),
        ("1e3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("-3k", Fraction(-3000)),
        (".5", Fraction(1, 2)),
        ("5n", Fraction(5, 10**9)),
        ("2E-1", Fraction(1, 5)),
    ],
)
def test_quantities_know_their_amount(value: object, amount: Fraction) -> None:
    assert Quantity.parse(value).amount == amount


@pytest.mark.parametrize(
    "value", ["", "Gi", "1gi", "1 Gi", "--1", "1e", "1ee3", "1e9999", True, None, [], float("nan")]
)
def test_what_is_no_quantity_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="expected a quantity such as"):
        Quantity.parse(value)


def test_a_quantity_that_was_not_parsed_has_no_amount() -> None:
    with pytest.raises(ValueError, match="expected a quantity"):
        Quantity("much").amount  # noqa: B018


def test_scalars_pass_through_msgspec_both_ways() -> None:
    assert msgspec.convert({"a": "1s"}, dict[str, Duration], dec_hook=decode_scalar) == {"a": 10**9}
    encoded = msgspec.to_builtins({"a": Duration(10**9), "b": Quantity("1Gi")}, enc_hook=encode_scalar)
    assert encoded == {"a": "1s", "b": "1Gi"}


@pytest.mark.parametrize("hook", [lambda: decode_scalar(complex, "1"), lambda: encode_scalar(1j)])
def test_the_hooks_know_no_other_class(hook: object) -> None:
    with pytest.raises(NotImplementedError, match="complex"):
        hook()  # type: ignore[operator]
