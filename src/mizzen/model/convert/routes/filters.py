"""Filters: what rules do to requests besides forwarding them, as Istio's fields of a rule.

In: one filter of an HTTPRoute or GRPCRoute. Out: the value of the field of an Istio rule that says the same.
Golden cases: gateway-api/http-filters, gateway-api/grpc-routes.
"""

import re
from collections.abc import Iterable

from mizzen.api.gateway_api.filters import (
    CORSFilter,
    GRPCRouteFilter,
    HeaderFilter,
    HTTPHeader,
    HTTPRouteFilter,
    RequestMirrorFilter,
    RequestRedirectFilter,
    URLRewriteFilter,
)
from mizzen.api.networking.destination import Destination, Percent
from mizzen.api.networking.virtual_service import (
    CorsPolicy,
    HeaderOperations,
    Headers,
    HTTPMirrorPolicy,
    HTTPRedirect,
    HTTPRewrite,
    RegexRewrite,
    StringMatch,
)
from mizzen.api.scalars import Duration
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.routes.backends import HardFault
from mizzen.model.patterns import quote

INVALID_FILTER = "InvalidFilter"
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PERCENT = re.compile(r"%%|%(?![0-9A-F]{2}%)[A-Z0-9_]+(?:\((?:[^()\\]|\\.)*\))?(?::[0-9]+)?%|%")
"""A doubled sign, a command of Envoy (`%PROTOCOL%`, but not the `%E2%` of an encoded character), or a lone sign."""

Filter = HTTPRouteFilter | GRPCRouteFilter


def unsupported(found: Filter) -> HardFault:
    """The fault of a filter that is not served where it stands."""
    return HardFault(Fault(INVALID_FILTER, f'unsupported filter type "{found.type or ""}"'))


def headers(filters: Iterable[Filter]) -> Headers | None:
    """The header changes of a list of filters; the last modifier of each side counts."""
    request: HeaderOperations | None = None
    response: HeaderOperations | None = None
    for one in filters:
        if one.type == "RequestHeaderModifier" and one.request_header_modifier is not None:
            request = _operations(one.request_header_modifier)
        elif one.type == "ResponseHeaderModifier" and one.response_header_modifier is not None:
            response = _operations(one.response_header_modifier)
    return Headers(request=request, response=response) if request is not None or response is not None else None


def _operations(changes: HeaderFilter) -> HeaderOperations:
    return HeaderOperations(set=_values(changes.set), add=_values(changes.add), remove=changes.remove)


def _values(entries: Iterable[HTTPHeader]) -> dict[str, str]:
    """The first value of each name, whatever its case."""
    found: dict[str, str] = {}
    for entry in entries:
        if _CONTROL.search(entry.value):
            raise HardFault(Fault(INVALID_FILTER, f'invalid characters in the value of header "{entry.name}"'))
        found.setdefault(entry.name.lower(), _PERCENT.sub(_doubled, entry.value))
    return found


def _doubled(sign: re.Match[str]) -> str:
    """A sign that stands for itself, as Envoy reads it; it would refuse all routes for a lone one."""
    return "%%" if sign[0] == "%" else sign[0]


def redirect(wanted: RequestRedirectFilter) -> HTTPRedirect:
    """A redirect; the port is the one written, else that of the new scheme, else that of the request."""
    path = wanted.path
    return HTTPRedirect(
        redirect_code=wanted.status_code,
        authority=wanted.hostname,
        scheme=wanted.scheme or "",
        port=wanted.port,
        derive_port=None
        if wanted.port is not None
        else "FROM_PROTOCOL_DEFAULT"
        if wanted.scheme
        else "FROM_REQUEST_PORT",
        uri=path.replace_full_path or "" if path is not None and path.type == "ReplaceFullPath" else "",
        prefix_rewrite=path.replace_prefix_match or "/"
        if path is not None and path.type == "ReplacePrefixMatch"
        else "",
    )


def rewrite(wanted: URLRewriteFilter) -> HTTPRewrite | None:
    """A rewrite; a new prefix `/` (or none) removes the old one."""
    uri, whole = "", None
    if wanted.path is not None and wanted.path.type == "ReplacePrefixMatch":
        uri = (wanted.path.replace_prefix_match or "").removesuffix("/") or "/"
    elif wanted.path is not None and wanted.path.type == "ReplaceFullPath":
        whole = RegexRewrite(match="/.*", rewrite=wanted.path.replace_full_path or "")
    if not uri and whole is None and not wanted.hostname:
        return None
    return HTTPRewrite(uri=uri, uri_regex_rewrite=whole, authority=wanted.hostname)


def mirror(wanted: RequestMirrorFilter, destination: Destination) -> HTTPMirrorPolicy:
    """Copies for a destination: of a fraction, of a percentage, or of all requests."""
    share: Percent | None = None
    if wanted.fraction is not None:
        share = Percent(value=100 * wanted.fraction.numerator / wanted.fraction.denominator)
    elif wanted.percent is not None:
        share = Percent(value=float(wanted.percent))
    return HTTPMirrorPolicy(destination=destination, percentage=share)


def cors(wanted: CORSFilter) -> CorsPolicy:
    """Cross-origin sharing; requests of other origins are answered like any other."""
    return CorsPolicy(
        allow_origins=tuple(_origin(o) for o in wanted.allow_origins if o),
        allow_methods=tuple(wanted.allow_methods),
        allow_headers=wanted.allow_headers,
        expose_headers=wanted.expose_headers,
        allow_credentials=True if wanted.allow_credentials else None,
        max_age=Duration.of(seconds=wanted.max_age) if wanted.max_age > 0 else None,
        unmatched_preflights="IGNORE",
    )


def _origin(origin: str) -> StringMatch:
    if "*" not in origin:
        return StringMatch(exact=origin)
    pattern = quote(origin).replace(r"\*", ".*")
    return StringMatch(regex=f"^{pattern}$")
