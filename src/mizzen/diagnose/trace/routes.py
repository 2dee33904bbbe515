"""Which route of a virtual host a request meets, and why not those before it.

In: a virtual host's routes, a message, metadata that filters left. Out: `Selected`: the route, what was passed over
with the condition that failed, and routes that only a share of requests takes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import matchers
from mizzen.diagnose.trace.request import Message

_SHOWN = 12


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the search."""

    route: Json | None
    index: int = -1
    passed_over: tuple[str, ...] = ()
    partial: tuple[tuple[Json, float], ...] = ()
    """Routes before this one that take a share of the requests only."""


def select(host: Json, message: Message, metadata: Mapping[str, Any], *, is_tls: bool) -> Selected:
    """The first route that matches."""
    passed: list[str] = []
    partial: list[tuple[Json, float]] = []
    for index, route in enumerate(dump.items(host, "routes")):
        match = dump.message(route, "match")
        failed = mismatch(match, message, metadata, is_tls=is_tls)
        if failed:
            passed.append(f"{describe(route, index)}: {failed}")
            continue
        part = _fraction(match)
        if part < 1.0:
            if part > 0:
                partial.append((route, part))
            passed.append(f"{describe(route, index)}: takes {part:.4g} of the requests")
            continue
        return Selected(route=route, index=index, passed_over=_short(passed), partial=tuple(partial))
    return Selected(route=None, passed_over=_short(passed), partial=tuple(partial))


def _short(passed: list[str]) -> tuple[str, ...]:
    if len(passed) <= _SHOWN:
        return tuple(passed)
    return (*passed[:_SHOWN], f"and {len(passed) - _SHOWN} more")


def mismatch(match: Json, message: Message, metadata: Mapping[str, Any], *, is_tls: bool) -> str:
    """The first condition that the request does not meet, in words; empty where all hold."""
    path = _path_mismatch(match, message)
    return path or next(_other_mismatches(match, message, metadata, is_tls), "")


def _path_mismatch(match: Json, message: Message) -> str:
    if "connectMatcher" in match:
        return "" if message.method == "CONNECT" else "takes CONNECT only"
    if message.method == "CONNECT" and not message.path.startswith("/"):
        return "does not take CONNECT"
    folds = dump.field(match, "case_sensitive") is False
    path = message.url_path
    own = path.lower() if folds else path

    def fold(text: str) -> str:
        return text.lower() if folds else text

    if "prefix" in match:
        prefix = match["prefix"]
        return "" if own.startswith(fold(prefix)) else f"path {path!r} does not start with {prefix!r}"
    if "path" in match:
        return "" if own == fold(match["path"]) else f"path {path!r} is not {match['path']!r}"
    if "pathSeparatedPrefix" in match:
        wanted = fold(match["pathSeparatedPrefix"])
        holds = own == wanted or own.startswith(f"{wanted}/")
        return "" if holds else f"path {path!r} is not below {match['pathSeparatedPrefix']!r}"
    if "safeRegex" in match:
        expression = dump.text(match, "safe_regex", "regex")
        return "" if matchers.full_match(expression, path) else f"path {path!r} does not match {expression!r}"
    template = dump.text(match, "path_match_policy", "typed_config", "path_template")
    if template:
        return "" if matchers.match_template(template, path) else f"path {path!r} does not match {template!r}"
    return ""


def _other_mismatches(match: Json, message: Message, metadata: Mapping[str, Any], is_tls: bool) -> Iterator[str]:
    for header in dump.items(match, "headers"):
        if not matchers.match_header(header, message):
            yield f"wants {matchers.describe_header(header)}, has {_has(message, dump.text(header, 'name'))}"
    for parameter in dump.items(match, "query_parameters"):
        if not matchers.match_parameter(parameter, message):
            condition = matchers.describe_string(dump.message(parameter, "string_match"))
            yield f"wants query parameter {dump.text(parameter, 'name')} {condition}"
    if "grpc" in match and not (message.header("content-type") or "").startswith("application/grpc"):
        yield "takes gRPC only"
    wants_tls = dump.field(match, "tls_context", "presented")
    if isinstance(wants_tls, bool) and wants_tls != is_tls:
        yield f"wants a client certificate to be {'presented' if wants_tls else 'absent'}"
    for wanted in dump.items(match, "dynamic_metadata"):
        if not matchers.match_metadata(wanted, metadata):
            keys = ".".join(dump.text(segment, "key") for segment in dump.items(wanted, "path"))
            yield f"wants metadata {dump.text(wanted, 'filter')} {keys}"


def _has(message: Message, name: str) -> str:
    value = message.header(name)
    return "none" if value is None else repr(value)


def _fraction(match: Json) -> float:
    fraction = dump.message(match, "runtime_fraction", "default_value")
    return matchers.share(fraction) if "runtimeFraction" in match else 1.0


def describe(route: Json, index: int) -> str:
    """A route by its place, its name and its path."""
    match = dump.message(route, "match")
    forms = (
        ("prefix", "{}*"),
        ("path", "={}"),
        ("path_separated_prefix", "{}/*"),
        ("safe_regex", "~{}"),
    )
    path = next((form.format(_text(match, name)) for name, form in forms if _text(match, name)), "")
    name = dump.text(route, "name")
    return f"#{index}" + (f" {name}" if name else "") + (f" {path}" if path else "")


def _text(match: Json, name: str) -> str:
    return dump.text(match, name, "regex") if name == "safe_regex" else dump.text(match, name)
