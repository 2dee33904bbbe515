"""Rules of the Gateway API's schemas over several fields: what they write in CEL.

Each is a function from a Struct to its faults, with where in the Struct they are; messages are the schemas'.
"""

import ipaddress
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mizzen.api.gateway_api.filters import (
    CORSFilter,
    ExternalAuthFilter,
    Fraction,
    GRPCRouteFilter,
    HTTPRouteFilter,
    PathModifier,
    RequestMirrorFilter,
    SessionPersistence,
)
from mizzen.api.gateway_api.grpc_route import GRPCBackendRef, GRPCMethodMatch, GRPCRouteRule, GRPCRouteSpec
from mizzen.api.gateway_api.http_route import (
    HTTPBackendRef,
    HTTPPathMatch,
    HTTPRouteRule,
    HTTPRouteSpec,
    HTTPRouteTimeouts,
)
from mizzen.api.gateway_api.listeners import (
    GatewayAddress,
    GatewayInfrastructure,
    GatewaySpec,
    Listener,
    ListenerSetSpec,
    ListenerTLSConfig,
)
from mizzen.api.gateway_api.policies import BackendTLSPolicySpec, BackendTLSPolicyValidation, SubjectAltName
from mizzen.api.gateway_api.references import BackendObjectReference, BackendRef, ParentReference
from mizzen.api.gateway_api.stream_routes import StreamRouteSpec, TLSRouteSpec
from mizzen.api.message import Message
from mizzen.api.validate.crd.bounds import Found
from mizzen.api.validate.crd.gateway_api_bounds import WILDCARD_HOST

_MOST_MATCHES = 128
_ONCE = ("RequestHeaderModifier", "ResponseHeaderModifier", "CORS", "RequestRedirect", "URLRewrite")
_PATH = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+")
_SERVICE = re.compile(r"\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*", re.IGNORECASE)
_METHOD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_HOST = re.compile(WILDCARD_HOST)
_META_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]"
)
_FORBIDDEN_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F", "#")


def _object(message: str) -> str:
    return f'Invalid value: "object": {message}'


def _array(message: str) -> str:
    return f'Invalid value: "array": {message}'


def _repeated(keys: Iterable[Hashable]) -> bool:
    listed = list(keys)
    return len(set(listed)) < len(listed)


# -- routes -----------------------------------------------------------------------------------------------------------


def _parents(spec: GRPCRouteSpec | HTTPRouteSpec | StreamRouteSpec | TLSRouteSpec) -> Found:
    """References to one parent all name a section, or none does, and likewise a port; no two are the same."""
    same: dict[Hashable, list[ParentReference]] = {}
    for p in spec.parent_refs:
        same.setdefault((p.group, p.kind, p.namespace, p.name), []).append(p)
    for listed in same.values():
        if len({(bool(p.section_name), bool(p.port)) for p in listed}) > 1:
            message = "sectionName or port must be specified when parentRefs includes 2 or more references"
            yield ".parentRefs", _array(f"{message} to the same parent")
        if _repeated((p.section_name, p.port) for p in listed):
            message = "sectionName or port must be unique when parentRefs includes 2 or more references"
            yield ".parentRefs", _array(f"{message} to the same parent")


def _rules(spec: GRPCRouteSpec | HTTPRouteSpec) -> Found:
    rules: Sequence[GRPCRouteRule | HTTPRouteRule] = spec.rules
    if sum(len(rule.matches) for rule in rules) > _MOST_MATCHES:
        message = "While 16 rules and 64 matches per rule are allowed, the total number of matches across all rules"
        yield ".rules", _array(f"{message} in a route must be less than 128")
    if _repeated(rule.name for rule in rules if rule.name):
        yield ".rules", _array("Rule name must be unique within the route")


def _http_rule(rule: HTTPRouteRule) -> Found:
    redirects = any(f.request_redirect is not None for f in rule.filters)
    if rule.backend_refs and redirects:
        yield "", _object("RequestRedirect filter must not be used together with backendRefs")
    yield from _filters(rule.filters)
    backends = [f for backend in rule.backend_refs for f in backend.filters]
    for prefix, listed in (("", rule.filters), ("Within backendRefs, ", backends)):
        yield from _prefix_replacements(rule, prefix, listed)


