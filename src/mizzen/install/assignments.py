"""`--set` assignments, as Helm and istioctl take them: `path=value,path=value`.

In: the text of a flag. Out: the map that it means. A backslash takes the meaning of the next character away; a list is
`{a,b}`; `path[1]` is a place in a list. A value is a number, a boolean or null where it reads as one. Names before the
values proper are istioctl's: `values.` and `spec.` fall away, `hub`, `tag` and `namespace` are the global ones.
"""

import re
from collections.abc import Iterator
from typing import Any

from mizzen.errors import DecodeError

_PREFIXES = ("spec", "values")
_SHORT = {"hub": ("global", "hub"), "tag": ("global", "tag"), "namespace": ("global", "istioNamespace")}
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST_LIST = 1000

Path = list[str | int]


def parse_assignments(text: str, *, as_text: bool = False) -> dict[str, Any]:
    """The map of one flag; with `as_text` every value is a text. Raises DecodeError."""
    found: dict[str, Any] = {}
    for part in _split(text, ","):
        name, equals, value = _partition(part)
        if not equals or not name:
            raise DecodeError(f"{part!r} is not NAME=VALUE", "--set")
        _put(found, _path(name), _value(value, as_text))
    return found


def _split(text: str, separator: str) -> Iterator[str]:
    """The parts between separators that are neither escaped nor inside braces or brackets; escapes stay."""
    part, depth, characters = "", 0, iter(text)
    for character in characters:
        if character == "\\":
            part += character + next(characters, "")
            continue
        depth += (character in "{[") - (character in "}]")
        if character == separator and depth <= 0:
            yield part
            part = ""
        else:
            part += character
    if part:
        yield part


def _partition(part: str) -> tuple[str, bool, str]:
    name = next(_split(part, "="), "")
    return name, len(name) < len(part), part[len(name) + 1 :]


def _path(name: str) -> Path:
    steps: Path = []
    for part in _split(name, "."):
        head, *places = re.split(r"(?<!\\)\[", part)
        if head:
            steps.append(_plain(head))
        for place in places:
            number = place.removesuffix("]")
            if not number.isdigit() or int(number) > _LONGEST_LIST:
                raise DecodeError(f"{name!r}: [{place} is no place in a list", "--set")
            steps.append(int(number))
    while len(steps) > 1 and steps[0] in _PREFIXES:
        steps = steps[1:]
    if len(steps) == 1 and steps[0] in _SHORT:
        return list(_SHORT[str(steps[0])])
    return steps


def _value(text: str, as_text: bool) -> Any:
    if text.startswith("{") and text.endswith("}"):
        return [_value(item, as_text) for item in _split(text[1:-1], ",")]
    plain = _plain(text)
    if as_text or plain != text:
        return plain
    if plain.lower() in _WORDS:
        return _WORDS[plain.lower()]
    return int(plain) if _INTEGER.fullmatch(plain) else plain


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _put(tree: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at a path, making maps and lists on the way."""
    place: Any = tree
    for step, following in zip(path, [*path[1:], None], strict=True):
        if isinstance(step, int) != isinstance(place, list):
            raise DecodeError(f"{'.'.join(map(str, path))!r} goes through another value", "--set")
        if isinstance(step, int):
            place.extend([None] * (step + 1 - len(place)))
        if following is None:
            place[step] = value
            return
        below = place[step] if isinstance(step, int) else place.get(step)
        if not isinstance(below, dict | list):
            below = [] if isinstance(following, int) else {}
            place[step] = below
        place = below
