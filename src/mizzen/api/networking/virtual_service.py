"""VirtualService: which requests go where, and what happens to them on the way.

The routes are those of HTTP, of TLS passed through (by SNI) and of plain TCP. Order matters: the first match wins.
"""

from collections.abc import Mapping
from typing import Literal

from mizzen.api.message import ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.networking.destination import Destination, Percent
from mizzen.api.scalars import Base64, Duration, Int32, UInt32

UnmatchedPreflights = Literal["UNSPECIFIED", "FORWARD", "IGNORE"]
RedirectPortSelection = Literal["FROM_PROTOCOL_DEFAULT", "FROM_REQUEST_PORT"]


class StringMatch(ProtoMessage, frozen=True, kw_only=True):
    """One of exact, prefix or RE2 regex; an empty string that was written differs from None. Without any: presence."""

    exact: str | None = None
    prefix: str | None = None
    regex: str | None = None


class HeaderOperations(ProtoMessage, frozen=True, kw_only=True):
    """Headers to set, add and remove."""

    set: Mapping[str, str] = {}
    add: Mapping[str, str] = {}
    remove: tuple[str, ...] = ()


class Headers(ProtoMessage, frozen=True, kw_only=True):
    """Changes of headers on the way in and out."""

    request: HeaderOperations | None = None
    response: HeaderOperations | None = None


class HTTPMatchRequest(ProtoMessage, frozen=True, kw_only=True):
    """Conditions on a request; all of them must hold."""

    name: str = ""
    uri: StringMatch | None = None
    scheme: StringMatch | None = None
    method: StringMatch | None = None
    authority: StringMatch | None = None
    headers: Mapping[str, StringMatch] = {}
    port: UInt32 = 0
    source_labels: Mapping[str, str] = {}
    gateways: tuple[str, ...] = ()
    query_params: Mapping[str, StringMatch] = {}
    ignore_uri_case: bool = False
    without_headers: Mapping[str, StringMatch] = {}
    source_namespace: str = ""
    stat_prefix: str = ""


class HTTPRouteDestination(ProtoMessage, frozen=True, kw_only=True):
    """A destination and its share of the requests."""

    destination: Destination | None = None
    weight: Int32 = 0
    headers: Headers | None = None


class HTTPRedirect(ProtoMessage, frozen=True, kw_only=True):
    """A redirect; the port is written (`port`) or derived (`derive_port`)."""

    uri: str = ""
    prefix_rewrite: str = ""
    authority: str = ""
    port: UInt32 | None = None
    derive_port: RedirectPortSelection | None = None
    scheme: str = ""
    redirect_code: UInt32 = 0


class HTTPBody(ProtoMessage, frozen=True, kw_only=True):
    """A body as text or as bytes."""

    string: str | None = None
    bytes: Base64 | None = None


class HTTPDirectResponse(ProtoMessage, frozen=True, kw_only=True):
    """An answer given by the proxy itself."""

    status: UInt32 = 0
    body: HTTPBody | None = None


class Delegate(ProtoMessage, frozen=True, kw_only=True):
    """The VirtualService whose routes stand in this one's place."""

    name: str = ""
    namespace: str = ""


class RegexRewrite(ProtoMessage, frozen=True, kw_only=True):
    """A rewrite of the path by an RE2 pattern with capture groups."""

    match: str = ""
    rewrite: str = ""


class HTTPRewrite(ProtoMessage, frozen=True, kw_only=True):
    """What the path and the authority become before forwarding."""

    uri: str = ""
    authority: str = ""
    uri_regex_rewrite: RegexRewrite | None = None


class HTTPRetry(ProtoMessage, frozen=True, kw_only=True):
    """When and how often a failed request is tried again."""

    attempts: Int32 = 0
    per_try_timeout: Duration | None = None
    retry_on: str = ""
    retry_remote_localities: bool | None = None
    retry_ignore_previous_hosts: bool | None = None
    backoff: Duration | None = None


class Delay(ProtoMessage, frozen=True, kw_only=True):
    """A fault that delays requests."""

    percent: Int32 = 0
    """Deprecated spelling of `percentage`."""
    fixed_delay: Duration | None = None
    exponential_delay: Duration | None = None
    percentage: Percent | None = None