def _prefix_replacements(rule: HTTPRouteRule, prefix: str, listed: Sequence[HTTPRouteFilter]) -> Found:
    """A prefix can only be replaced where there is exactly one."""
    if len(rule.matches) == 1 and rule.matches[0].path.type == "PathPrefix":
        return
    for name, paths in (
        ("RequestRedirect", [f.request_redirect.path for f in listed if f.request_redirect is not None]),
        ("URLRewrite", [f.url_rewrite.path for f in listed if f.url_rewrite is not None]),
    ):
        if any(p is not None and p.type == "ReplacePrefixMatch" for p in paths):
            when = f"{prefix}when" if prefix else "When"
            message = f"{when} using {name} filter with path.replacePrefixMatch, exactly one PathPrefix match"
            yield "", _object(f"{message} must be specified")


def _grpc_rule(rule: GRPCRouteRule) -> Found:
    yield from _filters(rule.filters)


def _backend(backend: GRPCBackendRef | HTTPBackendRef) -> Found:
    yield from _service_port(backend)
    yield from _filters(backend.filters)


def _service_port(reference: BackendObjectReference | BackendRef | GRPCBackendRef | HTTPBackendRef) -> Found:
    if not reference.group and reference.kind == "Service" and reference.port is None:
        yield "", _object("Must have port for Service reference")


def _filters(listed: Sequence[GRPCRouteFilter | HTTPRouteFilter]) -> Found:
    types: list[str | None] = [f.type for f in listed]
    for name in _ONCE:
        if types.count(name) > 1:
            yield ".filters", _array(f"{name} filter cannot be repeated")
    if "RequestRedirect" in types and "URLRewrite" in types:
        message = "May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite, but not both"
        yield ".filters", _array(message)


_FILTER_FIELDS: Mapping[str, tuple[str, str]] = {
    "RequestHeaderModifier": ("request_header_modifier", "requestHeaderModifier"),
    "ResponseHeaderModifier": ("response_header_modifier", "responseHeaderModifier"),
    "RequestMirror": ("request_mirror", "requestMirror"),
    "RequestRedirect": ("request_redirect", "requestRedirect"),
    "URLRewrite": ("url_rewrite", "urlRewrite"),
    "CORS": ("cors", "cors"),
    "ExternalAuth": ("external_auth", "externalAuth"),
    "ExtensionRef": ("extension_ref", "extensionRef"),
}


def _filter(found: GRPCRouteFilter | HTTPRouteFilter) -> Found:
    """That the field of the filter's type is set, and no other."""
    for kind, (name, wire) in _FILTER_FIELDS.items():
        is_set = getattr(found, name, None) is not None
        if is_set and found.type != kind:
            yield "", _object(f"filter.{wire} must be nil if the filter.type is not {kind}")
        if not is_set and found.type == kind:
            yield "", _object(f"filter.{wire} must be specified for {kind} filter.type")


def _mirror(found: RequestMirrorFilter) -> Found:
    if found.percent is not None and found.fraction is not None:
        yield "", _object("Only one of percent or fraction may be specified in HTTPRequestMirrorFilter")


def _fraction(found: Fraction) -> Found:
    if found.numerator > found.denominator:
        yield "", _object("numerator must be less than or equal to denominator")


def _path_modifier(found: PathModifier) -> Found:
    for kind, value in (
        ("ReplaceFullPath", found.replace_full_path),
        ("ReplacePrefixMatch", found.replace_prefix_match),
    ):
        wire = kind[0].lower() + kind[1:]
        if found.type == kind and value is None:
            yield "", _object(f"{wire} must be specified when type is set to '{kind}'")
        if found.type != kind and value is not None:
            yield "", _object(f"type must be '{kind}' when {wire} is set")


def _cors(found: CORSFilter) -> Found:
    lists: tuple[tuple[str, Sequence[str], str], ...] = (
        ("allowHeaders", found.allow_headers, "methods"),
        ("allowMethods", found.allow_methods, "methods"),
        ("allowOrigins", found.allow_origins, "origins"),
    )
    for wire, listed, what in lists:
        if "*" in listed and len(listed) > 1:
            yield f".{wire}", _array(f"{wire[0].upper()}{wire[1:]} cannot contain '*' alongside other {what}")


