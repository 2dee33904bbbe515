"""CEL expressions of Telemetry, for an Envoy that refuses a whole listener for one that it cannot read.

In: an expression as Istio's proxies take it. Out: the same for upstream Envoy, or None where it has no such thing: it
lacks the macros that loop, builds no messages, knows few functions (fewer as a value of a label than as a filter of
logs), and reads nothing that nests deeper than 32 levels. All of that was tried with a real Envoy. What a name stands
for is found out per request; an unknown one gives no value.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from mizzen.api.validate.values import expressions

Use = Literal["value", "filter"]
"""A label's value, or the condition of a log."""

_Token = tuple[str, str]

_DEEPEST = 30
_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_TIME_PARTS = ("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear")
_TIMES = tuple(f"get{part}" for part in (*_TIME_PARTS, "Hours", "Minutes", "Seconds", "Milliseconds"))
# The arguments that each takes, the receiver of a method not counted.
_FUNCTIONS = {
    **dict.fromkeys(("int", "uint", "double", "bytes", "bool", "timestamp", "duration", "type", "dyn", "size"), (1,)),
    "matches": (2,),
    "has": (1,),
}
_METHODS = {
    **dict.fromkeys(("contains", "startsWith", "endsWith", "matches"), (1,)),
    **dict.fromkeys(_TIMES, (0, 1)),
    "size": (0,),
}
_FILTER_FUNCTIONS = {"string": (1,)}
_FILTER_METHODS = {
    **dict.fromkeys(("lowerAscii", "upperAscii", "trim"), (0,)),
    **dict.fromkeys(("charAt",), (1,)),
    **dict.fromkeys(("split", "indexOf", "substring"), (1, 2)),
    "replace": (2, 3),
    "join": (0, 1),
    "format": (1,),
}


def translate(expression: str, use: Use) -> str | None:
    """The expression for upstream Envoy."""
    tokens = expressions.tokens(expression)
    if tokens is None:
        return None
    if use == "value":
        tokens = _without_conversion(tokens)
    if not all(_is_known(tokens, place, use) for place in range(len(tokens))) or _depth(tokens) > _DEEPEST:
        return None
    text = _render(tokens)
    # A formatter takes the first `)%` for the end of its command, and wants it in one line.
    return None if use == "value" and (")%" in text or "\n" in text) else text


def _without_conversion(tokens: tuple[_Token, ...]) -> tuple[_Token, ...]:
    """A label is a text anyway: `string(x)` is `x`."""
    while tokens[:2] == (("name", "string"), ("sign", "(")) and _end_of(tokens, 1) == len(tokens) - 1:
        tokens = tokens[2:-1]
    return tokens


def _render(tokens: Sequence[_Token]) -> str:
    """The tokens as text. Istio's proxies know the node under a shorter name."""
    text = ""
    before = ("sign", "")
    for kind, token in tokens:
        if kind != "sign" and before[0] != "sign":
            text += " "
        text += "xds.node" if (kind, token) == ("name", "node") and before[1] != "." else token
        before = (kind, token)
    return text


def _is_known(tokens: Sequence[_Token], place: int, use: Use) -> bool:
    kind, token = tokens[place]
    after = tokens[place + 1] if place + 1 < len(tokens) else ("", "")
    before = tokens[place - 1] if place else ("", "")
    if kind == "sign":
        # Optional parts of a value, which come with `?`, are not known; the one of a condition stands after a value.
        return token != "?" or before[1] not in (".", "[", "{", ",")
    if kind == "quoted" or (kind == "name" and after == ("sign", "{")):
        return False
    if kind != "name" or after != ("sign", "("):
        return True
    is_method = before == ("sign", ".")
    known = _METHODS if is_method else _FUNCTIONS
    if use == "filter":
        known = known | (_FILTER_METHODS if is_method else _FILTER_FUNCTIONS)
    arguments = _arguments(tokens, place + 1)
    if len(arguments) not in known.get(token, ()):
        return False
    if token == "has":
        selected = arguments[0][-2:]
        return len(selected) == 2 and selected[0] == ("sign", ".") and selected[1][0] == "name"
    return True


def _end_of(tokens: Sequence[_Token], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        kind, token = tokens[place]
        if kind == "sign":
            depth += (token in _OPENING) - (token in _CLOSING)
        if depth == 0:
            return place
    return len(tokens)


def _arguments(tokens: Sequence[_Token], opening: int) -> list[Sequence[_Token]]:
    inside = tokens[opening + 1 : _end_of(tokens, opening)]
    return [part for part in _split(inside, (",",)) if part]


def _split(tokens: Sequence[_Token], signs: Iterable[str]) -> list[Sequence[_Token]]:
    """The parts between signs that are in no brackets."""
    parts, begin, place = [], 0, 0
    while place < len(tokens):
        kind, token = tokens[place]
        if kind == "sign" and token in _OPENING:
            place = _end_of(tokens, place)
        elif kind == "sign" and token in signs:
            parts.append(tokens[begin:place])
            begin = place + 1
        place += 1
    return [*parts, tokens[begin:]]


def _depth(tokens: Sequence[_Token]) -> int:
    """How deep the expression nests, or somewhat more: what is in a row nests, but for rows of `&&` and `||`."""
    alternatives = _split(tokens, ("&&", "||"))
    if len(alternatives) > 1:
        return 1 + max(map(_depth, alternatives))
    row, inside, place = 0, 0, 0
    while place < len(tokens):
        kind, token = tokens[place]
        if kind == "sign" and token in _OPENING:
            end = _end_of(tokens, place)
            inside = max([inside, *map(_depth, _split(tokens[place + 1 : end], (",",)))])
            place = end
        row += kind == "sign" or token == "in"
        place += 1
    return row + inside
