"""How a client talks to a destination: load balancing, connection pools, outlier detection and TLS.

These shapes stand in a DestinationRule at the host, a subset and a port; a Sidecar and the mesh config use
parts of them too.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from mizzen.api.message import ProtoMessage
from mizzen.api.networking.destination import PortSelector
from mizzen.api.scalars import Duration, Int32, UInt32, UInt64

SimpleLB = Literal["UNSPECIFIED", "LEAST_CONN", "RANDOM", "PASSTHROUGH", "ROUND_ROBIN", "LEAST_REQUEST"]
H2UpgradePolicy = Literal["DEFAULT", "DO_NOT_UPGRADE", "UPGRADE"]
ClientTLSMode = Literal["DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"]
ProxyProtocolVersion = Literal["V1", "V2"]


class HTTPCookieAttribute(ProtoMessage, frozen=True, kw_only=True):
    """An attribute of a generated cookie, such as SameSite."""

    name: str = ""
    value: str = ""


class HTTPCookie(ProtoMessage, frozen=True, kw_only=True):
    """The cookie to hash on; with a `ttl` it is generated where it is missing."""

    name: str = ""
    path: str = ""
    ttl: Duration | None = None
    attributes: tuple[HTTPCookieAttribute, ...] = ()


class RingHash(ProtoMessage, frozen=True, kw_only=True):
    """Consistent hashing on a ring."""

    minimum_ring_size: UInt64 = 0


class MagLev(ProtoMessage, frozen=True, kw_only=True):
    """Consistent hashing by Maglev's table."""

    table_size: UInt64 = 0


class ConsistentHashLB(ProtoMessage, frozen=True, kw_only=True):
    """What to hash on (one of the first four) and how (`ring_hash` or `maglev`)."""

    http_header_name: str | None = None
    http_cookie: HTTPCookie | None = None
    use_source_ip: bool | None = None
    http_query_parameter_name: str | None = None
    ring_hash: RingHash | None = None
    maglev: MagLev | None = None
    minimum_ring_size: UInt64 = 0
    """Deprecated spelling of `ring_hash.minimum_ring_size`."""


class Distribute(ProtoMessage, frozen=True, kw_only=True):
    """Shares of traffic, in percent, from one locality to others."""

    from_: str = field(name="from", default="")
    to: Mapping[str, UInt32] = {}


class Failover(ProtoMessage, frozen=True, kw_only=True):
    """The region that takes over from another."""

    from_: str = field(name="from", default="")
    to: str = ""


class LocalityLoadBalancerSetting(ProtoMessage, frozen=True, kw_only=True):
    """Locality weights and failover; effective only with outlier detection."""

    distribute: tuple[Distribute, ...] = ()
    failover: tuple[Failover, ...] = ()
    failover_priority: tuple[str, ...] = ()
    enabled: bool | None = None


class ZoneAwareLoadBalancerSetting(ProtoMessage, frozen=True, kw_only=True):
    """Zone-aware routing, with failover as for localities."""

    enabled: bool | None = None
    failover: tuple[Failover, ...] = ()
    failover_priority: tuple[str, ...] = ()
    min_cluster_size: UInt64 | None = None


class WarmupConfiguration(ProtoMessage, frozen=True, kw_only=True):
    """Slow start of endpoints that have just appeared."""

    duration: Duration | None = None
    minimum_percent: float | None = None
    aggression: float | None = None


class LoadBalancerSettings(ProtoMessage, frozen=True, kw_only=True):
    """`simple` or `consistent_hash`, and what else steers the choice of endpoints."""

    simple: SimpleLB | None = None
    consistent_hash: ConsistentHashLB | None = None
    locality_lb_setting: LocalityLoadBalancerSetting | None = None
    zone_aware_lb_setting: ZoneAwareLoadBalancerSetting | None = None
    warmup_duration_secs: Duration | None = None
    """Deprecated spelling of `warmup.duration`."""
    warmup: WarmupConfiguration | None = None


class TcpKeepalive(ProtoMessage, frozen=True, kw_only=True):
    """Keepalive probes of the socket."""

    probes: UInt32 = 0
    time: Duration | None = None
    interval: Duration | None = None


