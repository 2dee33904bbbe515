"""Rules as a VirtualService: for hosts with regular expressions or prefixes of texts."""

from collections.abc import Sequence
from typing import Any

from mizzen.migrate.rules import Header, Path, Rule
from mizzen.migrate.servers import Backend
from mizzen.migrate.settings import Changes, Cors, Redirect, Retry, Settings
from mizzen.migrate.writing.documents import ISTIO_NETWORKING, Document, Target, document
from mizzen.model.names import service_host

_CONDITIONS = {"exact": "exact", "text": "prefix", "regex": "regex"}
_RETRY_ON = "connect-failure,refused-stream"


def virtual_service(
    name: str, target: Target, hosts: Sequence[str], gateway: str, rules: Sequence[Rule]
) -> Document:  # fmt: skip
    """The VirtualService of some hosts on an Istio Gateway."""
    spec = {
        "hosts": [host or "*" for host in hosts],
        "gateways": [f"{target.namespace}/{gateway}"],
        "http": [_rule(rule, target.domain) for rule in rules],
    }
    return document(ISTIO_NETWORKING, "VirtualService", target.namespace, name, spec)


def _rule(rule: Rule, domain: str) -> dict[str, Any]:
    written: dict[str, Any] = {"match": [_match(rule)]}
    if rule.redirect is not None:
        return {**written, "redirect": _redirect(rule.redirect)}
    settings = rule.settings
    if not rule.backends:
        return {**written, "directResponse": {"status": 503}}
    written["route"] = [_destination(to, weight, len(rule.backends), domain) for to, weight in rule.backends]
    rewrite: dict[str, Any] = {}
    if rule.rewrite is not None:
        rewrite["uriRegexRewrite"] = {"match": rule.rewrite.pattern, "rewrite": rule.rewrite.substitution}
    if settings.backend_host:
        rewrite["authority"] = settings.backend_host
    if rewrite:
        written["rewrite"] = rewrite
    return {**written, **_extras(settings, domain)}


def _extras(settings: Settings, domain: str) -> dict[str, Any]:
    """What does not depend on the path."""
    extras: dict[str, Any] = {}
    headers = {
        side: _changes(changes)
        for side, changes in (("request", settings.request_headers), ("response", settings.response_headers))
        if changes
    }
    if headers:
        extras["headers"] = headers
    if settings.cors is not None:
        extras["corsPolicy"] = _cors(settings.cors)
    if settings.timeout_seconds:
        extras["timeout"] = f"{settings.timeout_seconds}s"
    if settings.retry is not None:
        extras["retries"] = _retry(settings.retry)
    if settings.mirror is not None:
        namespace, name, port = settings.mirror
        host = service_host(name, namespace, domain)
        extras["mirrors"] = [{"destination": {"host": host, "port": {"number": port}}}]
    return extras


def _match(rule: Rule) -> dict[str, Any]:
    match: dict[str, Any] = {"uri": _condition(rule.path)}
    if rule.headers:
        match["headers"] = {header.name: _header(header) for header in rule.headers}
    return match


def _condition(path: Path) -> dict[str, str]:
    return {_CONDITIONS[path.kind]: path.text}


def _header(header: Header) -> dict[str, str]:
    return {"regex" if header.is_pattern else "exact": header.value}


def _destination(to: Backend, weight: int, several: int, domain: str) -> dict[str, Any]:
    host = service_host(to.service, to.namespace, domain)
    written: dict[str, Any] = {"destination": {"host": host, "port": {"number": to.port}}}
    if several > 1:
        written["weight"] = weight
    return written


def _redirect(redirect: Redirect) -> dict[str, Any]:
    written: dict[str, Any] = {"redirectCode": redirect.code}
    if redirect.scheme:
        written["scheme"] = redirect.scheme
    if redirect.host:
        written["authority"] = redirect.host
    if redirect.port:
        written["port"] = redirect.port
    if redirect.path:
        written["uri"] = redirect.path
    return written


def _changes(changes: Changes) -> dict[str, Any]:
    parts: dict[str, Any] = {"set": dict(changes.set), "add": dict(changes.add), "remove": list(changes.remove)}
    return {name: part for name, part in parts.items() if part}


def _retry(retry: Retry) -> dict[str, Any]:
    if not retry.attempts:
        return {"attempts": 0}
    return {"attempts": retry.attempts, "retryOn": ",".join((_RETRY_ON, *(str(code) for code in retry.codes)))}


def _cors(cors: Cors) -> dict[str, Any]:
    written: dict[str, Any] = {
        "allowOrigins": [_origin(origin) for origin in cors.origins],
        "allowMethods": list(cors.methods),
        "allowHeaders": list(cors.headers),
        "exposeHeaders": list(cors.exposed),
        "maxAge": f"{cors.max_age}s" if cors.max_age else "",
    }
    kept = {name: part for name, part in written.items() if part}
    return {**kept, "allowCredentials": cors.credentials, "unmatchedPreflights": "IGNORE"}


def _origin(origin: str) -> dict[str, str]:
    if origin == "*":
        return {"regex": ".*"}
    if "*" not in origin:
        return {"exact": origin}
    scheme, _, host = origin.partition("://*.")
    return {"regex": f"{scheme}://[^/.:]+\\.{host.replace('.', chr(92) + '.')}"}
