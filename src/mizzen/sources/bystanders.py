"""What lies among manifests and is none: templates before they are rendered, texts of other kinds, binary files.

In: bytes, text that does not parse, plain data. Out: whether it claims to be an object all the same. What does is a
fault of its author's; what does not is passed over, and accounted for by commands that read whole trees.
"""

import re
from collections.abc import Mapping
from typing import Any

_DIRECTIVE = re.compile(r"^[ \t-]*(?:\{\{|\{%)|:[ \t]+\{\{", re.MULTILINE)
_CLAIM = re.compile(r"""^[ \t{,-]*["']?(?:apiVersion|kind)["']?[ \t]*:""", re.MULTILINE)
_CLAIM_BYTES = (b"apiVersion", "apiVersion".encode("utf-16-le"), "apiVersion".encode("utf-16-be"))
_MARK = "{{"


def is_template_text(text: str) -> bool:
    """Whether a text that does not parse has directives at the beginning of lines or of values."""
    return _DIRECTIVE.search(text) is not None


def is_template(raw: Mapping[str, Any]) -> bool:
    """Whether what names an object is still to be filled in."""
    metadata = raw.get("metadata")
    names = metadata if isinstance(metadata, Mapping) else {}
    return any(_MARK in str(text) for text in (raw.get("kind"), names.get("name"), names.get("namespace")))


def is_named_later(raw: Mapping[str, Any]) -> bool:
    """Whether the API server is to give the object its name."""
    metadata = raw.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("generateName")) and not metadata.get("name")


def text_claims(text: str) -> bool:
    """Whether a text that does not parse seems to hold an object."""
    return _CLAIM.search(text) is not None


def bytes_claim(content: bytes) -> bool:
    """Whether bytes that are no UTF-8 text seem to hold an object."""
    return any(claim in content for claim in _CLAIM_BYTES)
