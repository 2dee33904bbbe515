"""The page's files, and the headers under which everything of it is served.

In: files of this package, read once. Out: responses with an entity tag. The policy lets the page load its own two files
and ask its own server, nothing else: no inline script, no foreign host, no frame around it; and no text can become
markup, for nothing may be parsed as HTML by a script.
"""

import hashlib
import importlib.resources
from collections.abc import Mapping

from aiohttp import web

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every answer below `/ui`."""

_TYPES = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}


class Asset:
    """One file."""

    def __init__(self, name: str) -> None:
        self._body = importlib.resources.files("mizzen.control.ui").joinpath(name).read_bytes()
        self._type = _TYPES[name]
        self._tag = hashlib.blake2b(self._body, digest_size=12).hexdigest()

    async def answer(self, request: web.Request) -> web.Response:
        """The file, or that it is still the same."""
        headers = {**HEADERS, "Cache-Control": "no-cache", "ETag": f'"{self._tag}"'}
        known = request.if_none_match or ()
        if any(tag.value == self._tag for tag in known):
            return web.Response(status=304, headers=headers)
        return web.Response(body=self._body, content_type=self._type, charset="utf-8", headers=headers)


def load() -> Mapping[str, Asset]:
    """All files by name."""
    return {name: Asset(name) for name in _TYPES}