class TCPSettings(ProtoMessage, frozen=True, kw_only=True):
    """Limits and timeouts of connections, for HTTP and TCP alike."""

    max_connections: Int32 = 0
    connect_timeout: Duration | None = None
    tcp_keepalive: TcpKeepalive | None = None
    max_connection_duration: Duration | None = None
    idle_timeout: Duration | None = None


class ConnectionKeepalive(ProtoMessage, frozen=True, kw_only=True):
    """HTTP/2 PING frames."""

    interval: Duration | None = None
    timeout: Duration | None = None


class HTTPSettings(ProtoMessage, frozen=True, kw_only=True):
    """Limits of requests and the HTTP version spoken to the destination."""

    http1_max_pending_requests: Int32 = 0
    http2_max_requests: Int32 = 0
    max_requests_per_connection: Int32 = 0
    max_retries: Int32 = 0
    idle_timeout: Duration | None = None
    h2_upgrade_policy: H2UpgradePolicy = "DEFAULT"
    use_client_protocol: bool = False
    max_concurrent_streams: Int32 = 0
    http2_keep_alive: ConnectionKeepalive | None = None


class ConnectionPoolSettings(ProtoMessage, frozen=True, kw_only=True):
    """The circuit breakers of a destination."""

    tcp: TCPSettings | None = None
    http: HTTPSettings | None = None


class OutlierDetection(ProtoMessage, frozen=True, kw_only=True):
    """When an endpoint is ejected for its errors."""

    consecutive_errors: Int32 = 0
    """Deprecated spelling of `consecutive_gateway_errors`."""
    split_external_local_origin_errors: bool = False
    consecutive_local_origin_failures: UInt32 | None = None
    consecutive_gateway_errors: UInt32 | None = None
    consecutive_5xx_errors: UInt32 | None = field(name="consecutive5xxErrors", default=None)
    interval: Duration | None = None
    base_ejection_time: Duration | None = None
    max_ejection_percent: Int32 = 0
    min_health_percent: Int32 = 0
    outlier_detection_http_error_codes: tuple[UInt32, ...] = ()


class ClientTLSSettings(ProtoMessage, frozen=True, kw_only=True):
    """TLS towards a destination."""

    mode: ClientTLSMode = "DISABLE"
    client_certificate: str = ""
    private_key: str = ""
    ca_certificates: str = ""
    credential_name: str = ""
    subject_alt_names: tuple[str, ...] = ()
    sni: str = ""
    insecure_skip_verify: bool | None = None
    ca_crl: str = ""


class PortTrafficPolicy(ProtoMessage, frozen=True, kw_only=True):
    """The policy of one port, which replaces that of the host field by field."""

    port: PortSelector | None = None
    load_balancer: LoadBalancerSettings | None = None
    connection_pool: ConnectionPoolSettings | None = None
    outlier_detection: OutlierDetection | None = None
    tls: ClientTLSSettings | None = None


class TunnelSettings(ProtoMessage, frozen=True, kw_only=True):
    """CONNECT or POST tunnelling of TCP."""

    protocol: str = ""
    target_host: str = ""
    target_port: UInt32 = 0


class ProxyProtocol(ProtoMessage, frozen=True, kw_only=True):
    """The PROXY protocol header sent upstream."""

    version: ProxyProtocolVersion = "V1"


class RetryBudget(ProtoMessage, frozen=True, kw_only=True):
    """Retries as a share of active requests."""

    percent: float | None = None
    min_retry_concurrency: UInt32 = 0
    budget_interval: Duration | None = None


class TrafficPolicy(ProtoMessage, frozen=True, kw_only=True):
    """All that applies to the traffic of a host or a subset."""

    load_balancer: LoadBalancerSettings | None = None
    connection_pool: ConnectionPoolSettings | None = None
    outlier_detection: OutlierDetection | None = None
    tls: ClientTLSSettings | None = None
    port_level_settings: tuple[PortTrafficPolicy, ...] = ()
    tunnel: TunnelSettings | None = None
    proxy_protocol: ProxyProtocol | None = None
    retry_budget: RetryBudget | None = None
