"""YAML and JSON text to plain data, as Kubernetes reads it, with lines.

In: the text of a file, split at `---` lines so that one broken document leaves the others readable. Out: plain dicts,
lists and scalars, each document with its line; or `DocumentError` with the line at fault. Bounded against hostile
text: aliases may expand a document only so far, never into themselves, and nesting has an end.
What a document means is not known here.
"""

import functools
import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs hide it
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from mizzen.errors import DecodeError
from mizzen.sources.scalars import HINTS, resolve_plain, resolve_tagged, spell_key

_SEPARATOR = re.compile(r"^---(?=[ \t\r]|$)", re.MULTILINE)
_NO_CONTENT = re.compile(r"(?:[ \t]*(?:[#%][^\n]*)?\r?\n)*[ \t]*(?:[#%][^\n]*)?")
_MOST_ALIASED = 400_000
"""Values that aliases may add to a document; go-yaml's bound for small ones."""
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class DocumentError(DecodeError):
    """Text that does not parse; `line` counts from 1 within the text that was given."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Chunk(NamedTuple):
    """A part of a file between two `---` lines, and the line that it starts at."""

    text: str
    line: int


class Document(NamedTuple):
    """One document as plain data."""

    value: Any
    line: int
    """Where it starts, counted from 1 within its chunk."""
    repeated: tuple[tuple[str, int], ...] = ()
    """Keys written twice in one map, with their lines; the last one counts."""


def split_yaml(text: str) -> Iterator[Chunk]:
    """The chunks of a YAML text. Comments and directives before a `---` line belong to what follows it."""
    start, line = 0, 1
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    for end in [*starts, len(text)]:
        if _NO_CONTENT.fullmatch(text, start, end) and end < len(text):
            continue
        chunk = text[start:end]
        if chunk:
            yield Chunk(chunk, line)
        line += chunk.count("\n")
        start = end


class _Composer(CParser):
    """libyaml's parser without PyYAML's own resolution: a plain scalar's tag is empty."""

    def resolve(self, kind: type[Node], _value: Any, implicit: Any) -> str:
        return "" if kind is ScalarNode and implicit[0] else "!"

    def descend_resolver(self, _node: Any, _index: Any) -> None:
        """Nothing depends on a node's place."""

    def ascend_resolver(self) -> None:
        """Nothing depends on a node's place."""


def _compose(text: str) -> Iterator[Any]:
    composer = _Composer(text)
    try:
        while composer.check_node():
            yield composer.get_node()
    except yaml.MarkedYAMLError as error:
        last = text.rstrip().count("\n")
        marks = [mark.line for mark in (error.problem_mark, error.context_mark) if mark is not None]
        # What was begun and never ended is better looked for at its beginning than at the end of the text.
        line = next((line for line in marks if line <= last), last)
        what = ": ".join(part for part in (error.context, error.problem) if part)
        raise DocumentError(what or "not YAML", line + 1) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise DocumentError(f"character U+{ord(text[error.position]):04X} is not allowed", line) from error
    finally:
        composer.dispose()


def parse_yaml(text: str) -> list[Document]:
    """The documents of one chunk; empty ones have the value None."""
    documents = []
    for node in _compose(text):
        builder = _SharingBuilder() if "*" in text and "&" in text else _Builder()
        try:
            value = builder.build(node)
        except RecursionError:
            raise DocumentError("nested too deeply", node.start_mark.line + 1) from None
        documents.append(Document(value, node.start_mark.line + 1, tuple(builder.repeated)))
    return documents


