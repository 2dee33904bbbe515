"""Policies: who may talk to whom, what is observed, and what else runs in the proxy.

The kinds of security.istio.io (PeerAuthentication, RequestAuthentication, AuthorizationPolicy), telemetry.istio.io
(Telemetry) and extensions.istio.io (WasmPlugin, TrafficExtension). Each selects workloads by labels or attaches to
what its `target_refs` name; without either it holds for its namespace, in the root namespace for the mesh.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from mizzen.api.message import FreeForm, ProtoMessage
from mizzen.api.meta import Object, VersionedMeta
from mizzen.api.networking.destination import PortSelector
from mizzen.api.networking.selectors import MatchLabels, PolicyTargetReference
from mizzen.api.scalars import Duration, Int32, UInt32

MutualTLSMode = Literal["UNSET", "DISABLE", "PERMISSIVE", "STRICT"]
Action = Literal["ALLOW", "DENY", "AUDIT", "CUSTOM"]
TelemetryMode = Literal["CLIENT_AND_SERVER", "CLIENT", "SERVER"]
Metric = Literal[
    "ALL_METRICS",
    "REQUEST_COUNT",
    "REQUEST_DURATION",
    "REQUEST_SIZE",
    "RESPONSE_SIZE",
    "TCP_OPENED_CONNECTIONS",
    "TCP_CLOSED_CONNECTIONS",
    "TCP_SENT_BYTES",
    "TCP_RECEIVED_BYTES",
    "GRPC_REQUEST_MESSAGES",
    "GRPC_RESPONSE_MESSAGES",
]
TagOperation = Literal["UPSERT", "REMOVE"]
WorkloadMode = Literal["UNDEFINED", "CLIENT", "SERVER", "CLIENT_AND_SERVER"]
PluginPhase = Literal["UNSPECIFIED_PHASE", "AUTHN", "AUTHZ", "STATS"]
ExecutionPhase = Literal["UNSPECIFIED", "AUTHN", "AUTHZ", "STATS"]
PluginType = Literal["UNSPECIFIED_PLUGIN_TYPE", "HTTP", "NETWORK"]
PullPolicy = Literal["UNSPECIFIED_POLICY", "IfNotPresent", "Always"]
FailStrategy = Literal["FAIL_CLOSE", "FAIL_OPEN", "FAIL_RELOAD"]
EnvValueSource = Literal["INLINE", "HOST"]


class MutualTLS(ProtoMessage, frozen=True, kw_only=True):
    """What a server takes; UNSET inherits."""

    mode: MutualTLSMode = "UNSET"


class PeerAuthenticationSpec(ProtoMessage, frozen=True, kw_only=True):
    """Mutual TLS of the selected workloads, with exceptions by the workload's port."""

    selector: MatchLabels | None = None
    mtls: MutualTLS | None = None
    port_level_mtls: Mapping[UInt32, MutualTLS] = {}


class PeerAuthentication(Object, frozen=True, kw_only=True):
    """The kind PeerAuthentication of security.istio.io."""

    spec: PeerAuthenticationSpec = PeerAuthenticationSpec()


class JWTHeader(ProtoMessage, frozen=True, kw_only=True):
    """A header that holds a token, and what stands before it."""

    name: str = ""
    prefix: str = ""


class ClaimToHeader(ProtoMessage, frozen=True, kw_only=True):
    """A claim that is copied to a header."""

    header: str = ""
    claim: str = ""


class JWTRule(ProtoMessage, frozen=True, kw_only=True):
    """One issuer of tokens, its keys and where tokens are found."""

    issuer: str = ""
    audiences: tuple[str, ...] = ()
    jwks_uri: str = ""
    jwks: str = ""
    from_headers: tuple[JWTHeader, ...] = ()
    from_params: tuple[str, ...] = ()
    from_cookies: tuple[str, ...] = ()
    output_payload_to_header: str = ""
    forward_original_token: bool = False
    output_claim_to_headers: tuple[ClaimToHeader, ...] = ()
    timeout: Duration | None = None
    space_delimited_claims: tuple[str, ...] = ()


class RequestAuthenticationSpec(ProtoMessage, frozen=True, kw_only=True):
    """The tokens that are accepted; a request without a token passes."""

    selector: MatchLabels | None = None
    target_ref: PolicyTargetReference | None = None
    target_refs: tuple[PolicyTargetReference, ...] = ()
    jwt_rules: tuple[JWTRule, ...] = ()


class RequestAuthentication(Object, frozen=True, kw_only=True):
    """The kind RequestAuthentication of security.istio.io."""

    spec: RequestAuthenticationSpec = RequestAuthenticationSpec()


