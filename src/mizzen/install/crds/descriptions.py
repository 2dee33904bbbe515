"""Descriptions: what a Struct and its fields say of themselves, as `kubectl explain` prints it.

In: a Struct. Out: the first paragraph of its docstring, and of the docstrings that stand below its fields. Names in
them are ours, in snake_case, and become those of the wire.
"""

import ast
import inspect
import re
import sys
from collections.abc import Mapping
from functools import cache

from mizzen.api.message import Message

_QUOTED = re.compile(r"`([a-z0-9_.]+)`")


def description_of(cls: type[Message]) -> str:
    """What a Struct is."""
    return _first_paragraph(cls.__doc__ or "")


@cache
def field_descriptions(cls: type[Message]) -> Mapping[str, str]:
    """What those of a Struct's own fields are that say it, by their Python names."""
    body = _classes(cls.__module__)[cls.__name__]
    found: dict[str, str] = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            found[field.target.id] = _first_paragraph(below.value.value)
    return found


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The classes of a module as they are written."""
    written = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in written.body if isinstance(node, ast.ClassDef)}


def _first_paragraph(text: str) -> str:
    paragraph = " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
    return _QUOTED.sub(lambda name: f"`{_camel(name[1])}`", paragraph)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)
