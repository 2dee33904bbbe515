"""Expressions of CEL, held against its grammar alone: whether names and types make sense only Envoy knows.

A recogniser by recursive descent over the tokens of a text; the grammar is that of CEL's language definition.
"""

import re
from collections.abc import Callable

from mizzen.api.message import names

_DEEPEST = 32
_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\n\f\r]+|//[^\n]*)+)
    |(?P<text>[rRbB]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*'))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?)
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<quoted>`[-_a-zA-Z0-9./ ]+`)
    |(?P<sign>\|\||&&|[<>=!]=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_RESERVED = names(
    "as break const continue else for function if import let loop package namespace return var void while"
)
_END = "<end>"


def expression_fault(text: str) -> str | None:
    """What keeps a text from being an expression; only the first fault."""
    try:
        _Recogniser(text).recognise()
    except _SyntaxError as fault:
        return str(fault)
    return None


class _SyntaxError(Exception):
    """A token where the grammar has none of its kind."""


class _Recogniser:
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_split(text))
        self._next = 0
        self._depth = 0

    @property
    def _kind(self) -> str:
        return self._tokens[self._next][0]

    @property
    def _token(self) -> str:
        return self._tokens[self._next][1]

    def recognise(self) -> None:
        """The whole text as one expression."""
        self._expression()
        if self._kind != _END:
            self._fail("the end")

    def _fail(self, wanted: str) -> None:
        _, token, column = self._tokens[self._next]
        raise _SyntaxError(f"syntax error at character {column}: expected {wanted}, found {token!r}")

    def _take(self, *signs: str) -> bool:
        found = self._kind == "sign" and self._token in signs
        self._next += found
        return found

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            self._fail(repr(sign))

    def _expression(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _SyntaxError(f"nested more than {_DEEPEST} deep")
        self._or()
        if self._take("?"):
            self._or()
            self._need(":")
            self._expression()
        self._depth -= 1

    def _or(self) -> None:
        self._row(lambda: self._row(self._relation, "&&"), "||")

    def _relation(self) -> None:
        self._sum()
        while self._take("<", "<=", ">=", ">", "==", "!=") or self._take_word("in"):
            self._sum()

    def _take_word(self, word: str) -> bool:
        found = self._kind == "name" and self._token == word
        self._next += found
        return found

    def _sum(self) -> None:
        self._row(lambda: self._row(self._unary, "*", "/", "%"), "+", "-")

    def _row(self, part: Callable[[], None], *signs: str) -> None:
        part()
        while self._take(*signs):
            part()

    def _unary(self) -> None:
        while self._take("!", "-"):
            pass
        self._primary()
        while True:
            if self._take("."):
                self._take("?")
                self._selected()
            elif self._take("["):
                self._take("?")
                self._expression()
                self._need("]")
            elif self._tokens[self._next - 1][0] == "name" and self._take("{"):
                self._entries()
            else:
                return

    def _selected(self) -> None:
        if self._kind not in ("name", "quoted"):
            self._fail("a name")
        self._next += 1
        self._called()

    def _called(self) -> None:
        if self._take("("):
            self._list(")")

    def _primary(self) -> None:
        if self._kind in ("text", "number"):
            self._next += 1
        elif self._take("("):
            self._expression()
            self._need(")")
        elif self._take("["):
            self._list("]")
        elif self._take("{"):
            self._entries()
        else:
            self._take(".")
            if self._kind != "name" or self._token in _RESERVED or self._token == "in":
                self._fail("a value")
            self._next += 1
            self._called()

    def _list(self, end: str) -> None:
        while not self._take(end):
            self._take("?")
            self._expression()
            if not self._take(","):
                self._need(end)
                return

    def _entries(self) -> None:
        """Entries of a map or fields of a message, up to their end."""
        while not self._take("}"):
            self._take("?")
            self._expression()
            self._need(":")
            self._expression()
            if not self._take(","):
                self._need("}")
                return


def tokens(text: str) -> tuple[tuple[str, str], ...] | None:
    """The tokens of an expression, each with its kind (`text`, `number`, `name`, `quoted`, `sign`); None for others."""
    if expression_fault(text) is not None:
        return None
    return tuple((kind, token) for kind, token, _ in _split(text)[:-1])


def _split(text: str) -> list[tuple[str, str, int]]:
    """The tokens, each with its kind and column, and one that ends them."""
    parts: list[tuple[str, str, int]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _SyntaxError(f"token recognition error at character {position + 1}: {text[position]!r}")
        if found.lastgroup != "space":
            parts.append((found.lastgroup or "", found[0], position + 1))
        position = found.end()
    return [*parts, (_END, _END, len(text) + 1)]