class Source(ProtoMessage, frozen=True, kw_only=True):
    """Who calls; within a field any value may match, all fields must."""

    principals: tuple[str, ...] = ()
    not_principals: tuple[str, ...] = ()
    request_principals: tuple[str, ...] = ()
    not_request_principals: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    not_namespaces: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()
    not_service_accounts: tuple[str, ...] = ()
    trust_domains: tuple[str, ...] = ()
    not_trust_domains: tuple[str, ...] = ()
    ip_blocks: tuple[str, ...] = ()
    not_ip_blocks: tuple[str, ...] = ()
    remote_ip_blocks: tuple[str, ...] = ()
    not_remote_ip_blocks: tuple[str, ...] = ()


class From(ProtoMessage, frozen=True, kw_only=True):
    """One alternative of callers."""

    source: Source | None = None


class Operation(ProtoMessage, frozen=True, kw_only=True):
    """What is called; within a field any value may match, all fields must."""

    hosts: tuple[str, ...] = ()
    not_hosts: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    not_ports: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    not_methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    not_paths: tuple[str, ...] = ()


class To(ProtoMessage, frozen=True, kw_only=True):
    """One alternative of operations."""

    operation: Operation | None = None


class Condition(ProtoMessage, frozen=True, kw_only=True):
    """An attribute and the values it must or must not have."""

    key: str = ""
    values: tuple[str, ...] = ()
    not_values: tuple[str, ...] = ()


class Rule(ProtoMessage, frozen=True, kw_only=True):
    """Callers, operations and conditions that must all match; an empty rule matches everything."""

    from_: tuple[From, ...] = field(name="from", default=())
    to: tuple[To, ...] = ()
    when: tuple[Condition, ...] = ()


class ExtensionProvider(ProtoMessage, frozen=True, kw_only=True):
    """The external authorizer of a CUSTOM policy, by its name in the mesh config."""

    name: str = ""


class AuthorizationPolicySpec(ProtoMessage, frozen=True, kw_only=True):
    """Any matching rule triggers the action; no rules: an ALLOW policy that allows nothing."""

    selector: MatchLabels | None = None
    target_ref: PolicyTargetReference | None = None
    target_refs: tuple[PolicyTargetReference, ...] = ()
    rules: tuple[Rule, ...] = ()
    action: Action = "ALLOW"
    provider: ExtensionProvider | None = None


class AuthorizationPolicy(Object, frozen=True, kw_only=True):
    """The kind AuthorizationPolicy of security.istio.io."""

    spec: AuthorizationPolicySpec = AuthorizationPolicySpec()


class ProviderRef(ProtoMessage, frozen=True, kw_only=True):
    """A provider by its name in the mesh config."""

    name: str = ""


class ModeMatch(ProtoMessage, frozen=True, kw_only=True):
    """The direction that tracing or logging is for."""

    mode: TelemetryMode = "CLIENT_AND_SERVER"


class TagLiteral(ProtoMessage, frozen=True, kw_only=True):
    """A constant tag."""

    value: str = ""


class TagEnvironment(ProtoMessage, frozen=True, kw_only=True):
    """A tag from the proxy's environment."""

    name: str = ""
    default_value: str = ""


class TagHeader(ProtoMessage, frozen=True, kw_only=True):
    """A tag from a request header."""

    name: str = ""
    default_value: str = ""


class TagFormatter(ProtoMessage, frozen=True, kw_only=True):
    """A tag in the format of access logs."""

    value: str = ""


class CustomTag(ProtoMessage, frozen=True, kw_only=True):
    """The value of a span's tag: one of these."""

    literal: TagLiteral | None = None
    environment: TagEnvironment | None = None
    header: TagHeader | None = None
    formatter: TagFormatter | None = None


class Tracing(ProtoMessage, frozen=True, kw_only=True):
    """How requests are traced; None inherits."""

    match: ModeMatch | None = None
    providers: tuple[ProviderRef, ...] = ()
    random_sampling_percentage: float | None = None
    disable_span_reporting: bool | None = None
    disable_context_propagation: bool | None = None
    custom_tags: Mapping[str, CustomTag] = {}
    use_request_id_for_trace_sampling: bool | None = None
    enable_istio_tags: bool | None = None


class MetricSelector(ProtoMessage, frozen=True, kw_only=True):
    """A metric, standard or custom, and a direction."""

    metric: Metric | None = None
    custom_metric: str | None = None
    mode: TelemetryMode = "CLIENT_AND_SERVER"


class TagOverride(ProtoMessage, frozen=True, kw_only=True):
    """A change of one dimension of a metric."""

    operation: TagOperation = "UPSERT"
    value: str = ""


class MetricsOverrides(ProtoMessage, frozen=True, kw_only=True):
    """A change of the metrics that match."""

    match: MetricSelector | None = None
    disabled: bool | None = None
    tag_overrides: Mapping[str, TagOverride] = {}


