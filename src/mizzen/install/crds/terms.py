"""Terms: what the schemas of the mesh's kinds ask beyond types and beyond the bounds that validation has.

Out: `TERMS`, by Struct, or by Struct and field for what is asked of a message at one place alone. Most of it is what
the webhook refuses as well, in words of its own; said here, it holds while no control plane is up. Rules are CEL over
names of the wire. The API server refuses a definition whose rules could cost too much, so long lists of lists have
none.
"""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from mizzen.api.message import Message
from mizzen.api.networking.destination import Destination
from mizzen.api.networking.destination_rule import DestinationRuleSpec
from mizzen.api.networking.envoy_filter import EnvoyConfigObjectMatch, EnvoyFilterSpec
from mizzen.api.networking.gateway import Server, ServerTLSSettings
from mizzen.api.networking.proxy_config import ProxyConfigSpec
from mizzen.api.networking.selectors import MatchLabels, PolicyTargetReference, WorkloadSelector
from mizzen.api.networking.service_entry import ServiceEntrySpec, ServicePort
from mizzen.api.networking.sidecar import IstioEgressListener, IstioIngressListener
from mizzen.api.networking.traffic_policy import (
    HTTPCookie,
    HTTPCookieAttribute,
    TunnelSettings,
    WarmupConfiguration,
)
from mizzen.api.networking.virtual_service import (
    HTTPDirectResponse,
    HTTPMirrorPolicy,
    HTTPRoute,
    HTTPRouteDestination,
    RouteDestination,
    TLSMatchAttributes,
    TLSRoute,
)
from mizzen.api.networking.workload_entry import WorkloadEntry, WorkloadEntrySpec
from mizzen.api.networking.workload_group import (
    ExecHealthCheckConfig,
    HTTPHeader,
    HTTPHealthCheckConfig,
    ReadinessProbe,
    TCPHealthCheckConfig,
)
from mizzen.api.policy import (
    AuthorizationPolicySpec,
    ClaimToHeader,
    Condition,
    EnvVar,
    JWTHeader,
    JWTRule,
    LuaConfig,
    MetricSelector,
    PeerAuthenticationSpec,
    ProviderRef,
    RequestAuthenticationSpec,
    Source,
    TagEnvironment,
    TagFormatter,
    TagHeader,
    TagLiteral,
    TagOverride,
    TelemetrySpec,
    Tracing,
    TrafficExtensionSpec,
    TrafficSelector,
    WasmConfig,
    WasmPluginSpec,
)
from mizzen.api.validate.crd.bounds import Schema, cel, merge

NOTHING: Schema = {}


class Terms(NamedTuple):
    """What is asked of one message."""

    required: tuple[str, ...] = ()
    fields: Mapping[str, Schema] = {}
    """More for the schemas of fields."""
    rules: Schema = NOTHING
    """Over the whole message."""
    one_of: tuple[tuple[str, ...], ...] = ()
    """Fields of which only one may be set."""
    also_as: tuple[str, ...] = ()
    """Fields that may be written in snake_case too."""


def at_most_one(message: str, *fields: str) -> Schema:
    """That of several fields one at most is there."""
    pairs = (f"!(has(self.{one}) && has(self.{other}))" for one, other in itertools.combinations(fields, 2))
    return cel(" && ".join(pairs), message)


_NON_EMPTY: Schema = {"minLength": 1}
_NOT_NEGATIVE: Schema = {"minimum": 0}
_HEADER: Schema = {"pattern": "^[-_A-Za-z0-9]+$"}
_PORT = cel("self >= 1 && self <= 65535", "port must be between 1-65535")
_ONE_TARGET = "only one of targetRefs or selector can be set"
_SELECTED = at_most_one(_ONE_TARGET, "selector", "targetRef", "targetRefs")
_SCHEMES = "['', 'http', 'https', 'oci', 'file']"
_MODULE_URL = cel(
    f"isURL(self) ? url(self).getScheme() in {_SCHEMES} : isURL('http://' + self)",
    "url must have schema one of [http, https, file, oci]",
)
_MODULE: Mapping[str, Schema] = {
    "url": merge(_NON_EMPTY, _MODULE_URL),
    "image_pull_secret": _NON_EMPTY,
    "plugin_name": _NON_EMPTY,
}
_JWKS = cel(
    "isURL(self) && url(self).getScheme() in ['http', 'https']",
    "url must have scheme http:// or https://",
)
_ADDRESS = Terms(rules=cel("has(self.address) || has(self.network)", "Address is required"))
_UNIX = "self.startsWith('unix://')"

