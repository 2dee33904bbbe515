"""YAML's plain scalars as Kubernetes reads them.

Kubernetes reads YAML by `sigs.k8s.io/yaml`, which resolves with go-yaml version 2 into untyped values and goes on in
JSON. So YAML 1.1's words are booleans (`yes`, `no`, `on`, `off` in their three spellings), `0x1f`, `0b1`, `0o17` and
`017` are integers, underscores in numbers are skipped; base-60 numbers (`1:20`) and dates stay strings. A key of a map
that is not a string takes its JSON spelling. Unlike there `y` and `n` stay strings, as most tools write them: a header
called y is no mistake, and as a boolean either is refused with its path.
"""

import base64
import binascii
import math
import re
from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
HINTS = frozenset("yYnNtTfFoO~+-.0123456789")
"""A plain scalar that starts with none of these is a string; most do not."""

_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER_BOUNDS = (-(2**63), 2**64 - 1)
_TAG = "tag:yaml.org,2002:"


def resolve_plain(text: str) -> Any:
    """The value of an unquoted scalar."""
    if text and text[0] not in HINTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    plain = text.replace("_", "")
    if _INTEGER.fullmatch(plain):
        return _parse_integer(plain)
    if _FLOAT.fullmatch(plain):
        return float(plain)
    return text


def _parse_integer(plain: str) -> int | float:
    digits = plain.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        number = int(digits, 8)
    elif len(digits) > 400:
        return math.inf
    else:
        number = int(digits, 0)
    if plain[0] == "-":
        number = -number
    low, high = _INTEGER_BOUNDS
    return number if low <= number <= high else float(number)


def resolve_tagged(tag: str, text: str) -> Any:
    """The value of a scalar with an explicit tag; tags that YAML does not define leave it a string.

    Raises ValueError where the text is not what the tag says.
    """
    match tag.removeprefix(_TAG) if tag.startswith(_TAG) else "":
        case "binary":
            try:
                return base64.b64decode("".join(text.split()), validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise ValueError("!!binary holds no base64 text") from None
        case "int" | "float" | "bool" | "null" as kind:
            value = resolve_plain(text)
            if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
                return float(value)
            if not isinstance(value, _TYPES[kind]) or (kind == "int" and isinstance(value, bool)):
                raise ValueError(f"the value is no !!{kind}")
            return value
        case _:
            return text


_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "null": type(None)}


def spell_key(value: Any) -> str:
    """A map's key as JSON spells it. Raises ValueError for what cannot be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    raise ValueError("a key must be a string, number or boolean")
