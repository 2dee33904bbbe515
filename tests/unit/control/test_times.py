"""Moments as objects of Kubernetes write them."""

from mizzen.control.times import format_micro_time, format_time, parse_time

AT = 1_796_000_000.25


def test_moments_are_written_as_their_types_ask():
    assert format_time(AT) == "2026-11-30T00:53:20Z"
    assert format_micro_time(AT) == "2026-11-30T00:53:20.250000Z"
    assert (parse_time(format_time(AT)), parse_time(format_micro_time(AT))) == (AT - 0.25, AT)


def test_nanoseconds_of_istiod_are_read():
    assert parse_time("2026-08-27T12:45:20.123456789Z") == parse_time("2026-08-27T12:45:20.123456Z")
    assert parse_time("yesterday") is None
    assert parse_time("2026-08-27T12:45:20") is None