class _Builder:
    """Plain data of composed nodes."""

    def __init__(self) -> None:
        self.repeated: list[tuple[str, int]] = []

    def build(self, node: Any) -> Any:
        """The node's value."""
        if type(node) is ScalarNode:
            return self.build_scalar(node)
        if type(node) is MappingNode:
            return self.build_map(node)
        return [self.build(item) for item in node.value]

    def build_scalar(self, node: Any) -> Any:
        """A scalar's value; numbers that JSON lacks are refused."""
        if node.tag == "!":
            return node.value
        try:
            value = resolve_plain(node.value) if not node.tag else resolve_tagged(node.tag, node.value)
        except ValueError as error:
            raise DocumentError(str(error), node.start_mark.line + 1) from error
        if type(value) is float and not math.isfinite(value):
            raise DocumentError(f"{node.value} is no number of JSON", node.start_mark.line + 1)
        return value

    def build_map(self, node: Any) -> dict[str, Any]:
        """A map's entries; what is merged into it by `<<` gives way to its own."""
        result: dict[str, Any] = {}
        merged: list[Any] = []
        for key_node, value_node in node.value:
            if type(key_node) is not ScalarNode:
                raise DocumentError("a key must be a string, number or boolean", key_node.start_mark.line + 1)
            if key_node.value == "<<" and not key_node.tag:
                merged.append(value_node)
                continue
            text = key_node.value
            key = text if text and text[0] not in HINTS and not key_node.tag else self.build_key(key_node)
            if key in result:
                self.repeated.append((key, key_node.start_mark.line + 1))
            if type(value_node) is ScalarNode:
                text = value_node.value
                is_text = text and text[0] not in HINTS and not value_node.tag
                result[key] = text if is_text else self.build_scalar(value_node)
            else:
                result[key] = self.build(value_node)
        for source in merged:
            self.merge(source, result)
        return result

    def build_key(self, node: Any) -> str:
        """A key's spelling."""
        if node.tag == "!":
            return str(node.value)
        try:
            return spell_key(self.build_scalar(node))
        except ValueError as error:
            raise DocumentError(str(error), node.start_mark.line + 1) from error

    def merge(self, source: Any, into: dict[str, Any]) -> None:
        """Add the entries of a `<<` value, a map or a list of maps, the first of which counts."""
        maps = source.value if type(source) is SequenceNode else [source]
        for each in maps:
            value = self.build(each)
            if not isinstance(value, dict):
                raise DocumentError("<< needs a map, or a list of maps", each.start_mark.line + 1)
            for key, item in value.items():
                into.setdefault(key, item)


class _SharingBuilder(_Builder):
    """For documents with aliases: every node is built once and shared, its values counted whenever it is used."""

    def __init__(self) -> None:
        super().__init__()
        self._built: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()
        self._size = 0
        self._aliased = 0

    def build(self, node: Any) -> Any:
        """The node's value, shared with every alias of it."""
        if type(node) is ScalarNode:
            return self.build_scalar(node)
        known = self._built.get(id(node))
        if known is not None:
            value, size = known
            self._size += size
            self._aliased += size
            if self._aliased > _MOST_ALIASED:
                raise DocumentError("aliases expand too far", node.start_mark.line + 1)
            return value
        if id(node) in self._open:
            raise DocumentError("an alias contains itself", node.start_mark.line + 1)
        self._open.add(id(node))
        before = self._size
        self._size += 1 + len(node.value)
        value = super().build(node)
        self._open.discard(id(node))
        self._built[id(node)] = (value, self._size - before)
        return value


def parse_json(text: str) -> list[Document]:
    """The documents of a JSON text, one after the other."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    documents: list[Document] = []
    position, length = 0, len(text)
    while True:
        while position < length and text[position] in " \t\r\n\ufeff":
            position += 1
        if position >= length:
            return documents
        line = text.count("\n", 0, position) + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise DocumentError(error.msg, error.lineno) from error
        except RecursionError:
            raise DocumentError("nested too deeply", line) from None
        except ValueError as error:
            raise DocumentError(str(error), line) from error
        _refuse_half_characters(text, value, line)
        documents.append(Document(value, line))


def _refuse_half_characters(text: str, value: Any, line: int) -> None:
    """Raise for a string that no API server would take: JSON can write half of a surrogate pair, UTF-8 cannot."""
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise DocumentError("a string holds half of a surrogate pair, which is no character", line) from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


class Locator:
    """Finds lines in a text that parses; composes it once, when first asked. For messages only."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def _nodes(self) -> list[Any]:
        try:
            return list(_compose(self._text))
        except DocumentError:
            return []

    def find_line(self, index: int, path: str) -> int:
        """The line of field `path` (`spec.http[1].route[0]`) in document `index`, or of what there is of it."""
        if index >= len(self._nodes):
            return 1
        node = self._nodes[index]
        line: int = node.start_mark.line + 1
        for name, bracket in _STEP.findall(path):
            found = _step(node, name or bracket)
            if found is None:
                break
            line, node = found
        return line


def _step(node: Any, name: str) -> tuple[int, Any] | None:
    if type(node) is MappingNode:
        for key, value in node.value:
            if key.value == name:
                return key.start_mark.line + 1, value
    elif type(node) is SequenceNode and name.isdigit() and int(name) < len(node.value):
        item = node.value[int(name)]
        return item.start_mark.line + 1, item
    return None
