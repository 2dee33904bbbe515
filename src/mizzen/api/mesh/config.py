"""MeshConfig: settings that hold for all proxies of the mesh and for the control plane."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from mizzen.api.mesh.providers import ExtensionProvider
from mizzen.api.mesh.proxy import ProxyConfig
from mizzen.api.message import ProtoMessage
from mizzen.api.networking.traffic_policy import (
    ClientTLSSettings,
    ConnectionPoolSettings,
    LocalityLoadBalancerSetting,
    OutlierDetection,
    TcpKeepalive,
    ZoneAwareLoadBalancerSetting,
)
from mizzen.api.networking.virtual_service import HTTPRetry
from mizzen.api.scalars import Duration, Int32

IngressControllerMode = Literal["UNSPECIFIED", "OFF", "DEFAULT", "STRICT"]
AccessLogEncoding = Literal["TEXT", "JSON"]
MeshH2UpgradePolicy = Literal["DO_NOT_UPGRADE", "UPGRADE"]
OutboundMode = Literal["REGISTRY_ONLY", "ALLOW_ANY", "ALLOW_ANY_DYNAMIC_DNS"]
InboundMode = Literal["PASSTHROUGH", "LOCALHOST"]
ServiceScope = Literal["LOCAL", "GLOBAL"]
NormalizationType = Literal["DEFAULT", "NONE", "BASE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES"]
TLSProtocol = Literal["TLS_AUTO", "TLSV1_2", "TLSV1_3"]
Visibility = Literal["VISIBILITY_UNSPECIFIED", "NONE", "NAMESPACE", "PUBLIC"]
SubscribedResource = Literal["SERVICE_REGISTRY"]


class LabelSelectorRequirement(ProtoMessage, frozen=True, kw_only=True):
    """One expression of a selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ProtoMessage, frozen=True, kw_only=True):
    """Objects whose labels hold all of this."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class OutboundTrafficPolicy(ProtoMessage, frozen=True, kw_only=True):
    """What happens to calls of unknown hosts; `tls` is for those resolved by DNS as they come."""

    mode: OutboundMode = "REGISTRY_ONLY"
    tls: ClientTLSSettings | None = None


class InboundTrafficPolicy(ProtoMessage, frozen=True, kw_only=True):
    """The address at which an application is reached by its own proxy."""

    mode: InboundMode = "PASSTHROUGH"


class ConfigSource(ProtoMessage, frozen=True, kw_only=True):
    """Where configuration comes from."""

    address: str = ""
    tls_settings: ClientTLSSettings | None = None
    subscribed_resources: tuple[SubscribedResource, ...] = ()


class CertificateData(ProtoMessage, frozen=True, kw_only=True):
    """A further root of trust: PEM, or where its SPIFFE bundle is fetched."""

    pem: str | None = None
    spiffe_bundle_url: str | None = None
    cert_signers: tuple[str, ...] = ()
    trust_domains: tuple[str, ...] = ()


class Certificate(ProtoMessage, frozen=True, kw_only=True):
    """Deprecated and without effect."""

    secret_name: str = ""
    dns_names: tuple[str, ...] = ()


class Settings(ProtoMessage, frozen=True, kw_only=True):
    """Whether a service's endpoints in other clusters count."""

    cluster_local: bool = False


class ServiceSettings(ProtoMessage, frozen=True, kw_only=True):
    """Settings of the services that match the hosts."""

    settings: Settings | None = None
    hosts: tuple[str, ...] = ()


class ServiceScopeConfigs(ProtoMessage, frozen=True, kw_only=True):
    """Which services are global (ambient mode)."""

    namespace_selector: LabelSelector | None = None
    services_selector: LabelSelector | None = None
    scope: ServiceScope = "LOCAL"


class CA(ProtoMessage, frozen=True, kw_only=True):
    """An external certificate authority."""

    address: str = ""
    tls_settings: ClientTLSSettings | None = None
    request_timeout: Duration | None = None
    istiod_side: bool = False


class DefaultProviders(ProtoMessage, frozen=True, kw_only=True):
    """Providers in force where no Telemetry names any."""

    tracing: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    access_logging: tuple[str, ...] = ()


class ProxyPathNormalization(ProtoMessage, frozen=True, kw_only=True):
    """How paths are normalised before they are matched; DEFAULT is BASE."""

    normalization: NormalizationType = "DEFAULT"