_NETWORKING: Mapping[type[Message] | tuple[type[Message], str], Terms] = {
    Destination: Terms(required=("host",)),
    DestinationRuleSpec: Terms(required=("host",)),
    EnvoyConfigObjectMatch: Terms(
        rules=cel(
            "has(self.waypoint) == (has(self.context) && self.context == 'WAYPOINT')",
            "only support waypointMatch when context is WAYPOINT",
        )
    ),
    EnvoyFilterSpec: Terms(
        rules=at_most_one("only one of targetRefs or workloadSelector can be set", "workloadSelector", "targetRefs")
    ),
    ExecHealthCheckConfig: Terms(required=("command",)),
    HTTPCookie: Terms(required=("name",)),
    HTTPCookieAttribute: Terms(required=("name",)),
    HTTPDirectResponse: Terms(required=("status",)),
    HTTPHeader: Terms(fields={"name": _HEADER}),
    HTTPHealthCheckConfig: Terms(
        required=("port",),
        fields={
            "port": _PORT,
            "scheme": cel("self in ['', 'HTTP', 'HTTPS']", "scheme must be one of [HTTP, HTTPS]"),
        },
    ),
    HTTPMirrorPolicy: Terms(required=("destination",)),
    HTTPRoute: Terms(also_as=("mirror_percent",)),
    HTTPRouteDestination: Terms(required=("destination",)),
    IstioEgressListener: Terms(required=("hosts",)),
    IstioIngressListener: Terms(required=("port",)),
    MatchLabels: Terms(
        fields={
            "match_labels": merge(
                {"additionalProperties": cel("!self.contains('*')", "wildcard not allowed in label value match")},
                cel("self.all(name, !name.contains('*'))", "wildcard not allowed in label key match"),
                cel("self.all(name, name != '')", "key must not be empty"),
            )
        }
    ),
    PolicyTargetReference: Terms(
        fields={
            "kind": _NON_EMPTY,
            "name": _NON_EMPTY,
            "namespace": cel("self == ''", "cross namespace referencing is not currently supported"),
        }
    ),
    ProxyConfigSpec: Terms(fields={"concurrency": _NOT_NEGATIVE}),
    ReadinessProbe: Terms(
        fields={
            "initial_delay_seconds": _NOT_NEGATIVE,
            "timeout_seconds": _NOT_NEGATIVE,
            "period_seconds": _NOT_NEGATIVE,
            "success_threshold": _NOT_NEGATIVE,
            "failure_threshold": _NOT_NEGATIVE,
        }
    ),
    RouteDestination: Terms(required=("destination",)),
    Server: Terms(required=("port", "hosts")),
    (Server, "port"): Terms(required=("number", "protocol", "name")),
    ServerTLSSettings: Terms(
        fields={"credential_names": {"minItems": 1}, "tls_certificates": {"minItems": 1}},
        # Istio's third rule is about credentialNames, whatever it says; what its definition takes, ours takes.
        rules=merge(
            at_most_one(
                "only one of credentialNames or tlsCertificates can be set", "credentialNames", "tlsCertificates"
            ),
            at_most_one(
                "only one of credentialName or credentialNames can be set", "credentialName", "credentialNames"
            ),
            at_most_one(
                "only one of credentialName or tlsCertificates can be set", "credentialNames", "tlsCertificates"
            ),
        ),
    ),
    ServiceEntrySpec: Terms(
        required=("hosts",),
        fields={"hosts": {"minItems": 1, "items": cel("self != '*'", "hostname cannot be wildcard")}},
        rules=merge(
            at_most_one("only one of WorkloadSelector or Endpoints can be set", "workloadSelector", "endpoints"),
            cel(
                "!has(self.addresses) || !has(self.resolution) || self.resolution in ['NONE', 'STATIC']"
                " || !self.addresses.exists(address, address.contains('/'))",
                "CIDR addresses are allowed only for NONE/STATIC resolution types",
            ),
            cel(
                "!has(self.endpoints) || (has(self.resolution) && self.resolution != 'NONE')",
                "NONE mode cannot set endpoints",
            ),
            cel(
                "!has(self.endpoints) || !has(self.resolution) || self.resolution != 'DNS_ROUND_ROBIN'"
                " || self.endpoints.size() <= 1",
                "DNS_ROUND_ROBIN mode cannot have multiple endpoints",
            ),
        ),
    ),
    (ServiceEntrySpec, "endpoints"): _ADDRESS,
    ServicePort: Terms(required=("number", "name")),
    TCPHealthCheckConfig: Terms(required=("port",), fields={"port": _PORT}),
    TLSMatchAttributes: Terms(required=("sni_hosts",)),
    TLSRoute: Terms(required=("match",)),
    TunnelSettings: Terms(required=("target_host", "target_port")),
    WarmupConfiguration: Terms(required=("duration",)),
    (WorkloadEntry, "spec"): _ADDRESS,
    WorkloadEntrySpec: Terms(
        fields={
            "address": merge(
                cel(
                    f"!{_UNIX} || self.startsWith('unix:///') || self.startsWith('unix://@')",
                    "UDS must be an absolute path or abstract socket",
                ),
                cel(f"!{_UNIX} || !self.endsWith('/')", "UDS may not be a dir"),
            )
        },
        rules=cel(
            "!has(self.ports) || !has(self.address) || !self.address.startsWith('unix://')", "UDS may not include ports"
        ),
    ),
    WorkloadSelector: Terms(
        fields={
            "labels": {"additionalProperties": cel("!self.contains('*')", "wildcard is not supported in selector")},
        }
    ),
}

