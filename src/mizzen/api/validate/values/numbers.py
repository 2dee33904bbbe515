"""Numbers with a unit: durations and percentages."""

from mizzen.api.networking.destination import Percent
from mizzen.api.scalars import Duration

MILLISECOND = 10**6
SECOND = 10**9


def duration_fault(duration: Duration | None) -> str | None:
    """What is wrong with a duration, which Envoy takes in whole milliseconds; an absent one is fine."""
    if duration is None:
        return None
    if duration < MILLISECOND:
        return "duration must be greater than 1ms"
    if duration % MILLISECOND:
        return "only durations to ms precision are supported"
    return None


def duration_text(duration: int) -> str:
    """A duration as Go prints it: `1h0m0s`, `1.5s`, `20ms`."""
    if not duration:
        return "0s"
    sign, nanoseconds = ("-" if duration < 0 else ""), abs(duration)
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", MILLISECOND)):
        if nanoseconds < size * 1000:
            return f"{sign}{_decimal(nanoseconds, size)}{unit}"
    minutes, rest = divmod(nanoseconds, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def percent_fault(percent: int) -> str | None:
    """What is wrong with a whole percentage."""
    return None if 0 <= percent <= 100 else f"percentage {percent} is not in range 0..100"


def fraction_fault(percent: Percent | None) -> str | None:
    """What is wrong with a percentage that may be a small fraction; an absent one is fine."""
    if percent is None or percent.value == 0 or 0.0001 <= percent.value <= 100:
        return None
    return f"percentage {number_text(percent.value)} is neither 0.0, nor in range [0.0001, 100.0]"


def number_text(value: float) -> str:
    """A float as Go's `%v` prints it."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
