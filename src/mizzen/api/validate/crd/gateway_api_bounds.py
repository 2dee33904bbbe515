"""Bounds of the Gateway API's kinds: lengths, ranges, patterns and required fields, by Struct and field."""

from collections.abc import Mapping, Sized

from mizzen.api.gateway_api.filters import (
    CORSFilter,
    ExternalAuthFilter,
    Fraction,
    GRPCAuthConfig,
    GRPCRouteFilter,
    HeaderFilter,
    HTTPAuthConfig,
    HTTPHeader,
    HTTPRouteFilter,
    PathModifier,
    RequestMirrorFilter,
    RequestRedirectFilter,
    SessionPersistence,
    URLRewriteFilter,
)
from mizzen.api.gateway_api.grpc_route import (
    GRPCBackendRef,
    GRPCHeaderMatch,
    GRPCMethodMatch,
    GRPCRouteMatch,
    GRPCRouteRule,
    GRPCRouteSpec,
)
from mizzen.api.gateway_api.http_route import (
    HTTPBackendRef,
    HTTPHeaderMatch,
    HTTPPathMatch,
    HTTPQueryParamMatch,
    HTTPRouteMatch,
    HTTPRouteRetry,
    HTTPRouteRule,
    HTTPRouteSpec,
    HTTPRouteTimeouts,
)
from mizzen.api.gateway_api.listeners import (
    AllowedRoutes,
    FrontendTLSConfig,
    FrontendTLSValidation,
    GatewayAddress,
    GatewayClassSpec,
    GatewayInfrastructure,
    GatewaySpec,
    Listener,
    ListenerSetSpec,
    ListenerTLSConfig,
    ParentGatewayReference,
    PortTLS,
    RouteGroupKind,
)
from mizzen.api.gateway_api.policies import (
    BackendTLSPolicySpec,
    BackendTLSPolicyValidation,
    ReferenceGrantFrom,
    ReferenceGrantSpec,
    ReferenceGrantTo,
    SubjectAltName,
)
from mizzen.api.gateway_api.references import (
    BackendObjectReference,
    BackendRef,
    LocalObjectReference,
    LocalPolicyTargetReference,
    ObjectReference,
    ParentReference,
    SecretObjectReference,
)
from mizzen.api.gateway_api.stream_routes import StreamRouteSpec, StreamRule, TLSRouteSpec
from mizzen.api.message import Message
from mizzen.api.meta import LabelSelectorRequirement
from mizzen.api.scalars import Duration
from mizzen.api.validate.crd.bounds import (
    Bound,
    Check,
    Found,
    between,
    each,
    each_value,
    longest,
    most,
    not_empty,
    pairs,
    shaped,
    unlike,
)

Fields = Mapping[str, tuple[Check, ...]]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
WILDCARD_HOST = rf"(\*\.)?{SUBDOMAIN}"
_PATH_CHARACTERS = r"[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+"
_ORIGIN = r"(\*)|((http(s)?):\/\/(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?))"
_PROTOCOL = rf"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?|{SUBDOMAIN}\/[A-Za-z0-9]+"
_ROOTS = rf"System|({SUBDOMAIN}/([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9])"


def least(limit: int) -> Bound:
    """At least so many items."""

    def check(items: Sized) -> Found:
        if len(items) < limit:
            yield "", f"Invalid value: {len(items)}: should have at least {limit} items"

    return Bound(check, {"minItems": limit})


def _whole_milliseconds(duration: Duration) -> Found:
    """A span as `1h30m` or `500ms` write it."""
    if duration < 0 or duration % 10**6:
        yield "", "Invalid value: should match '^([0-9]{1,5}(h|m|s|ms)){1,4}$'"


_GROUP = (longest(253), shaped(rf"({SUBDOMAIN})?"))
_KIND = (longest(63), shaped(r"[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?"))
_NAME = (longest(253),)
_NAMESPACE = (longest(63), shaped(_LABEL))
_SECTION = (longest(253), shaped(SUBDOMAIN))
_PORT = (between(1, 65535),)
_HOST = (longest(253), shaped(SUBDOMAIN))
_HOSTS = (longest(253), shaped(WILDCARD_HOST))
_HEADER_NAME = (not_empty, longest(256), shaped(r"[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+"))
_HEADER_VALUE = (not_empty, longest(4096), shaped(r"[!-~]+([\t ]?[!-~]+)*"))
_FILTERS = (most(16),)
_SPAN = (_whole_milliseconds,)
_WEIGHT = (between(0, 1_000_000),)

