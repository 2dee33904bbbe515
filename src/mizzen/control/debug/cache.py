"""cachez: the responses that are kept for whoever needs the same.

In: `xds.responses.Responses`. Out: the names of the resources in them, or their sizes, by type. What is dropped here is
worked out again by who next needs it; proxies notice nothing.
"""

from mizzen.control.debug.console import Page, Pages, Query, Write, text
from mizzen.xds.responses import Responses

_UNITS = ("kB", "MB", "GB", "TB")


def pages(responses: Responses) -> Pages:
    """The page about the cache."""

    def read(query: Query) -> Write:
        if query.is_true("clear"):
            responses.clear()
            return lambda: text("Cache cleared")
        kept = responses.kept()
        if query.is_true("sizes"):
            sizes = {type_url: each.size for type_url, each in kept.items()}
            written = {type_url: format_size(size) for type_url, size in sizes.items()}
            return lambda: {**written, "total": format_size(sum(sizes.values()))}
        return lambda: {type_url: sorted(each.names) for type_url, each in kept.items()}

    return {"cachez": Page("Resources kept encoded, by type; sizes=true, clear=true.", read)}


def format_size(size: int) -> str:
    """`999B`, `1.2kB`, `3.4MB`: thousands with one digit after the point."""
    if size < 1000:
        return f"{size}B"
    power = next((p for p in range(1, len(_UNITS)) if size < 1000 ** (p + 1)), len(_UNITS))
    return f"{size / 1000**power:.1f}{_UNITS[power - 1]}"
