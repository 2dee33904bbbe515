"""Rules as HTTPRoutes: one for each namespace of backends, host and way in; many rules make several objects."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mizzen.migrate.rules import Header, Path, Rule
from mizzen.migrate.servers import Backend
from mizzen.migrate.settings import Changes, Cors, Redirect, Retry, Settings
from mizzen.migrate.writing.documents import GATEWAY_API, Document, document

_MOST_RULES = 16


def http_routes(
    name: str, namespace: str, hosts: Sequence[str], parents: Sequence[Mapping[str, Any]], rules: Sequence[Rule]
) -> Iterator[Document]:
    """The routes of some hosts; rules that would be too many for one object stand in several."""
    head = {"parentRefs": [dict(parent) for parent in parents], "hostnames": [host for host in hosts if host]}
    for part, listed in enumerate(_batches(rules)):
        spec = {**head, "rules": [_rule(rule, namespace) for rule in listed]}
        if not spec["hostnames"]:
            spec.pop("hostnames")
        yield document(GATEWAY_API, "HTTPRoute", namespace, name if not part else f"{name}-{part + 1}", spec)


def _batches(rules: Sequence[Rule]) -> Iterator[Sequence[Rule]]:
    """Rules of one path stay together, since their order counts within one object only."""
    batch: list[Rule] = []
    for group in _by_path(rules):
        if batch and len(batch) + len(group) > _MOST_RULES:
            yield batch
            batch = []
        batch += group
    if batch:
        yield batch


def _by_path(rules: Iterable[Rule]) -> Iterator[list[Rule]]:
    groups: dict[Path, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.path, []).append(rule)
    return iter(groups.values())


def _rule(rule: Rule, namespace: str) -> dict[str, Any]:
    written: dict[str, Any] = {"matches": [_match(rule)]}
    filters = list(_filters(rule))
    if filters:
        written["filters"] = filters
    if rule.redirect is not None:
        return written
    if rule.settings.timeout_seconds:
        written["timeouts"] = {"request": f"{rule.settings.timeout_seconds}s"}
    if rule.settings.retry is not None:
        written["retry"] = _retry(rule.settings.retry)
    if rule.backends:
        written["backendRefs"] = [_backend(to, weight, len(rule.backends), namespace) for to, weight in rule.backends]
    return written


def _match(rule: Rule) -> dict[str, Any]:
    kind = "Exact" if rule.path.kind == "exact" else "PathPrefix"
    match: dict[str, Any] = {"path": {"type": kind, "value": rule.path.text}}
    if rule.headers:
        match["headers"] = [_header(header) for header in rule.headers]
    return match


def _header(header: Header) -> dict[str, str]:
    return {
        "type": "RegularExpression" if header.is_pattern else "Exact",
        "name": header.name,
        "value": header.value,
    }


def _backend(to: Backend, weight: int, several: int, namespace: str) -> dict[str, Any]:
    reference: dict[str, Any] = {"name": to.service, "port": to.port}
    if to.namespace != namespace:
        reference["namespace"] = to.namespace
    if several > 1:
        reference["weight"] = weight
    return reference


def _retry(retry: Retry) -> dict[str, Any]:
    return {"attempts": retry.attempts, **({"codes": list(retry.codes)} if retry.codes else {})}


# -- filters ----------------------------------------------------------------------------------------------------------


def _filters(rule: Rule) -> Iterator[dict[str, Any]]:
    if rule.redirect is not None:
        yield {"type": "RequestRedirect", "requestRedirect": _redirect(rule.redirect)}
        return
    settings = rule.settings
    if settings.request_headers:
        yield {"type": "RequestHeaderModifier", "requestHeaderModifier": _changes(settings.request_headers)}
    if settings.response_headers:
        yield {"type": "ResponseHeaderModifier", "responseHeaderModifier": _changes(settings.response_headers)}
    if settings.backend_host:
        yield {"type": "URLRewrite", "urlRewrite": {"hostname": settings.backend_host}}
    if settings.cors is not None:
        yield {"type": "CORS", "cors": _cors(settings.cors)}
    if settings.mirror is not None:
        yield {"type": "RequestMirror", "requestMirror": {"backendRef": _mirrored(settings)}}


def _redirect(redirect: Redirect) -> dict[str, Any]:
    written: dict[str, Any] = {"statusCode": redirect.code}
    if redirect.scheme:
        written["scheme"] = redirect.scheme
    if redirect.host:
        written["hostname"] = redirect.host
    if redirect.port:
        written["port"] = redirect.port
    if redirect.path:
        written["path"] = {"type": "ReplaceFullPath", "replaceFullPath": redirect.path}
    return written


def _changes(changes: Changes) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "set": [{"name": name, "value": value} for name, value in changes.set.items()],
        "add": [{"name": name, "value": value} for name, value in changes.add.items()],
        "remove": list(changes.remove),
    }
    return {name: part for name, part in parts.items() if part}


def _cors(cors: Cors) -> dict[str, Any]:
    written: dict[str, Any] = {
        "allowOrigins": list(cors.origins),
        "allowMethods": list(cors.methods),
        "allowHeaders": list(cors.headers),
        "exposeHeaders": list(cors.exposed),
        "maxAge": cors.max_age,
    }
    kept = {name: part for name, part in written.items() if part}
    return {**kept, "allowCredentials": True} if cors.credentials else kept


def _mirrored(settings: Settings) -> dict[str, Any]:
    namespace, name, port = settings.mirror or ("", "", 0)
    return {"name": name, "namespace": namespace, "port": port}
