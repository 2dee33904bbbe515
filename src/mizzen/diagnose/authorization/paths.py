"""The path of a request as Envoy hands it to policies.

In: the path as sent, and the mesh's `pathNormalization` (or a proxy's own settings). Out: a `SeenPath`. Envoy works in
this order: slashes that are percent-encoded, then dots, backslashes and needless escapes, then repeated slashes. Query
and fragment are left as they are.
"""

import re
from typing import Literal

import msgspec

EscapedSlashes = Literal["KEEP_UNCHANGED", "UNESCAPE_AND_FORWARD", "UNESCAPE_AND_REDIRECT", "REJECT_REQUEST"]
Fate = Literal["seen", "bad-path", "redirected-path"]

_ESCAPED_SLASH = re.compile("%2f|%5c", re.IGNORECASE)
_ONLY_SLASHES = "//"
"""What Envoy makes of a path of nothing but slashes when it merges them: two are left."""
_PIECE = re.compile(rb"%[0-9a-fA-F]{2}|.", re.DOTALL)
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = _UNRESERVED | frozenset(b"!$&'()*+,/:;=@[]%")


class Normalization(msgspec.Struct, frozen=True, kw_only=True):
    """What Envoy does to paths."""

    normalize: bool = True
    merge_slashes: bool = False
    escaped_slashes: EscapedSlashes = "KEEP_UNCHANGED"

    @classmethod
    def of_mesh(cls, option: str) -> "Normalization":
        """The `pathNormalization.normalization` of a mesh config."""
        decodes = option == "DECODE_AND_MERGE_SLASHES"
        return cls(
            normalize=option != "NONE",
            merge_slashes=decodes or option == "MERGE_SLASHES",
            escaped_slashes="UNESCAPE_AND_FORWARD" if decodes else "KEEP_UNCHANGED",
        )


class SeenPath(msgspec.Struct, frozen=True):
    """A path after all that; one that is `bad-path` or `redirected-path` reaches no policy."""

    text: str
    fate: Fate = "seen"


def normalize_path(path: str, how: Normalization) -> SeenPath:
    """The path as policies see it; one with a fragment, or that holds an encoded NUL, is refused."""
    if "#" in path:
        return SeenPath(path, "bad-path")
    path, mark, query = path.partition("?")
    if how.escaped_slashes != "KEEP_UNCHANGED" and _ESCAPED_SLASH.search(path):
        if how.escaped_slashes == "REJECT_REQUEST":
            return SeenPath(path + mark + query, "bad-path")
        path = _ESCAPED_SLASH.sub(lambda found: "/" if found[0] in ("%2f", "%2F") else "\\", path)
        if how.escaped_slashes == "UNESCAPE_AND_REDIRECT":
            return SeenPath(path + mark + query, "redirected-path")
    if how.normalize:
        pieces = [_unescape(piece) for piece in _PIECE.findall(path.encode())]
        if any(piece == b"%00" for piece in pieces):
            return SeenPath(path + mark + query, "bad-path")
        path = _without_dots(b"".join(pieces).decode())
    if how.merge_slashes:
        path = _ONLY_SLASHES if path.startswith(_ONLY_SLASHES) and not path.strip("/") else re.sub("//+", "/", path)
    return SeenPath(path + mark + query)


def _unescape(piece: bytes) -> bytes:
    """One character or escape: escapes of what needs none are undone, and what needs one gets it."""
    if len(piece) > 1:
        value = int(piece[1:], 16)
        return bytes((value,)) if value in _UNRESERVED else piece
    if piece == b"\\":
        return b"/"
    return piece if piece[0] in _PLAIN else b"%%%02X" % piece[0]


def _without_dots(path: str) -> str:
    """The path without `.` and `..`; what would climb above the root stays there."""
    *folders, last = path.split("/")
    found: list[str] = []
    for segment in (*folders, last):
        if segment == ".." and len(found) > 1:
            found.pop()
        if segment not in (".", ".."):
            found.append(segment)
    if last in (".", ".."):
        found.append("")
    return "/".join(found)