class Abort(ProtoMessage, frozen=True, kw_only=True):
    """A fault that answers requests with an error."""

    http_status: Int32 | None = None
    grpc_status: str | None = None
    http2_error: str | None = None
    percentage: Percent | None = None


class HTTPFaultInjection(ProtoMessage, frozen=True, kw_only=True):
    """Faults made on purpose."""

    delay: Delay | None = None
    abort: Abort | None = None


class HTTPMirrorPolicy(ProtoMessage, frozen=True, kw_only=True):
    """A destination that gets copies of a share of the requests."""

    destination: Destination | None = None
    percentage: Percent | None = None


class CorsPolicy(ProtoMessage, frozen=True, kw_only=True):
    """Cross-origin sharing."""

    allow_origin: tuple[str, ...] = ()
    """Deprecated spelling of `allow_origins`."""
    allow_origins: tuple[StringMatch, ...] = ()
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age: Duration | None = None
    allow_credentials: bool | None = None
    unmatched_preflights: UnmatchedPreflights = "UNSPECIFIED"


class HTTPRoute(ProtoMessage, frozen=True, kw_only=True):
    """One rule: it applies if any `match` does, or if there is none."""

    name: str = ""
    match: tuple[HTTPMatchRequest, ...] = ()
    route: tuple[HTTPRouteDestination, ...] = ()
    redirect: HTTPRedirect | None = None
    direct_response: HTTPDirectResponse | None = None
    delegate: Delegate | None = None
    rewrite: HTTPRewrite | None = None
    timeout: Duration | None = None
    retries: HTTPRetry | None = None
    fault: HTTPFaultInjection | None = None
    mirror: Destination | None = None
    mirrors: tuple[HTTPMirrorPolicy, ...] = ()
    mirror_percent: UInt32 | None = None
    """Deprecated spelling of `mirror_percentage`."""
    mirror_percentage: Percent | None = None
    cors_policy: CorsPolicy | None = None
    headers: Headers | None = None


class RouteDestination(ProtoMessage, frozen=True, kw_only=True):
    """A destination of connections and its share of them."""

    destination: Destination | None = None
    weight: Int32 = 0


class TLSMatchAttributes(ProtoMessage, frozen=True, kw_only=True):
    """Conditions on a TLS connection that is passed through."""

    sni_hosts: tuple[str, ...] = ()
    destination_subnets: tuple[str, ...] = ()
    port: UInt32 = 0
    source_labels: Mapping[str, str] = {}
    gateways: tuple[str, ...] = ()
    source_namespace: str = ""


class TLSRoute(ProtoMessage, frozen=True, kw_only=True):
    """A rule for TLS that is passed through."""

    match: tuple[TLSMatchAttributes, ...] = ()
    route: tuple[RouteDestination, ...] = ()


class L4MatchAttributes(ProtoMessage, frozen=True, kw_only=True):
    """Conditions on a connection."""

    destination_subnets: tuple[str, ...] = ()
    port: UInt32 = 0
    source_subnet: str = ""
    source_labels: Mapping[str, str] = {}
    gateways: tuple[str, ...] = ()
    source_namespace: str = ""


class TCPRoute(ProtoMessage, frozen=True, kw_only=True):
    """A rule for plain connections."""

    match: tuple[L4MatchAttributes, ...] = ()
    route: tuple[RouteDestination, ...] = ()


class VirtualServiceSpec(ProtoMessage, frozen=True, kw_only=True):
    """The routes of some hosts, on some gateways (`mesh` or none: the sidecars)."""

    hosts: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()
    http: tuple[HTTPRoute, ...] = ()
    tls: tuple[TLSRoute, ...] = ()
    tcp: tuple[TCPRoute, ...] = ()
    export_to: tuple[str, ...] = ()


class VirtualService(Object, frozen=True, kw_only=True):
    """The kind VirtualService of networking.istio.io."""

    spec: VirtualServiceSpec = VirtualServiceSpec()
