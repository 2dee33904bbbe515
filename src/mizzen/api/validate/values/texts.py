"""Texts that are matched: exact, by prefix, by regular expression.

Expressions are RE2's, as Envoy compiles them.
"""

from functools import lru_cache

import re2

from mizzen.api.networking.virtual_service import StringMatch
from mizzen.api.validate.faults import Faults, at, error, quote

LONGEST_REGEX = 1024
_SYNTAX = "https://github.com/google/re2/wiki/Syntax"


@lru_cache(4096)
def syntax_fault(pattern: str) -> str | None:
    """Why RE2 does not compile a pattern."""
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as bad:
        reason = bad.args[0] if bad.args else ""
        return f"error parsing regexp: {reason.decode(errors='replace') if isinstance(reason, bytes) else reason}"
    except UnicodeError:
        return "error parsing regexp: invalid UTF-8"
    return None


def regex_fault(pattern: str, where: str) -> str | None:
    """What is wrong with a regular expression, in terms of what it is for."""
    if not pattern:
        return f"{quote(where)}: regex string match should not be empty"
    if len(pattern.encode(errors="replace")) > LONGEST_REGEX:
        return f"{quote(where)}: regex is too large, max length allowed is {LONGEST_REGEX}"
    fault = syntax_fault(pattern)
    return fault and f"{quote(where)}: {fault}; Istio uses RE2 style regex-based match ({_SYNTAX})"


def check_regex(match: StringMatch | None, where: str, path: str) -> Faults:
    """A match of which only a regular expression can be wrong; an empty prefix means everything."""
    if match is not None and match.regex is not None:
        yield from at(f"{path}.regex", regex_fault(match.regex, where))


def check_match(match: StringMatch | None, where: str, path: str) -> Faults:
    """A match whose prefix may not be empty either."""
    if match is not None and match.prefix == "":
        yield error(f"{path}.prefix", f"{quote(where)}: prefix string match should not be empty")
    yield from check_regex(match, where, path)