def _external_auth(found: ExternalAuthFilter) -> Found:
    for protocol, wire, is_set in (("GRPC", "grpc", found.grpc is not None), ("HTTP", "http", found.http is not None)):
        if found.protocol == protocol and not is_set:
            yield "", _object(f"{wire} must be specified when protocol is set to '{protocol}'")
        if found.protocol != protocol and is_set:
            yield "", _object(f"protocol must be '{protocol}' when {wire} is set")


def _path_match(found: HTTPPathMatch) -> Found:
    if found.type == "RegularExpression":
        return
    when = "when type one of ['Exact', 'PathPrefix']"
    if not found.value.startswith("/"):
        yield "", _object(f"value must be an absolute path and start with '/' {when}")
    for text in _FORBIDDEN_IN_PATHS:
        if text in found.value:
            yield "", _object(f"must not contain '{text}' {when}")
    for text in ("/..", "/."):
        if found.value.endswith(text):
            yield "", _object(f"must not end with '{text}' {when}")
    if not _PATH.fullmatch(found.value):
        message = f"must only contain valid characters (matching ^{_PATH.pattern}$) for types ['Exact', 'PathPrefix']"
        yield "", _object(message)


def _timeouts(found: HTTPRouteTimeouts) -> Found:
    if found.request and found.backend_request is not None and found.backend_request > found.request:
        yield "", _object("backendRequest timeout cannot be longer than request timeout")


def _method_match(found: GRPCMethodMatch) -> Found:
    if not found.service and not found.method:
        yield "", _object("One or both of 'service' or 'method' must be specified")
    if found.type != "Exact":
        return
    for what, text, pattern in (("service", found.service, _SERVICE), ("method", found.method, _METHOD)):
        if text and not pattern.fullmatch(text):
            yield "", _object(f"{what} must only contain valid characters (matching ^{pattern.pattern}$)")


def _persistence(found: SessionPersistence) -> Found:
    config = found.cookie_config
    if config is not None and config.lifetime_type == "Permanent" and found.absolute_timeout is None:
        yield "", _object("AbsoluteTimeout must be specified when cookie lifetimeType is Permanent")
    if config is not None and found.type != "Cookie":
        yield "", _object("cookieConfig can only be set with type Cookie")


def _server_names(spec: TLSRouteSpec) -> Found:
    if any(_is_ip(host) for host in spec.hostnames):
        yield ".hostnames", _array("Hostnames cannot contain an IP")
    if any("*" not in host and not _HOST.fullmatch(host) for host in spec.hostnames):
        yield ".hostnames", _array("Hostnames must be valid based on RFC-1123")
    if any("*" in host and not _HOST.fullmatch(host) for host in spec.hostnames):
        message = (
            "Wildcards on hostnames must be the first label, and the rest of hostname must be valid based on RFC-1123"
        )
        yield ".hostnames", _array(message)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


# -- gateways ---------------------------------------------------------------------------------------------------------


def _listeners(spec: GatewaySpec | ListenerSetSpec) -> Found:
    for message in dict.fromkeys(message for one in spec.listeners for message in _listener(one)):
        yield ".listeners", _array(message)
    if _repeated(_slot(one) for one in spec.listeners):
        message = "Combination of port, protocol and hostname must be unique for each listener"
        yield ".listeners", _array(message)


def _listener(one: Listener) -> Iterator[str]:
    if one.protocol in ("HTTP", "TCP", "UDP") and one.tls is not None:
        yield "tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']"
    if one.protocol == "HTTPS" and one.tls is not None and one.tls.mode != "Terminate":
        yield "tls mode must be Terminate for protocol HTTPS"
    if one.protocol == "TLS" and one.tls is None:
        yield "tls mode must be set for protocol TLS"
    if one.protocol in ("TCP", "UDP") and one.hostname:
        yield "hostname must not be specified for protocols ['TCP', 'UDP']"


def _slot(listener: Listener) -> tuple[int, str, str]:
    return listener.port, listener.protocol, listener.hostname


def _gateway(spec: GatewaySpec) -> Found:
    yield from _listeners(spec)
    for kind in ("IPAddress", "Hostname"):
        if _repeated(address.value for address in spec.addresses if address.type == kind and address.value):
            yield ".addresses", _array(f"{kind} values must be unique")


