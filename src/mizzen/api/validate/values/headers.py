"""Headers: their names, which differ by what is done with them, and values, which may hold Envoy's `%COMMAND%`s."""

import re
from collections.abc import Callable, Mapping

from mizzen.api.networking.virtual_service import HeaderOperations, Headers
from mizzen.api.validate.faults import Faults, at

CLAIM = "@request.auth.claims"
"""A name that means a claim of the request's token, in a route behind a gateway."""

_PSEUDO = frozenset((":method", ":scheme", ":authority", ":path", ":status"))
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_COMMAND = re.compile(r"%[A-Z0-9_]+(\((?:[^()\\]|\\.)*\))?(:[0-9]+)?%")
_COMMAND_BEGUN = re.compile(r"%([A-Z0-9_]+)(\()?(?:[^()\\]|\\.)*")


def is_claim(name: str) -> bool:
    """Whether a name of a match means a claim."""
    return name.startswith((f"{CLAIM}.", f"{CLAIM}["))


def token_fault(name: str) -> str | None:
    """What keeps a text from being the name of a header."""
    if not name:
        return "header name cannot be empty"
    return None if _TOKEN.fullmatch(name) else f"header name {name} is not a valid header name"


def matched_name_fault(name: str) -> str | None:
    """What is wrong with the name of a header that is matched: pseudo headers and claims of tokens pass too."""
    return None if is_claim(name) or name in _PSEUDO else token_fault(name)


def cors_name_fault(name: str) -> str | None:
    """What is wrong with the name of a header that a browser may send or read."""
    return None if name == "*" else token_fault(name)


def _changed_name_fault(name: str) -> str | None:
    """Of a header that is set or added on the way in; the host may be."""
    if name.startswith(":") and name != ":authority":
        return f'invalid header "{name}": header cannot have ":" prefix'
    return None if name == ":authority" else token_fault(name)


def _plain_name_fault(name: str) -> str | None:
    """Of a header that is removed, or changed on the way out; the host may not be."""
    if name.lower() == "host":
        return f'invalid header "{name}": cannot set Host header'
    if name.startswith(":"):
        return f'invalid header "{name}": header cannot have ":" prefix'
    return token_fault(name)


def value_fault(value: str) -> str | None:
    """What is wrong with a value: a `%` stands for itself only when doubled."""
    if _CONTROL.search(value):
        return f"header value configuration {value} is invalid"
    position = 0
    while (position := value.find("%", position)) >= 0:
        if value.startswith("%%", position):
            position += 2
            continue
        command = _COMMAND.match(value, position)
        if command is None:
            return f"header value configuration: invalid header configuration. {_command_fault(value, position)}"
        position = command.end()
    return None


def _command_fault(value: str, position: int) -> str:
    begun = _COMMAND_BEGUN.match(value, position)
    if begun is None:
        return f"Un-escaped % at position {position}"
    return f"Un-terminated variable expression '{value[position + 1 :]}'"


def check_changes(headers: Headers | None, path: str) -> Faults:
    """Changes of headers on the way in and out."""
    if headers is None:
        return
    yield from _check_operations(headers.request, f"{path}.request", _changed_name_fault)
    yield from _check_operations(headers.response, f"{path}.response", _plain_name_fault)


def _check_operations(
    operations: HeaderOperations | None, path: str, name_fault: Callable[[str], str | None]
) -> Faults:
    if operations is None:
        return
    for word, changes in (("set", operations.set), ("add", operations.add)):
        yield from _check_values(changes, f"{path}.{word}", name_fault)
    for index, name in enumerate(operations.remove):
        yield from at(f"{path}.remove[{index}]", _plain_name_fault(name))


def _check_values(changes: Mapping[str, str], path: str, name_fault: Callable[[str], str | None]) -> Faults:
    for name, value in changes.items():
        yield from at(f"{path}[{name}]", name_fault(name))
        yield from at(f"{path}[{name}]", value_fault(value))
