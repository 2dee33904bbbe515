"""Text for a person or a program: aligned tables, JSON and YAML.

In: `Table`s and plain values. Out: text. Tables follow the elastic tab stops of Go's tabwriter byte for byte: a cell
that is not the last of its line is padded to the longest cell of its column; a column ends at a line that lacks it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from mizzen.diagnose.table import Table

_BOOLEANS = frozenset("yYnN")
"""Plain texts that Kubernetes reads as booleans and YAML 1.2 does not."""


def render_table(table: Table) -> str:
    """The table as lines, each closed by a newline; an empty last cell leaves the padding before it in place."""
    lines = table.lines()
    widths = _column_widths(lines, table.padding, table.min_width)
    return "".join(_line(cells, widths[i]) for i, cells in enumerate(lines))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
    return "".join((*padded, *cells[-1:])) + "\n"


def _column_widths(lines: Sequence[Sequence[str]], padding: int, min_width: int) -> list[list[int]]:
    """For each line, the widths of all its cells but the last; a width holds for a run of lines that have the cell."""
    widths: list[list[int]] = [[0] * max(len(cells) - 1, 0) for cells in lines]
    for column in range(max((len(w) for w in widths), default=0)):
        run: list[int] = []
        for index in range(len(lines) + 1):
            if index < len(lines) and len(widths[index]) > column:
                run.append(index)
                continue
            width = max((len(lines[i][column]) + padding for i in run), default=0)
            for i in run:
                widths[i][column] = max(width, min_width)
            run.clear()
    return widths


def render_json(value: Any, indent: int = 4) -> str:
    """The value as JSON, non-ASCII text as it is."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=indent).decode() + "\n"


def render_yaml(value: Any) -> str:
    """The value as one YAML document, keys sorted, long lines unbroken."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=True, allow_unicode=True, width=1 << 30)
    return text


def render_as(output: str, value: Any, indent: int = 4) -> str:
    """The value as YAML where `output` is `yaml`, else as JSON."""
    return render_yaml(value) if output == "yaml" else render_json(value, indent)


def render_documents(output: str, documents: Sequence[Any]) -> str:
    """Manifests for kubectl: as one List where `output` is `json`, else as documents of YAML."""
    if output == "json":
        return render_json({"apiVersion": "v1", "kind": "List", "items": documents}, indent=2)
    return "---\n".join(render_document(document) for document in documents)


def render_document(document: Any) -> str:
    """One document as YAML that Kubernetes reads back as the same values."""
    import yaml

    dumped: str = yaml.dump(document, Dumper=_dumper(), sort_keys=True, allow_unicode=True, width=1 << 30)
    return dumped


@cache
def _dumper() -> Any:
    """PyYAML's, but it quotes every string that Kubernetes would read as a number, a boolean or nothing."""
    import yaml

    from mizzen.sources.scalars import resolve_plain

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # either is a class
        def ignore_aliases(self, _data: Any) -> bool:
            return True

    def represent(dumper: Any, text: str) -> Any:
        plain = text not in _BOOLEANS and isinstance(resolve_plain(text), str)
        style = ("|" if "\n" in text else None) if plain else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represent)
    return Dumper
