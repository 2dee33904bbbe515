"""Rules: what happens to the requests of a server, by scheme, in order.

In: a `Server`. Out: `Rule`s, the first that fits a request taking it. A server whose paths are exact ones and prefixes
by element is `is_native`: its rules may stand in HTTPRoutes, which sort them as nginx does. Otherwise paths are spelled
out, as nginx tries them: exact ones, then prefixes of texts, the longest first; or regular expressions in their order.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
import re2

from mizzen.migrate.expressions import is_re2, path_pattern, rewrite_pattern
from mizzen.migrate.findings import Notes
from mizzen.migrate.servers import Backend, Location, Server
from mizzen.migrate.settings import Canary, Redirect, Retry, Settings

Scheme = Literal["http", "https"]

_TO_HTTPS = Redirect(code=308, scheme="https")
_CAPTURE = re.compile(r"\$\{?(\d)\}?")


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on the path: all of it, its first elements, its beginning, or a regular expression of all of it."""

    kind: Literal["exact", "elements", "text", "regex"]
    text: str


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on a header; a pattern is for all of its value."""

    name: str
    value: str
    is_pattern: bool = False


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """A new path: a regular expression of the old one, and what takes its place."""

    pattern: str
    substitution: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to some requests."""

    namespace: str
    """Of the Ingress."""
    path: Path
    headers: tuple[Header, ...] = ()
    redirect: Redirect | None = None
    backends: tuple[tuple[Backend, int], ...] = ()
    """With their weights; without any the answer is an error."""
    rewrite: Rewrite | None = None
    settings: Settings = Settings()


def is_native(server: Server) -> bool:
    """Whether HTTPRoutes can hold the rules of a server: these know no prefix of texts, and always try again."""
    return not server.is_regex and not any(
        _is_text_prefix(one) or one.settings.retry == Retry(attempts=0) for one in server.locations
    )


def _is_text_prefix(location: Location) -> bool:
    return location.type == "ImplementationSpecific" and not location.path.endswith("/")


def build_rules(server: Server, scheme: Scheme, notes: Notes) -> tuple[Rule, ...]:
    """The rules of a server for requests that come by this scheme."""
    root = _app_root(server)
    if server.is_regex:
        return (*root, *_regex_rules(server, scheme, notes))
    listed = [*root, *_native_rules(server, scheme)]
    return tuple(listed) if is_native(server) else tuple(_spelled_out(listed))


def _app_root(server: Server) -> tuple[Rule, ...]:
    if not server.app_root:
        return ()
    namespace = server.locations[0].ingress.namespace
    moved = Redirect(code=302, path=server.app_root)
    return (Rule(namespace=namespace, path=Path(kind="exact", text="/"), redirect=moved),)


# -- paths ------------------------------------------------------------------------------------------------------------


