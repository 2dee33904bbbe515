"""Expectations from what is now, written into the file that lacks them.

In: a file's text and what its tests saw. Out: the text with each test's `expect` replaced or added; all else, comments
too, stays as it is. What is recorded of a verdict is what a change of configuration would alter, and nothing that a
choice among equals decides.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from mizzen.diagnose.expectations.seen import Seen
from mizzen.diagnose.trace.verdict import NO_FLAG
from mizzen.errors import DecodeError

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_FORMATTER = re.compile(r"%[A-Z_0-9]+(\(.*?\))?(:\d+)?%")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "none"}


def record(seen: Seen) -> dict[str, Any]:
    """What the test expects from now on."""
    trace = seen.trace
    arrived, sent = seen.message, seen.sent
    found: dict[str, Any] = {
        "outcome": trace.outcome,
        "status": trace.status or None,
        "flag": trace.flag if trace.flag != NO_FLAG else None,
        **_whither(seen),
        "path": arrived.path if arrived and sent and arrived.path != sent.path else None,
        "host": arrived.authority if arrived and sent and arrived.authority != sent.authority else None,
        "request": _known(seen.changes) or None,
        "response": _known(seen.response) or None,
        "location": seen.location or None,
        "policy": seen.policy or None,
        "certain": False if trace.divides else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _known(headers: Mapping[str, str | None]) -> dict[str, str | None]:
    """Those whose values are known without a real request, as an address or a time is not."""
    return {name: value for name, value in headers.items() if value is None or not _FORMATTER.search(value)}


def _whither(seen: Seen) -> dict[str, Any]:
    if seen.target is not None:
        if len(seen.shares) > 1:
            split: dict[str, int] = {}
            for target, weight in seen.shares:
                split[str(target)] = split.get(str(target), 0) + weight
            return {"shares": split}
        return {"destination": seen.target.service, "subset": seen.target.subset or None}
    return {"destination": seen.workloads[0]} if seen.workloads else {}


def rewrite(text: str, found: Sequence[Seen | None]) -> str:
    """The file's text with these expectations; None leaves a test as it is. Raises DecodeError."""
    tests = _tests(text)
    edits = [_edit(text, test, record(seen)) for test, seen in zip(tests, found, strict=True) if seen is not None]
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _tests(text: str) -> list[yaml.MappingNode]:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    found = _value(root, "tests") if isinstance(root, yaml.MappingNode) else None
    tests = found.value if isinstance(found, yaml.SequenceNode) else []
    if not all(isinstance(test, yaml.MappingNode) for test in tests):
        raise DecodeError("tests are no list of maps")
    return list(tests)


def _value(node: yaml.MappingNode, name: str) -> yaml.Node | None:
    return next((value for key, value in node.value if key.value == name), None)


def _edit(text: str, test: yaml.MappingNode, expected: Mapping[str, Any]) -> tuple[int, int, str]:
    """Where the text changes, and to what."""
    flow = _flow(expected)
    old = next(((key, value) for key, value in test.value if key.value == "expect"), None)
    if old is not None:
        key, value = old
        return key.start_mark.index, _end(text, value), f"expect: {flow}"
    last = max(_end(text, value) for _, value in test.value)
    if test.flow_style:
        return last, last, f", expect: {flow}"
    rest = text[last:].partition("\n")[0]
    last += len(rest) if rest.lstrip().startswith("#") else 0
    first: Any = test.value[0][0].start_mark
    return last, last, f"\n{' ' * first.column}expect: {flow}"


def _end(text: str, node: yaml.Node) -> int:
    """Where the node's own text ends; a block's mark lies behind the blank lines that follow it."""
    end: int = node.end_mark.index
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(text, node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(text, node.value[-1])
    return len(text[:end].rstrip()) if end > node.start_mark.index else end


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(name))}: {_flow(item)}" for name, item in value.items()) + "}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    """A scalar that stays a text wherever it stands."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return yaml.safe_dump(text, default_style='"', width=2**20, allow_unicode=True).strip()
