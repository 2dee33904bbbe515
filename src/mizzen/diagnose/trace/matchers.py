"""Envoy's matchers: strings, headers, query parameters, values of metadata, fractions and paths.

In: a matcher as protobuf JSON, and what it is held against. Out: yes or no; where a fraction decides, how much of it.
Regular expressions are RE2's and must match the whole text, as Envoy has it.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import re2

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace.request import Message

_DENOMINATORS = {"HUNDRED": 100, "TEN_THOUSAND": 10_000, "MILLION": 1_000_000}


@functools.lru_cache(maxsize=4096)
def _compile(expression: str) -> Any:
    return re2.compile(expression)


def full_match(expression: str, text: str) -> bool:
    """Whether the whole text matches; an expression that RE2 does not take matches nothing."""
    try:
        return _compile(expression).fullmatch(text) is not None
    except re2.error:
        return False


def match_string(matcher: Json, text: str) -> bool:
    """StringMatcher. `ignoreCase` has no effect on regular expressions."""
    folds = matcher.get("ignoreCase") is True
    own = text.lower() if folds else text
    for name, holds in _STRING_FORMS.items():
        wanted = matcher.get(name)
        if isinstance(wanted, str):
            return holds(own, wanted.lower() if folds else wanted)
    expression = dump.field(matcher, "safe_regex", "regex")
    return isinstance(expression, str) and full_match(expression, text)


_STRING_FORMS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda text, wanted: text == wanted,
    "prefix": lambda text, wanted: text.startswith(wanted),
    "suffix": lambda text, wanted: text.endswith(wanted),
    "contains": lambda text, wanted: wanted in text,
}


def describe_string(matcher: Json) -> str:
    """The matcher in few words."""
    for name in _STRING_FORMS:
        if isinstance(matcher.get(name), str):
            return f"{name} {matcher[name]!r}"
    expression = dump.text(matcher, "safe_regex", "regex")
    return f"regex {expression!r}" if expression else "anything"


_LEGACY_HEADERS = {
    "exactMatch": "exact",
    "prefixMatch": "prefix",
    "suffixMatch": "suffix",
    "containsMatch": "contains",
}


def match_header(matcher: Json, message: Message) -> bool:
    """HeaderMatcher: presence, strings, ranges and their inversion.

    A missing header fails every value, inverted or not, unless it is to be treated as empty.
    """
    inverted = matcher.get("invertMatch") is True
    value = message.header(dump.text(matcher, "name"))
    if isinstance(matcher.get("presentMatch"), bool):
        return ((value is not None) is bool(matcher["presentMatch"])) is not inverted
    if value is None:
        if matcher.get("treatMissingHeaderAsEmpty") is not True:
            return False
        value = ""
    return _match_value(matcher, value) != inverted


def _match_value(matcher: Json, value: str) -> bool:
    if "stringMatch" in matcher:
        return match_string(dump.message(matcher, "string_match"), value)
    for field, form in _LEGACY_HEADERS.items():
        if field in matcher:
            return match_string({form: matcher[field]}, value)
    if "safeRegexMatch" in matcher:
        return full_match(dump.text(matcher, "safe_regex_match", "regex"), value)
    if "rangeMatch" in matcher:
        start, end = dump.number(matcher, "range_match", "start"), dump.number(matcher, "range_match", "end")
        return value.lstrip("-").isdigit() and start <= int(value) < end
    return True


def describe_header(matcher: Json) -> str:
    """The condition in few words."""
    name = dump.text(matcher, "name")
    negation = "not " if matcher.get("invertMatch") is True else ""
    if isinstance(matcher.get("presentMatch"), bool):
        return f"{negation}header {name} {'is present' if matcher['presentMatch'] else 'is absent'}"
    if "stringMatch" in matcher:
        return f"{negation}header {name} {describe_string(dump.message(matcher, 'string_match'))}"
    for field, form in _LEGACY_HEADERS.items():
        if field in matcher:
            return f"{negation}header {name} {form} {matcher[field]!r}"
    expression = dump.text(matcher, "safe_regex_match", "regex")
    return f"{negation}header {name} " + (f"regex {expression!r}" if expression else "has any value")


def match_parameter(matcher: Json, message: Message) -> bool:
    """QueryParameterMatcher: Envoy looks at the first value of the name."""
    name = dump.text(matcher, "name")
    value = next((v for key, v in message.query if key == name), None)
    if "presentMatch" in matcher:
        return (value is not None) == bool(matcher["presentMatch"])
    if value is None:
        return False
    return match_string(dump.message(matcher, "string_match"), value) if "stringMatch" in matcher else True


def match_metadata(matcher: Json, metadata: Mapping[str, Any]) -> bool:
    """MetadataMatcher, over the dynamic metadata that filters left."""
    value: Any = metadata.get(dump.text(matcher, "filter"))
    for segment in dump.items(matcher, "path"):
        value = value.get(dump.text(segment, "key")) if isinstance(value, Mapping) else None
    return match_value(dump.message(matcher, "value"), value) != (matcher.get("invert") is True)


def match_value(matcher: Json, value: Any) -> bool:
    """ValueMatcher."""
    if "presentMatch" in matcher:
        return (value is not None) == bool(matcher["presentMatch"])
    if "orMatch" in matcher:
        return any(match_value(each, value) for each in dump.items(matcher, "or_match", "value_matchers"))
    if "stringMatch" in matcher:
        return isinstance(value, str) and match_string(dump.message(matcher, "string_match"), value)
    if "listMatch" in matcher:
        one = dump.message(matcher, "list_match", "one_of")
        return isinstance(value, list) and any(match_value(one, each) for each in value)
    if "boolMatch" in matcher:
        return value is matcher["boolMatch"]
    if "doubleMatch" in matcher:
        exact = dump.field(matcher, "double_match", "exact")
        return isinstance(value, int | float) and not isinstance(value, bool) and bool(value == exact)
    return "nullMatch" in matcher and value is None


def share(fraction: Json) -> float:
    """A FractionalPercent as a part of one."""
    whole = _DENOMINATORS.get(dump.text(fraction, "denominator") or "HUNDRED", 100)
    return min(dump.number(fraction, "numerator") / whole, 1.0)


def match_template(template: str, path: str) -> bool:
    """A path template: `*` is one segment, `**` any number of them, `{name}` and `{name=pattern}` capture."""
    return full_match(_template_expression(template), path)


@functools.lru_cache(maxsize=1024)
def _template_expression(template: str) -> str:
    parts: list[str] = []
    for segment in template.split("/"):
        inner = segment
        suffix = ""
        if segment.startswith("{") and "}" in segment:
            body, _, suffix = segment[1:].partition("}")
            inner = body.partition("=")[2] or "*"
        parts.append({"*": "[^/]+", "**": ".*"}.get(inner, re2.escape(inner)) + re2.escape(suffix))
    return "/".join(parts)
