"""What a route does to requests besides forwarding them, and how it keeps a client with its backend."""

from typing import Literal

from mizzen.api.gateway_api.references import BackendObjectReference, LocalObjectReference
from mizzen.api.message import Message
from mizzen.api.scalars import Duration, Int32, Int64

HTTPFilterType = Literal[
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestMirror",
    "RequestRedirect",
    "URLRewrite",
    "ExtensionRef",
    "CORS",
    "ExternalAuth",
]
GRPCFilterType = Literal["ResponseHeaderModifier", "RequestHeaderModifier", "RequestMirror", "ExtensionRef"]
CORSMethod = Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*"]
PathModifierType = Literal["ReplaceFullPath", "ReplacePrefixMatch"]
ExternalAuthProtocol = Literal["HTTP", "GRPC"]
RedirectScheme = Literal["http", "https"]
RedirectStatus = Literal[301, 302, 303, 307, 308]
CookieLifetime = Literal["Permanent", "Session"]
SessionPersistenceType = Literal["Cookie", "Header"]


class HTTPHeader(Message, frozen=True, kw_only=True):
    """A header and its value."""

    name: str = ""
    value: str = ""


class HeaderFilter(Message, frozen=True, kw_only=True):
    """Headers to set, add and remove."""

    set: tuple[HTTPHeader, ...] = ()
    add: tuple[HTTPHeader, ...] = ()
    remove: tuple[str, ...] = ()


class Fraction(Message, frozen=True, kw_only=True):
    """A share of requests."""

    numerator: Int32 = 0
    denominator: Int32 = 100


class RequestMirrorFilter(Message, frozen=True, kw_only=True):
    """A backend that gets copies; of all requests, or of a share."""

    backend_ref: BackendObjectReference | None = None
    percent: Int32 | None = None
    fraction: Fraction | None = None


class PathModifier(Message, frozen=True, kw_only=True):
    """A new path, or a new prefix in place of the one that matched."""

    type: PathModifierType | None = None
    replace_full_path: str | None = None
    replace_prefix_match: str | None = None


class RequestRedirectFilter(Message, frozen=True, kw_only=True):
    """A redirect; what is absent stays as requested."""

    scheme: RedirectScheme | None = None
    hostname: str = ""
    path: PathModifier | None = None
    port: Int32 | None = None
    status_code: RedirectStatus = 302


class URLRewriteFilter(Message, frozen=True, kw_only=True):
    """What the host and the path become before forwarding."""

    hostname: str = ""
    path: PathModifier | None = None


class CORSFilter(Message, frozen=True, kw_only=True):
    """Cross-origin sharing; `max_age` in seconds."""

    allow_origins: tuple[str, ...] = ()
    allow_credentials: bool | None = None
    allow_methods: tuple[CORSMethod, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age: Int32 = 5


class GRPCAuthConfig(Message, frozen=True, kw_only=True):
    """What an authorizer called over gRPC gets."""

    allowed_headers: tuple[str, ...] = ()


class HTTPAuthConfig(Message, frozen=True, kw_only=True):
    """What an authorizer called over HTTP gets, and what of its answer is kept."""

    path: str = ""
    allowed_headers: tuple[str, ...] = ()
    allowed_response_headers: tuple[str, ...] = ()


class ForwardBodyConfig(Message, frozen=True, kw_only=True):
    """How much of the body an authorizer gets, in bytes."""

    max_size: Int64 | None = None


class ExternalAuthFilter(Message, frozen=True, kw_only=True):
    """An external authorizer."""

    protocol: ExternalAuthProtocol | None = None
    backend_ref: BackendObjectReference | None = None
    grpc: GRPCAuthConfig | None = None
    http: HTTPAuthConfig | None = None
    forward_body: ForwardBodyConfig | None = None


class HTTPRouteFilter(Message, frozen=True, kw_only=True):
    """A filter of an HTTPRoute: `type` names the one of the others that is set."""

    type: HTTPFilterType | None = None
    request_header_modifier: HeaderFilter | None = None
    response_header_modifier: HeaderFilter | None = None
    request_mirror: RequestMirrorFilter | None = None
    request_redirect: RequestRedirectFilter | None = None
    url_rewrite: URLRewriteFilter | None = None
    cors: CORSFilter | None = None
    external_auth: ExternalAuthFilter | None = None
    extension_ref: LocalObjectReference | None = None


class GRPCRouteFilter(Message, frozen=True, kw_only=True):
    """A filter of a GRPCRoute: `type` names the one of the others that is set."""

    type: GRPCFilterType | None = None
    request_header_modifier: HeaderFilter | None = None
    response_header_modifier: HeaderFilter | None = None
    request_mirror: RequestMirrorFilter | None = None
    extension_ref: LocalObjectReference | None = None


class CookieConfig(Message, frozen=True, kw_only=True):
    """How long the cookie of a session lives."""

    lifetime_type: CookieLifetime = "Session"


class SessionPersistence(Message, frozen=True, kw_only=True):
    """How a client stays with its backend."""

    session_name: str = ""
    absolute_timeout: Duration | None = None
    type: SessionPersistenceType = "Cookie"
    cookie_config: CookieConfig | None = None
