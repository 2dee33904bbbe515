"""What operators write in variables and flags, as values: durations, booleans, numbers, names, networks.

In: text. Out: the value, or ValueError with a sentence that says what was expected.
"""

import ipaddress
import re

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_WORDS = {"1": True, "t": True, "true": True, "yes": True, "on": True}
_WORDS |= {"0": False, "f": False, "false": False, "no": False, "off": False}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_duration(text: str) -> float:
    """Seconds of a Go duration (`1h30m`, `100ms`, `0`); negative ones are refused."""
    if text.strip() == "0":
        return 0.0
    parts = list(_DURATION.finditer(text.strip()))
    if not parts or "".join(part.group() for part in parts) != text.strip():
        raise ValueError(f"{text!r} is not a duration such as 100ms, 10s or 24h")
    return sum(float(part.group(1)) * _UNITS[part.group(2)] for part in parts)


def parse_bool(text: str) -> bool:
    """A boolean by word; anything else is refused, so that `flase` never counts as true."""
    try:
        return _WORDS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither true nor false") from None


def parse_bool_or_auto(text: str) -> bool | None:
    """A boolean, or None for `auto`."""
    return None if text.strip().lower() == "auto" else parse_bool(text)


def parse_count(text: str) -> int:
    """A whole number from 0 on."""
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if number < 0:
        raise ValueError(f"{text!r} is negative")
    return number


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def parse_rate(text: str) -> float:
    """A finite number from 0 on."""
    number = _parse_number(text)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{text!r} is not a positive number")
    return number


def parse_percentage(text: str) -> float:
    """A number from 0 to 100."""
    number = _parse_number(text)
    if not 0 <= number <= 100:
        raise ValueError(f"{text!r} is not between 0 and 100")
    return number


def parse_ratio(text: str) -> float:
    """A number from 0 to 1."""
    number = _parse_number(text)
    if not 0 <= number <= 1:
        raise ValueError(f"{text!r} is not between 0 and 1")
    return number


def parse_names(text: str) -> tuple[str, ...]:
    """What stands between commas, without blanks; empty ones are left out."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def parse_network(text: str) -> Network:
    """A CIDR range; bits beyond the mask are ignored."""
    return ipaddress.ip_network(text.strip(), strict=False)


def parse_networks(text: str) -> tuple[Network, ...]:
    """CIDR ranges between commas."""
    return tuple(ipaddress.ip_network(name, strict=False) for name in parse_names(text))
