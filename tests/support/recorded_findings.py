"""Findings of the reference's analyzer, which it made on live objects: code, level, origin and message."""

import functools
import json
from collections import Counter

import golden

Row = tuple[str, str, str, str]


def recorded_findings(name: str) -> Counter[Row]:
    """Those of a case, or of `base`."""
    if name == "base":
        return _base()
    change = json.loads((golden.CORPUS / f"{name}.expected" / "analyze.json").read_text())
    return _base() + Counter(map(_row, change["added"])) - Counter(map(_row, change["gone"]))


@functools.cache
def _base() -> Counter[Row]:
    return Counter(map(_row, json.loads((golden.CORPUS / "base" / "analyze.json").read_text())))


def _row(finding: dict[str, str]) -> Row:
    return finding["code"], finding["level"], finding["origin"], finding["message"]