class Metrics(ProtoMessage, frozen=True, kw_only=True):
    """Metrics of some providers and their changes, applied in order."""

    providers: tuple[ProviderRef, ...] = ()
    overrides: tuple[MetricsOverrides, ...] = ()
    reporting_interval: Duration | None = None


class LoggingFilter(ProtoMessage, frozen=True, kw_only=True):
    """A CEL expression over the request."""

    expression: str = ""


class AccessLogging(ProtoMessage, frozen=True, kw_only=True):
    """Access logs of some providers."""

    match: ModeMatch | None = None
    providers: tuple[ProviderRef, ...] = ()
    disabled: bool | None = None
    filter: LoggingFilter | None = None


class TelemetrySpec(ProtoMessage, frozen=True, kw_only=True):
    """What the selected workloads report."""

    selector: MatchLabels | None = None
    target_ref: PolicyTargetReference | None = None
    target_refs: tuple[PolicyTargetReference, ...] = ()
    tracing: tuple[Tracing, ...] = ()
    metrics: tuple[Metrics, ...] = ()
    access_logging: tuple[AccessLogging, ...] = ()


class Telemetry(Object, frozen=True, kw_only=True):
    """The kind Telemetry of telemetry.istio.io."""

    spec: TelemetrySpec = TelemetrySpec()


class TrafficSelector(ProtoMessage, frozen=True, kw_only=True):
    """The direction and the ports that an extension is for."""

    mode: WorkloadMode = "UNDEFINED"
    ports: tuple[PortSelector, ...] = ()


class EnvVar(ProtoMessage, frozen=True, kw_only=True):
    """A variable of the Wasm machine, given or taken from the proxy's environment."""

    name: str = ""
    value_from: EnvValueSource = "INLINE"
    value: str = ""


class VmConfig(ProtoMessage, frozen=True, kw_only=True):
    """Settings of the Wasm machine."""

    env: tuple[EnvVar, ...] = ()


class WasmPluginSpec(ProtoMessage, frozen=True, kw_only=True):
    """A Wasm filter for the selected workloads; higher priority comes first in its phase."""

    selector: MatchLabels | None = None
    target_ref: PolicyTargetReference | None = None
    target_refs: tuple[PolicyTargetReference, ...] = ()
    url: str = ""
    sha256: str = ""
    image_pull_policy: PullPolicy = "UNSPECIFIED_POLICY"
    image_pull_secret: str = ""
    verification_key: str = ""
    plugin_config: FreeForm | None = None
    plugin_name: str = ""
    phase: PluginPhase = "UNSPECIFIED_PHASE"
    priority: Int32 | None = None
    fail_strategy: FailStrategy = "FAIL_CLOSE"
    vm_config: VmConfig | None = None
    match: tuple[TrafficSelector, ...] = ()
    type: PluginType = "UNSPECIFIED_PLUGIN_TYPE"


class WasmPlugin(Object, frozen=True, kw_only=True):
    """The kind WasmPlugin of extensions.istio.io; its resource version is part of what Envoy is told."""

    metadata: VersionedMeta = VersionedMeta()
    spec: WasmPluginSpec = WasmPluginSpec()


class WasmConfig(ProtoMessage, frozen=True, kw_only=True):
    """The Wasm filter of a TrafficExtension."""

    url: str = ""
    sha256: str = ""
    image_pull_policy: PullPolicy = "UNSPECIFIED_POLICY"
    image_pull_secret: str = ""
    verification_key: str = ""
    plugin_config: FreeForm | None = None
    plugin_name: str = ""
    fail_strategy: FailStrategy = "FAIL_CLOSE"
    vm_config: VmConfig | None = None
    type: PluginType = "UNSPECIFIED_PLUGIN_TYPE"


class LuaConfig(ProtoMessage, frozen=True, kw_only=True):
    """The Lua filter of a TrafficExtension."""

    inline_code: str = ""


class TrafficExtensionSpec(ProtoMessage, frozen=True, kw_only=True):
    """A filter, `wasm` or `lua`, for the selected workloads."""

    selector: MatchLabels | None = None
    target_refs: tuple[PolicyTargetReference, ...] = ()
    phase: ExecutionPhase = "UNSPECIFIED"
    priority: Int32 | None = None
    match: tuple[TrafficSelector, ...] = ()
    wasm: WasmConfig | None = None
    lua: LuaConfig | None = None


class TrafficExtension(Object, frozen=True, kw_only=True):
    """The kind TrafficExtension of extensions.istio.io."""

    metadata: VersionedMeta = VersionedMeta()
    spec: TrafficExtensionSpec = TrafficExtensionSpec()
