"""The fields of rules: what of a request each is about, and when a value of it matches.

In: a field of a source or an operation, or the key of a condition. Out: its `Attribute`. A bare connection lacks what
belongs to HTTP; some values no request can be held against, such as a port that is none.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mizzen.api.policy import Operation, Source
from mizzen.diagnose.authorization import identities, templates, texts, tokens
from mizzen.diagnose.authorization.request import Request

_HEADERS = "request.headers"
_CLAIMS = "request.auth.claims"
_METADATA = "experimental."
_NESTED = re.compile(r"(?:\[[^\[\]]+\])+")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A request as Envoy sees it, and what the meaning of a policy's values depends on besides."""

    request: Request
    namespace: str
    """The policy's."""
    trust_domains: tuple[str, ...]


def _no_fault(_value: str) -> str:
    return ""


class Attribute(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a request."""

    matches: Callable[[str, Facts], bool]
    show: Callable[[Request], str]
    fault: Callable[[str], str] = _no_fault
    """What is wrong with a value, in words; empty for a good one."""
    http_only: bool = False


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """An attribute with the values that it must or, if `excluded`, must not have."""

    name: str
    attribute: Attribute
    values: tuple[str, ...]
    excluded: bool = False


# -- the connection ---------------------------------------------------------------------------------------------------


def _address_fault(value: str) -> str:
    return "" if texts.read_network(value) is not None else f"{value!r} is neither an address nor a range"


def _port_fault(value: str) -> str:
    return "" if texts.is_port_number(value) else f"{value!r} is not a port"


PRINCIPAL = Attribute(
    matches=lambda value, f: identities.is_principal(value, f.request.principal, f.trust_domains),
    show=lambda request: request.principal,
)
NAMESPACE = Attribute(
    matches=lambda value, f: identities.is_namespace(value, f.request.principal),
    show=lambda request: request.principal,
)
SERVICE_ACCOUNT = Attribute(
    matches=lambda value, f: identities.is_service_account(value, f.request.principal, f.namespace),
    show=lambda request: request.principal,
)
TRUST_DOMAIN = Attribute(
    matches=lambda value, f: identities.is_trust_domain(value, f.request.principal, f.trust_domains),
    show=lambda request: request.principal,
)
SOURCE_IP = Attribute(
    matches=lambda value, f: texts.is_address(value, f.request.source_ip),
    show=lambda request: request.source_ip,
    fault=_address_fault,
)
REMOTE_IP = Attribute(
    matches=lambda value, f: texts.is_address(value, f.request.remote_ip),
    show=lambda request: request.remote_ip,
    fault=_address_fault,
)
DESTINATION_IP = Attribute(
    matches=lambda value, f: texts.is_address(value, f.request.destination_ip),
    show=lambda request: request.destination_ip,
    fault=_address_fault,
)
PORT = Attribute(
    matches=lambda value, f: int(value) == f.request.port, show=lambda request: str(request.port), fault=_port_fault
)
SNI = Attribute(matches=lambda value, f: texts.is_text(value, f.request.sni), show=lambda request: request.sni)

# -- HTTP -------------------------------------------------------------------------------------------------------------


def _path_fault(value: str) -> str:
    return f"{value!r} is no path template" if templates.is_template(value) and not templates.is_readable(value) else ""


def _is_path(value: str, facts: Facts) -> bool:
    path = facts.request.path.partition("?")[0]
    return templates.is_path(value, path) if templates.is_template(value) else texts.is_text(value, path)


def _is_host(value: str, facts: Facts) -> bool:
    return texts.is_text(value.lower(), facts.request.host.lower())


HOST = Attribute(matches=_is_host, show=lambda request: request.host, http_only=True)
METHOD = Attribute(
    matches=lambda value, f: texts.is_text(value, f.request.method), show=lambda request: request.method, http_only=True
)
PATH = Attribute(matches=_is_path, show=lambda request: request.path, fault=_path_fault, http_only=True)


def _header(name: str) -> Attribute:
    def matches(value: str, facts: Facts) -> bool:
        return any(value == "*" or texts.is_text(value, found) for found in _find_headers(name, facts.request))

    return Attribute(matches=matches, show=lambda request: ", ".join(_find_headers(name, request)), http_only=True)


def _find_headers(name: str, request: Request) -> list[str]:
    """The values of a header, or of what HTTP/2 sends as one; names are not told apart by case."""
    pseudo = {":method": request.method, ":path": request.path, ":authority": request.host, "host": request.host}
    wanted = name.lower()
    return [pseudo[wanted]] if wanted in pseudo else [v for n, v in request.headers if n.lower() == wanted]


# -- tokens and metadata ----------------------------------------------------------------------------------------------

REQUEST_PRINCIPAL = Attribute(
    matches=lambda value, f: tokens.is_request_principal(value, f.request.claims),
    show=lambda request: tokens.request_principal(request.claims),
    http_only=True,
)


def _claim(*path: str) -> Attribute:
    return Attribute(
        matches=lambda value, f: tokens.holds(value, tokens.find_claim(path, f.request.claims)),
        show=lambda request: _shown(tokens.find_claim(path, request.claims)),
        http_only=True,
    )


def _shown(found: Any) -> str:
    return "" if found is None else found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _metadata(filter_name: str, key: str) -> Attribute:
    def find(request: Request) -> Any:
        return request.metadata.get(filter_name, {}).get(key)

    def matches(value: str, facts: Facts) -> bool:
        found = find(facts.request)
        if value.startswith("[") and value.endswith("]"):
            return isinstance(found, list | tuple) and tokens.holds(value[1:-1], found)
        return isinstance(found, str) and texts.is_text(value, found)

    return Attribute(matches=matches, show=lambda request: _shown(find(request)))


# -- fields and keys --------------------------------------------------------------------------------------------------


_SOURCE = {
    "principals": PRINCIPAL,
    "request_principals": REQUEST_PRINCIPAL,
    "service_accounts": SERVICE_ACCOUNT,
    "trust_domains": TRUST_DOMAIN,
    "namespaces": NAMESPACE,
    "remote_ip_blocks": REMOTE_IP,
    "ip_blocks": SOURCE_IP,
}
_OPERATION = {"hosts": HOST, "methods": METHOD, "paths": PATH, "ports": PORT}
_BY_KEY = {
    "source.ip": SOURCE_IP,
    "remote.ip": REMOTE_IP,
    "source.namespace": NAMESPACE,
    "source.serviceAccount": SERVICE_ACCOUNT,
    "source.trustDomain": TRUST_DOMAIN,
    "source.principal": PRINCIPAL,
    "request.auth.principal": REQUEST_PRINCIPAL,
    "request.auth.audiences": _claim("aud"),
    "request.auth.presenter": _claim("azp"),
    "destination.ip": DESTINATION_IP,
    "destination.port": PORT,
    "connection.sni": SNI,
}


def source_fields(source: Source, place: str) -> Iterator[Field]:
    """The fields of a source that have values; `place` stands before their names."""
    return _fields(source, _SOURCE, place)


def operation_fields(operation: Operation, place: str) -> Iterator[Field]:
    """The fields of an operation that have values."""
    return _fields(operation, _OPERATION, place)


def _fields(message: Source | Operation, attributes: dict[str, Attribute], place: str) -> Iterator[Field]:
    wire = dict(zip(message.__struct_fields__, message.__struct_encode_fields__, strict=True))
    for name, attribute in attributes.items():
        for field, excluded in ((name, False), (f"not_{name}", True)):
            if values := getattr(message, field):
                yield Field(name=f"{place}.{wire[field]}", attribute=attribute, values=values, excluded=excluded)


def of_condition(key: str) -> Attribute | None:
    """The attribute that a `when` key names; None for a key that means nothing."""
    if key.startswith(_HEADERS):
        name = _between_brackets(key.removeprefix(_HEADERS))
        return _header(name) if name and not re.search("[\0\r\n]", name) else None
    if key.startswith(_CLAIMS):
        brackets = key.removeprefix(_CLAIMS)
        if _NESTED.fullmatch(brackets):
            return _claim(*brackets[1:-1].split("]["))
        name = _between_brackets(brackets)
        return _claim(name) if name else None
    if key.startswith(f"{_METADATA}envoy.filters."):
        filter_name, _, _ = key.removeprefix(_METADATA).partition("[")
        name = _between_brackets(key)
        return _metadata(filter_name, name) if name else None
    return _BY_KEY.get(key)


def _between_brackets(text: str) -> str:
    _, _, rest = text.partition("[")
    return rest[:-1] if rest.endswith("]") else ""
