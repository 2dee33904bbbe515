"""What permissions and principals have in common: an attribute, and the pieces of matchers both use."""

import ipaddress
from collections.abc import Callable, Iterable
from typing import Any

import msgspec


class InvalidValueError(Exception):
    """A value, or the key of a condition, that no request can be held against."""


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a request, and how a list of values for it becomes one matcher."""

    build: Callable[[Iterable[str]], dict[str, Any]]
    http_only: bool = False
    """Whether a bare TCP connection lacks it."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute with the values that it must and must not have."""

    attribute: Attribute
    values: tuple[str, ...]
    excluded: tuple[str, ...]


def cidr_range(text: str) -> dict[str, Any]:
    """An address or a range of addresses; a bare address is a range of one."""
    try:
        address, slash, length = text.partition("/")
        parsed = ipaddress.ip_address(address)
        bits = ipaddress.ip_network(text, strict=False).prefixlen if slash else parsed.max_prefixlen
    except ValueError:
        raise InvalidValueError(f"{text!r} is neither an address nor a range") from None
    if slash and not length.isdecimal():
        raise InvalidValueError(f"{text!r} has no length in bits")
    return {"address_prefix": str(parsed), "prefix_len": {"value": bits}}


def between_brackets(key: str) -> str:
    """What stands between the first bracket of a key and the last; empty where the key does not end with one."""
    start = key.find("[")
    return key[start + 1 : -1] if start >= 0 and key.endswith("]") else ""


def metadata_matcher(filter_name: str, path: Iterable[str], value: dict[str, Any]) -> dict[str, Any]:
    """A matcher over a filter's dynamic metadata."""
    return {"filter": filter_name, "path": [{"key": key} for key in path], "value": value}