_OBJECT: Fields = {"group": _GROUP, "kind": _KIND, "name": _NAME, "namespace": _NAMESPACE}
_BACKEND: Fields = {**_OBJECT, "port": _PORT}
_RULE: Fields = {"name": _SECTION, "filters": _FILTERS, "backend_refs": (most(16),), "matches": (most(64),)}
_HOSTNAMES: Fields = {"hostnames": (most(16), each(*_HOSTS)), "parent_refs": (most(32),)}
_HEADERS: tuple[Bound, ...] = (most(16), unlike("name"))
_LISTENERS: Fields = {"listeners": (most(64), unlike("name"))}

_SHARED: Mapping[type[Message], Fields] = {
    AllowedRoutes: {"kinds": (most(8),)},
    BackendObjectReference: _BACKEND,
    BackendRef: {**_BACKEND, "weight": _WEIGHT},
    BackendTLSPolicySpec: {"target_refs": (most(16),), "options": (pairs(16), each_value(longest(4096)))},
    BackendTLSPolicyValidation: {
        "ca_certificate_refs": (most(8),),
        "hostname": _HOST,
        "subject_alt_names": (most(5),),
        "well_known_ca_certificates": (longest(253), shaped(_ROOTS)),
    },
    CORSFilter: {
        "allow_headers": (most(64), each(*_HEADER_NAME)),
        "expose_headers": (most(64), each(*_HEADER_NAME)),
        "allow_methods": (most(9),),
        "allow_origins": (most(64), each(longest(253), shaped(_ORIGIN))),
        "max_age": (between(1, 2**31 - 1),),
    },
    Fraction: {"numerator": (between(0, 2**31 - 1),), "denominator": (between(1, 2**31 - 1),)},
    FrontendTLSConfig: {"per_port": (most(64), unlike("port"))},
    FrontendTLSValidation: {"ca_certificate_refs": (most(16),)},
    GRPCAuthConfig: {"allowed_headers": (most(64),)},
    GRPCBackendRef: {**_BACKEND, "weight": _WEIGHT, "filters": _FILTERS},
    GRPCHeaderMatch: {"name": _HEADER_NAME, "value": (longest(4096),)},
    GRPCMethodMatch: {"service": (longest(1024),), "method": (longest(1024),)},
    GRPCRouteMatch: {"headers": _HEADERS},
    GRPCRouteRule: _RULE,
    GRPCRouteSpec: {**_HOSTNAMES, "rules": (most(16),)},
    GatewayAddress: {"type": (longest(253),), "value": (longest(253),)},
    GatewayClassSpec: {
        "controller_name": (longest(253), shaped(rf"{SUBDOMAIN}\/{_PATH_CHARACTERS}")),
        "description": (longest(64),),
    },
    GatewayInfrastructure: {
        "annotations": (pairs(16), each_value(longest(4096))),
        "labels": (pairs(8), each_value(longest(63), shaped(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"))),
    },
    GatewaySpec: {"gateway_class_name": _NAME, "addresses": (most(16),), **_LISTENERS},
    HTTPAuthConfig: {
        "allowed_headers": (most(64),),
        "allowed_response_headers": (most(64),),
        "path": (longest(1024),),
    },
    HTTPBackendRef: {**_BACKEND, "weight": _WEIGHT, "filters": _FILTERS},
    HTTPHeader: {"name": _HEADER_NAME, "value": _HEADER_VALUE},
    HTTPHeaderMatch: {"name": _HEADER_NAME, "value": _HEADER_VALUE},
    HTTPPathMatch: {"value": (longest(1024),)},
    HTTPQueryParamMatch: {"name": _HEADER_NAME, "value": (longest(1024),)},
    HTTPRouteMatch: {"headers": _HEADERS, "query_params": _HEADERS},
    HTTPRouteRetry: {"codes": (each(between(400, 599)),), "attempts": (between(1, 2**31 - 1),), "backoff": _SPAN},
    HTTPRouteRule: _RULE,
    HTTPRouteTimeouts: {"request": _SPAN, "backend_request": _SPAN},
    HTTPRouteSpec: {**_HOSTNAMES, "rules": (least(1), most(16))},
    HeaderFilter: {"set": _HEADERS, "add": _HEADERS, "remove": (most(16),)},
    Listener: {
        "name": _SECTION,
        "hostname": _HOSTS,
        "port": _PORT,
        "protocol": (longest(255), shaped(_PROTOCOL)),
    },
    ListenerSetSpec: _LISTENERS,
    ListenerTLSConfig: {"certificate_refs": (most(64),), "options": (pairs(16), each_value(longest(4096)))},
    LocalObjectReference: _OBJECT,
    LocalPolicyTargetReference: {**_OBJECT, "section_name": _SECTION},
    ObjectReference: _OBJECT,
    ParentGatewayReference: _OBJECT,
    ParentReference: {**_OBJECT, "section_name": _SECTION, "port": _PORT},
    PathModifier: {"replace_full_path": (longest(1024),), "replace_prefix_match": (longest(1024),)},
    PortTLS: {"port": _PORT},
    ReferenceGrantFrom: _OBJECT,
    ReferenceGrantSpec: {"from_": (most(16),), "to": (most(16),)},
    ReferenceGrantTo: _OBJECT,
    RequestMirrorFilter: {"percent": (between(0, 100),)},
    RequestRedirectFilter: {"hostname": _HOST, "port": _PORT},
    RouteGroupKind: _OBJECT,
    SecretObjectReference: _OBJECT,
    SessionPersistence: {"session_name": (longest(128),), "absolute_timeout": _SPAN},
    StreamRouteSpec: {"parent_refs": (most(32),), "rules": (most(1),)},
    StreamRule: {"name": _SECTION, "backend_refs": (most(16),)},
    SubjectAltName: {
        "hostname": _HOSTS,
        "uri": (longest(253), shaped(r"([^:/?#]+):(//[^/?#]*)[^?#]*(\?[^#]*)?(#.*)?")),
    },
    TLSRouteSpec: {
        "parent_refs": (most(32),),
        "hostnames": (most(1024), each(*_HOSTS)),
        "rules": (most(1),),
    },
    URLRewriteFilter: {"hostname": _HOST},
}


def _own_fields(cls: type[Message], fields: Fields) -> Fields:
    """Those of shared bounds whose field the Struct has."""
    return {name: bounds for name, bounds in fields.items() if name in cls.__struct_fields__}


BOUNDS: Mapping[type[Message], Fields] = {cls: _own_fields(cls, fields) for cls, fields in _SHARED.items()}
"""What a field that is set has to keep to."""

REQUIRED: Mapping[type[Message], tuple[str, ...]] = {
    BackendObjectReference: ("name",),
    BackendRef: ("name",),
    BackendTLSPolicySpec: ("target_refs", "validation"),
    BackendTLSPolicyValidation: ("hostname",),
    ExternalAuthFilter: ("backend_ref", "protocol"),
    FrontendTLSConfig: ("default",),
    FrontendTLSValidation: ("ca_certificate_refs",),
    GRPCBackendRef: ("name",),
    GRPCHeaderMatch: ("name", "value"),
    GRPCRouteFilter: ("type",),
    GatewayClassSpec: ("controller_name",),
    GatewaySpec: ("gateway_class_name", "listeners"),
    HTTPBackendRef: ("name",),
    HTTPHeader: ("name", "value"),
    HTTPHeaderMatch: ("name", "value"),
    HTTPQueryParamMatch: ("name", "value"),
    HTTPRouteFilter: ("type",),
    LabelSelectorRequirement: ("key", "operator"),
    Listener: ("name", "port", "protocol"),
    ListenerSetSpec: ("listeners", "parent_ref"),
    LocalObjectReference: ("kind", "name"),
    LocalPolicyTargetReference: ("kind", "name"),
    ObjectReference: ("kind", "name"),
    ParentGatewayReference: ("name",),
    ParentReference: ("name",),
    PathModifier: ("type",),
    PortTLS: ("port", "tls"),
    ReferenceGrantFrom: ("kind", "namespace"),
    ReferenceGrantSpec: ("from_", "to"),
    ReferenceGrantTo: ("kind",),
    RequestMirrorFilter: ("backend_ref",),
    RouteGroupKind: ("kind",),
    SecretObjectReference: ("name",),
    StreamRouteSpec: ("rules",),
    StreamRule: ("backend_refs",),
    SubjectAltName: ("type",),
    TLSRouteSpec: ("hostnames", "rules"),
}
"""Fields that have to be set."""
