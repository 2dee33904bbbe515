"""Patterns: texts as regular expressions of RE2, which Envoy reads, and whether Envoy takes one."""

import functools
import re

import re2

_LARGEST_PROGRAM = 32768
"""Instructions of an expression; the bootstraps of sidecars and gateways let Envoy compile as many, and no more."""
UNSPEAKABLE = re.compile(r"[\x00\r\n]")
"""Characters that Envoy refuses in headers, names of hosts and what else it reads from one line."""
_META = frozenset("\\.+*?()|[]{}^$")


def quote(text: str) -> str:
    """The text as a regular expression that matches just it; only what has a meaning is escaped."""
    return "".join(f"\\{c}" if c in _META else c for c in text)


@functools.lru_cache(maxsize=4096)
def is_expression(text: str) -> bool:
    """Whether Envoy takes the text for an expression; it compiles its bytes, each as a character."""
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    try:
        size: int = re2.compile(text.encode(), options).programsize
    except (re2.error, UnicodeEncodeError):
        return False
    return size <= _LARGEST_PROGRAM