class TLSConfig(ProtoMessage, frozen=True, kw_only=True):
    """Parameters of TLS."""

    min_protocol_version: TLSProtocol = "TLS_AUTO"
    ecdh_curves: tuple[str, ...] = ()
    cipher_suites: tuple[str, ...] = ()


class DefaultTrafficPolicy(ProtoMessage, frozen=True, kw_only=True):
    """What stands under every DestinationRule."""

    connection_pool: ConnectionPoolSettings | None = None
    outlier_detection: OutlierDetection | None = None


class VisibilityMatchRule(ProtoMessage, frozen=True, kw_only=True):
    """The namespaces that a visibility is for."""

    namespace_selector: LabelSelector | None = None


class VisibilityPolicy(ProtoMessage, frozen=True, kw_only=True):
    """A visibility and whom it is for."""

    visibility: Visibility = "VISIBILITY_UNSPECIFIED"
    matching_rules: tuple[VisibilityMatchRule, ...] = ()


class ServiceEntryVisibility(ProtoMessage, frozen=True, kw_only=True):
    """How far ServiceEntries reach (ambient mode, and sidecars if told so)."""

    default_visibility: Visibility = "VISIBILITY_UNSPECIFIED"
    apply_to_sidecars: bool = False
    policies: tuple[VisibilityPolicy, ...] = ()


class MeshConfig(ProtoMessage, frozen=True, kw_only=True):
    """Settings of the mesh; the defaults here are protobuf's zeros, those in force are in `merge`."""

    proxy_listen_port: Int32 = 0
    proxy_inbound_listen_port: Int32 = 0
    proxy_http_port: Int32 = 0
    connect_timeout: Duration | None = None
    hbone_idle_timeout: Duration | None = None
    protocol_detection_timeout: Duration | None = None
    tcp_keepalive: TcpKeepalive | None = None
    ingress_class: str = ""
    ingress_service: str = ""
    ingress_controller_mode: IngressControllerMode = "UNSPECIFIED"
    ingress_selector: str = ""
    enable_tracing: bool = False
    access_log_file: str = ""
    access_log_format: str = ""
    access_log_encoding: AccessLogEncoding = "TEXT"
    enable_envoy_access_log_service: bool = False
    disable_envoy_listener_log: bool = False
    default_config: ProxyConfig | None = None
    outbound_traffic_policy: OutboundTrafficPolicy | None = None
    inbound_traffic_policy: InboundTrafficPolicy | None = None
    config_sources: tuple[ConfigSource, ...] = ()
    enable_auto_mtls: bool | None = None
    trust_domain: str = ""
    trust_domain_aliases: tuple[str, ...] = ()
    ca_certificates: tuple[CertificateData, ...] = ()
    default_service_export_to: tuple[str, ...] = ()
    default_virtual_service_export_to: tuple[str, ...] = ()
    default_destination_rule_export_to: tuple[str, ...] = ()
    root_namespace: str = ""
    locality_lb_setting: LocalityLoadBalancerSetting | None = None
    zone_aware_lb_setting: ZoneAwareLoadBalancerSetting | None = None
    dns_refresh_rate: Duration | None = None
    h2_upgrade_policy: MeshH2UpgradePolicy = "DO_NOT_UPGRADE"
    inbound_cluster_stat_name: str = ""
    outbound_cluster_stat_name: str = ""
    certificates: tuple[Certificate, ...] = ()
    service_settings: tuple[ServiceSettings, ...] = ()
    service_scope_configs: tuple[ServiceScopeConfigs, ...] = ()
    enable_prometheus_merge: bool | None = None
    verify_certificate_at_client: bool | None = None
    ca: CA | None = None
    extension_providers: tuple[ExtensionProvider, ...] = ()
    default_providers: DefaultProviders | None = None
    discovery_selectors: tuple[LabelSelector, ...] = ()
    path_normalization: ProxyPathNormalization | None = None
    default_http_retry_policy: HTTPRetry | None = None
    mesh_mtls: TLSConfig | None = field(name="meshMTLS", default=None)
    tls_defaults: TLSConfig | None = None
    default_traffic_policy: DefaultTrafficPolicy | None = None
    service_entry_visibility: ServiceEntryVisibility | None = None
