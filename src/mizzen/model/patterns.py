"""Patterns: texts as regular expressions of RE2, which Envoy reads."""

_META = frozenset("\\.+*?()|[]{}^$")


def quote(text: str) -> str:
    """The text as a regular expression that matches just it; only what has a meaning is escaped."""
    return "".join(f"\\{c}" if c in _META else c for c in text)
