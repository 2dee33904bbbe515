"""Scalars that JSON has no type for: durations, quantities, and integers of protobuf's widths.

`Duration` is an int of nanoseconds, so durations compare, add and hash as numbers; its text is protobuf's JSON.
`Quantity` is the text that the user wrote, checked, with its amount beside it. The integers are plain `int` whose
range the decoder checks. msgspec knows neither class: `decode_scalar` and `encode_scalar` are the hooks for it.
"""

import re
from fractions import Fraction
from typing import Annotated, Any, Self

from msgspec import Meta

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
UInt64 = Annotated[int, Meta(ge=0)]
IntOrString = Int32 | str
Base64 = bytes
"""Bytes, written as base64."""

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_DURATION_LIMIT = 2**63

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|(n|u|m|k|M|G|T|P|E|[KMGTPE]i))?")
_SUFFIXES = {
    **{
        suffix: Fraction(10) ** power
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{suffix}i": Fraction(2) ** (10 * power) for power, suffix in enumerate("KMGTPE", start=1)},
}


class Duration(int):
    """A span of time in nanoseconds; written `1.5s` (protobuf) or `1h30m` (Go), printed the first way."""

    __slots__ = ()

    expected = "a duration such as 1.5s or 1h30m"

    @classmethod
    def parse(cls, text: object) -> Self:
        """What Go's ParseDuration reads, which includes protobuf's JSON; ValueError for anything else."""
        if not isinstance(text, str):
            raise ValueError(f"expected {cls.expected}, got {_describe(text)}")
        unsigned = text[1:] if text[:1] in ("-", "+") else text
        nanoseconds = 0 if unsigned == "0" else _sum_of_parts(unsigned)
        if nanoseconds is None or nanoseconds >= _DURATION_LIMIT:
            raise ValueError(f"expected {cls.expected}, got {_describe(text)}")
        return cls(-nanoseconds if text[0] == "-" else nanoseconds)

    @classmethod
    def of(cls, *, hours: int = 0, minutes: int = 0, seconds: int = 0, milliseconds: int = 0) -> Self:
        """The duration of these parts."""
        return cls((hours * 3600 + minutes * 60 + seconds) * 10**9 + milliseconds * 10**6)

    @property
    def total_seconds(self) -> float:
        """The duration in seconds, rounded as floats are."""
        return self / 10**9

    def protobuf(self) -> dict[str, int]:
        """The fields of a google.protobuf.Duration: seconds and nanos, of one sign."""
        seconds, nanos = divmod(abs(self), 10**9)
        sign = -1 if self < 0 else 1
        return {"seconds": sign * seconds, "nanos": sign * nanos}

    def __str__(self) -> str:
        seconds, nanos = divmod(abs(self), 10**9)
        sign = "-" if self < 0 else ""
        if not nanos:
            return f"{sign}{seconds}s"
        digits = 3 if nanos % 10**6 == 0 else 6 if nanos % 10**3 == 0 else 9
        return f"{sign}{seconds}.{nanos // 10 ** (9 - digits):0{digits}d}s"

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


class Quantity(str):
    """An amount as Kubernetes writes it: `100m`, `1.5Gi`, `2`. Equal when written equal; `amount` is its value."""

    __slots__ = ()

    expected = "a quantity such as 100m or 1.5Gi"

    @classmethod
    def parse(cls, value: object) -> Self:
        """A string with an optional suffix or exponent, or a number; ValueError for anything else."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not _QUANTITY.fullmatch(value):
            raise ValueError(f"expected {cls.expected}, got {_describe(value)}")
        return cls(value)

    @property
    def amount(self) -> Fraction:
        """The exact value, suffix applied."""
        match = _QUANTITY.fullmatch(self)
        if match is None:
            raise ValueError(f"expected {self.expected}, got {_describe(str(self))}")
        number, exponent, suffix = match.groups()
        scale = Fraction(10) ** int(exponent[1:]) if exponent else _SUFFIXES.get(suffix, Fraction(1))
        return Fraction(number) * scale


def decode_scalar(wanted: type, value: object) -> Duration | Quantity:
    """msgspec's `dec_hook`: called for each class that it does not know."""
    if wanted is Duration:
        return Duration.parse(value)
    if wanted is Quantity:
        return Quantity.parse(value)
    raise NotImplementedError(f"no decoder for {wanted.__name__}")


def encode_scalar(value: object) -> str:
    """msgspec's `enc_hook`, the inverse of `decode_scalar`."""
    if isinstance(value, (Duration, Quantity)):
        return str(value)
    raise NotImplementedError(f"no encoder for {type(value).__name__}")


def _sum_of_parts(text: str) -> int | None:
    """Nanoseconds of `1h30m`; None if the text is no such sum."""
    total, position = 0, 0
    while position < len(text):
        part = _DURATION_PART.match(text, position)
        if part is None or not (part[1] or part[2]):
            return None
        unit = _NANOSECONDS[part[3]]
        fraction = part[2] or "0"
        total += int(part[1] or "0") * unit + int(fraction) * unit // 10 ** len(fraction)
        position = part.end()
    return total if text else None


def _describe(value: Any) -> str:
    """The value, quoted and cut, for an error message."""
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
