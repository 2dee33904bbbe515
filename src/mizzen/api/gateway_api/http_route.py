"""HTTPRoute: which HTTP requests go to which backends."""

from typing import Literal

from mizzen.api.gateway_api.filters import HTTPRouteFilter, SessionPersistence
from mizzen.api.gateway_api.listeners import DefaultScope
from mizzen.api.gateway_api.references import ParentReference
from mizzen.api.message import Message
from mizzen.api.meta import Object
from mizzen.api.scalars import Duration, Int32

PathMatchType = Literal["Exact", "PathPrefix", "RegularExpression"]
ValueMatchType = Literal["Exact", "RegularExpression"]
HTTPMethod = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]


class HTTPPathMatch(Message, frozen=True, kw_only=True):
    """A condition on the path."""

    type: PathMatchType = "PathPrefix"
    value: str = "/"


class HTTPHeaderMatch(Message, frozen=True, kw_only=True):
    """A condition on a header."""

    type: ValueMatchType = "Exact"
    name: str = ""
    value: str = ""


class HTTPQueryParamMatch(Message, frozen=True, kw_only=True):
    """A condition on a query parameter."""

    type: ValueMatchType = "Exact"
    name: str = ""
    value: str = ""


class HTTPRouteMatch(Message, frozen=True, kw_only=True):
    """Conditions that must all hold."""

    path: HTTPPathMatch = HTTPPathMatch()
    headers: tuple[HTTPHeaderMatch, ...] = ()
    query_params: tuple[HTTPQueryParamMatch, ...] = ()
    method: HTTPMethod | None = None


class HTTPBackendRef(Message, frozen=True, kw_only=True):
    """A backend, its share and what is done to its requests alone."""

    group: str = ""
    kind: str = "Service"
    name: str = ""
    namespace: str = ""
    port: Int32 | None = None
    weight: Int32 = 1
    filters: tuple[HTTPRouteFilter, ...] = ()


class HTTPRouteTimeouts(Message, frozen=True, kw_only=True):
    """Timeouts of the whole request and of one try; zero is none."""

    request: Duration | None = None
    backend_request: Duration | None = None


class HTTPRouteRetry(Message, frozen=True, kw_only=True):
    """When and how often a failed request is tried again."""

    codes: tuple[Int32, ...] = ()
    attempts: Int32 | None = None
    backoff: Duration | None = None


class HTTPRouteRule(Message, frozen=True, kw_only=True):
    """A rule: it applies if any match does."""

    name: str = ""
    matches: tuple[HTTPRouteMatch, ...] = (HTTPRouteMatch(),)
    filters: tuple[HTTPRouteFilter, ...] = ()
    backend_refs: tuple[HTTPBackendRef, ...] = ()
    timeouts: HTTPRouteTimeouts | None = None
    retry: HTTPRouteRetry | None = None
    session_persistence: SessionPersistence | None = None


class HTTPRouteSpec(Message, frozen=True, kw_only=True):
    """The rules, the host names they are for and the parents they attach to."""

    parent_refs: tuple[ParentReference, ...] = ()
    use_default_gateways: DefaultScope | None = None
    hostnames: tuple[str, ...] = ()
    rules: tuple[HTTPRouteRule, ...] = (HTTPRouteRule(),)


class HTTPRoute(Object, frozen=True, kw_only=True):
    """The kind HTTPRoute."""

    spec: HTTPRouteSpec = HTTPRouteSpec()
