"""Paths of policies with `{*}`, one segment, and `{**}`, any number of them.

Between a request's path and a template counts what Envoy's templates take: `{**}` also stands for nothing, but the
slashes around it must be there, and neither operator takes characters that a path should have escaped.
"""

import functools
import re

_LITERAL = r"[a-zA-Z0-9\-._~%!$&'()+,;:@=]"
_TAKEN = rf"(?:{_LITERAL}|\*)"
"""What operators take: also an asterisk, which a template itself cannot hold."""
_LONGEST = 256
_OPERATORS = {"{*}": f"{_TAKEN}+", "{**}": f"(?:{_TAKEN}|/)*"}


def is_template(value: str) -> bool:
    """Whether the value is meant as a template; braces alone make none."""
    return any(operator in value for operator in _OPERATORS)


def is_readable(value: str) -> bool:
    """Whether Envoy takes the template: whole segments, none of them empty, one `{**}` and it the last operator."""
    root, *segments = value.split("/")
    if root or not segments or len(value.replace("{*}", "*").replace("{**}", "**")) > _LONGEST:
        return False
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    after = segments[segments.index("{**}") + 1 :] if "{**}" in segments else []
    if any(segment in _OPERATORS for segment in after):
        return False
    return all(segment in _OPERATORS or re.fullmatch(f"{_LITERAL}+", segment) for segment in segments)


def is_path(value: str, path: str) -> bool:
    """Whether a path without query is what the template stands for."""
    return _expression(value).fullmatch(path) is not None


@functools.lru_cache(maxsize=1024)
def _expression(value: str) -> re.Pattern[str]:
    return re.compile("/".join(_OPERATORS.get(segment) or re.escape(segment) for segment in value.split("/")))