_POLICY: Mapping[type[Message] | tuple[type[Message], str], Terms] = {
    AuthorizationPolicySpec: Terms(rules=_SELECTED),
    ClaimToHeader: Terms(
        required=("header", "claim"), fields={"header": merge(_NON_EMPTY, _HEADER), "claim": _NON_EMPTY}
    ),
    Condition: Terms(required=("key",)),
    EnvVar: Terms(
        required=("name",),
        fields={"name": _NON_EMPTY},
        rules=cel(
            "!has(self.value) || !has(self.valueFrom) || self.valueFrom != 'HOST'",
            "value may only be set when valueFrom is INLINE",
        ),
    ),
    JWTHeader: Terms(required=("name",), fields={"name": _NON_EMPTY}),
    JWTRule: Terms(
        fields={"issuer": _NON_EMPTY, "jwks_uri": merge(_NON_EMPTY, _JWKS)},
        rules=at_most_one("only one of jwks or jwksUri can be set", "jwksUri", "jwks_uri", "jwks"),
        also_as=("jwks_uri",),
    ),
    LuaConfig: Terms(required=("inline_code",), fields={"inline_code": {"minLength": 1, "maxLength": 65536}}),
    MetricSelector: Terms(fields={"custom_metric": _NON_EMPTY}),
    PeerAuthenticationSpec: Terms(
        fields={
            "port_level_mtls": merge(
                {"minProperties": 1},
                cel("self.all(port, int(port) >= 1 && int(port) <= 65535)", "port must be between 1-65535"),
            )
        },
        rules=cel(
            "!has(self.portLevelMtls)"
            " || (has(self.selector) && has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0)",
            "portLevelMtls requires selector",
        ),
    ),
    ProviderRef: Terms(required=("name",), fields={"name": _NON_EMPTY}),
    RequestAuthenticationSpec: Terms(rules=_SELECTED),
    Source: Terms(
        rules=cel(
            "!(has(self.serviceAccounts) || has(self.notServiceAccounts)) || !(has(self.principals)"
            " || has(self.notPrincipals) || has(self.namespaces) || has(self.notNamespaces))",
            "Cannot set serviceAccounts with namespaces or principals",
        )
    ),
    TagEnvironment: Terms(required=("name",), fields={"name": _NON_EMPTY}),
    TagFormatter: Terms(fields={"value": _NON_EMPTY}),
    TagHeader: Terms(required=("name",), fields={"name": _NON_EMPTY}),
    TagLiteral: Terms(required=("value",), fields={"value": _NON_EMPTY}),
    TagOverride: Terms(
        rules=merge(
            cel(
                "!has(self.operation) || self.operation != 'UPSERT' || (has(self.value) && self.value != '')",
                "value must be set when operation is UPSERT",
            ),
            cel(
                "!has(self.value) || !has(self.operation) || self.operation != 'REMOVE'",
                "value must not be set when operation is REMOVE",
            ),
        )
    ),
    TelemetrySpec: Terms(rules=_SELECTED),
    Tracing: Terms(fields={"random_sampling_percentage": {"minimum": 0, "maximum": 100}}),
    TrafficExtensionSpec: Terms(
        rules=merge(
            at_most_one(_ONE_TARGET, "selector", "targetRefs"),
            cel("has(self.wasm) != has(self.lua)", "exactly one of wasm or lua must be set"),
        ),
        one_of=(("wasm", "lua"),),
    ),
    (TrafficSelector, "ports"): Terms(required=("number",), fields={"number": {"minimum": 1, "maximum": 65535}}),
    WasmConfig: Terms(required=("url",), fields=_MODULE),
    WasmPluginSpec: Terms(required=("url",), fields=_MODULE, rules=_SELECTED),
}

TERMS: Mapping[type[Message] | tuple[type[Message], str], Terms] = {**_NETWORKING, **_POLICY}


def terms_of(cls: type[Message], place: tuple[type[Message], str] | None) -> tuple[Terms, ...]:
    """Those of a Struct, and those of it at the field that it stands in."""
    found = (TERMS.get(cls), TERMS.get(place) if place else None)
    return tuple(one for one in found if one is not None)