def fold_redirects(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """One rule for all paths where every rule leads to HTTPS and one of them is for all paths."""
    whole = next((rule for rule in rules if rule.path == Path(kind="elements", text="/")), None)
    if whole is not None and all(rule.redirect == _TO_HTTPS for rule in rules):
        return (whole,)
    return rules


def _native_rules(server: Server, scheme: Scheme) -> Iterator[Rule]:
    """Exact paths, prefixes by element, and (for `ImplementationSpecific`) prefixes of texts."""
    whole = {one.path for one in server.locations if one.type != "ImplementationSpecific"}
    for location in server.locations:
        bare = location.path.rstrip("/")
        if bare not in ("", location.path, *whole):
            moved = Redirect(code=301, path=location.path)
            yield Rule(namespace=location.ingress.namespace, path=Path(kind="exact", text=bare), redirect=moved)
        if location.type == "Exact":
            path = Path(kind="exact", text=location.path)
        elif _is_text_prefix(location):
            path = Path(kind="text", text=location.path)
        else:
            path = Path(kind="elements", text=bare or "/")
        yield from _outcomes(location, path, server, scheme)


def _spelled_out(rules: list[Rule]) -> Iterator[Rule]:
    """The rules in nginx's order, a prefix by element as the path itself and the prefix of what is below it."""
    exact = {rule.path.text for rule in rules if rule.path.kind == "exact"}
    whole: list[Rule] = []
    prefixes: list[Rule] = []
    for rule in rules:
        path = rule.path
        if path.kind == "exact":
            whole.append(rule)
        elif path.kind == "text" or path.text == "/":
            prefixes.append(_at(rule, "text", path.text))
        else:
            prefixes.append(_at(rule, "text", f"{path.text}/"))
            if path.text not in exact:
                whole.append(_at(rule, "exact", path.text))
    yield from whole
    yield from sorted(prefixes, key=lambda rule: len(rule.path.text), reverse=True)


def _at(rule: Rule, kind: Literal["exact", "text"], text: str) -> Rule:
    return msgspec.structs.replace(rule, path=Path(kind=kind, text=text))


def _regex_rules(server: Server, scheme: Scheme, notes: Notes) -> Iterator[Rule]:
    for location in server.locations:
        pattern = path_pattern(location.path)
        if not is_re2(pattern):
            how = "its regular expression is none of RE2, which has no look-around and no back references"
            notes.add(location.ingress, f"path {location.path}", "impossible", how)
            continue
        yield from _outcomes(location, Path(kind="regex", text=pattern), server, scheme)


def _rewrite(location: Location) -> Rewrite | None:
    if not location.is_rewritten:
        return None
    pattern = rewrite_pattern(location.path)
    groups = re2.compile(pattern).groups

    def group(found: re.Match[str]) -> str:
        return f"\\{found[1]}" if int(found[1]) <= groups else ""

    escaped = location.settings.rewrite_target.replace("\\", "\\\\")
    return Rewrite(pattern=pattern, substitution=_CAPTURE.sub(group, escaped))


# -- what happens -----------------------------------------------------------------------------------------------------


def _outcomes(location: Location, path: Path, server: Server, scheme: Scheme) -> Iterator[Rule]:
    settings = location.settings
    rule = Rule(namespace=location.ingress.namespace, path=path, settings=settings)
    if settings.redirect is not None:
        yield msgspec.structs.replace(rule, redirect=settings.redirect)
    elif scheme == "http" and _leads_to_https(server, settings):
        yield msgspec.structs.replace(rule, redirect=_TO_HTTPS)
    else:
        forwarded = msgspec.structs.replace(rule, rewrite=_rewrite(location))
        yield from _forwards(forwarded, location)


def _leads_to_https(server: Server, settings: Settings) -> bool:
    return settings.force_ssl_redirect or (settings.ssl_redirect and server.certificate is not None)


def _forwards(rule: Rule, location: Location) -> Iterator[Rule]:
    """The rules of a location with its canary's: header, then cookie, then the share of the rest."""
    main = ((location.backend, 1),) if location.backend is not None else ()
    if location.canary is None or location.backend is None:
        yield msgspec.structs.replace(rule, backends=main)
        return
    canary, other = location.canary
    for header, chosen in _choices(canary):
        backends = ((other, 1),) if chosen else main
        yield msgspec.structs.replace(rule, headers=(header,), backends=backends)
    shares = ((location.backend, canary.total - canary.weight), (other, canary.weight))
    yield msgspec.structs.replace(rule, backends=tuple((to, weight) for to, weight in shares if weight))


def _choices(canary: Canary) -> Iterator[tuple[Header, bool]]:
    """The conditions that decide for or against the canary, in order."""
    if canary.header_value:
        yield Header(name=canary.header, value=canary.header_value), True
    elif canary.header_pattern:
        yield Header(name=canary.header, value=f".*(?:{canary.header_pattern}).*", is_pattern=True), True
    elif canary.header:
        yield Header(name=canary.header, value="always"), True
        yield Header(name=canary.header, value="never"), False
    if canary.cookie:
        for value, chosen in (("always", True), ("never", False)):
            pattern = rf"(?:.*;\s*)?{re.escape(canary.cookie)}={value}(?:\s*;.*)?"
            yield Header(name="cookie", value=pattern, is_pattern=True), chosen