def _address(address: GatewayAddress) -> Found:
    if address.type == "Hostname" and address.value and not _HOST.fullmatch(address.value):
        message = f"Hostname value must be empty or contain only valid characters (matching ^{_HOST.pattern}$)"
        yield "", _object(message)


def _infrastructure(found: GatewayInfrastructure) -> Found:
    for wire, what, keys in (("labels", "Label", found.labels), ("annotations", "Annotation", found.annotations)):
        if any(not _META_KEY.fullmatch(key) for key in keys):
            message = f"{what} keys must be in the form of an optional DNS subdomain prefix followed by a required name"
            yield f".{wire}", _object(f"{message} segment of up to 63 characters.")
        if any(len(key.split("/")[0]) >= 253 for key in keys):
            message = f"If specified, the {what.lower()} key's prefix must be a DNS subdomain not longer than"
            yield f".{wire}", _object(f"{message} 253 characters in total.")


def _listener_tls(found: ListenerTLSConfig) -> Found:
    if found.mode == "Terminate" and not found.certificate_refs and not found.options:
        yield "", _object("certificateRefs or options must be specified when mode is Terminate")


# -- policies ---------------------------------------------------------------------------------------------------------


def _policy_targets(spec: BackendTLSPolicySpec) -> Found:
    same: dict[Hashable, list[str]] = {}
    for t in spec.target_refs:
        same.setdefault((t.group, t.kind, t.name), []).append(t.section_name)
    for sections in same.values():
        if len({bool(section) for section in sections}) > 1:
            message = "sectionName must be specified when targetRefs includes 2 or more references to the same target"
            yield ".targetRefs", _array(message)
        if _repeated(sections):
            message = "sectionName must be unique when targetRefs includes 2 or more references to the same target"
            yield ".targetRefs", _array(message)


def _policy_validation(found: BackendTLSPolicyValidation) -> Found:
    if found.ca_certificate_refs and found.well_known_ca_certificates:
        yield "", _object("must not contain both CACertificateRefs and WellKnownCACertificates")
    if not found.ca_certificate_refs and not found.well_known_ca_certificates:
        yield "", _object("must specify either CACertificateRefs or WellKnownCACertificates")


def _alternative_name(found: SubjectAltName) -> Found:
    for kind, field, value in (("Hostname", "Hostname", found.hostname), ("URI", "URI", found.uri)):
        if found.type == kind and not value:
            yield "", _object(f"SubjectAltName element must contain {field}, if Type is set to {kind}")
        if found.type != kind and value:
            yield "", _object(f"SubjectAltName element must not contain {field}, if Type is not set to {kind}")


RULES: Mapping[type[Message], tuple[Callable[[Any], Found], ...]] = {
    BackendObjectReference: (_service_port,),
    BackendRef: (_service_port,),
    BackendTLSPolicySpec: (_policy_targets,),
    BackendTLSPolicyValidation: (_policy_validation,),
    CORSFilter: (_cors,),
    ExternalAuthFilter: (_external_auth,),
    Fraction: (_fraction,),
    GRPCBackendRef: (_backend,),
    GRPCMethodMatch: (_method_match,),
    GRPCRouteFilter: (_filter,),
    GRPCRouteRule: (_grpc_rule,),
    GRPCRouteSpec: (_parents, _rules),
    GatewayAddress: (_address,),
    GatewayInfrastructure: (_infrastructure,),
    GatewaySpec: (_gateway,),
    HTTPBackendRef: (_backend,),
    HTTPPathMatch: (_path_match,),
    HTTPRouteFilter: (_filter,),
    HTTPRouteRule: (_http_rule,),
    HTTPRouteSpec: (_parents, _rules),
    HTTPRouteTimeouts: (_timeouts,),
    ListenerSetSpec: (_listeners,),
    ListenerTLSConfig: (_listener_tls,),
    PathModifier: (_path_modifier,),
    RequestMirrorFilter: (_mirror,),
    SessionPersistence: (_persistence,),
    StreamRouteSpec: (_parents,),
    SubjectAltName: (_alternative_name,),
    TLSRouteSpec: (_parents, _server_names),
}
