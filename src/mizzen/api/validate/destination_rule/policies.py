"""Policies: how clients talk to a destination, whole or port by port."""

from mizzen.api.networking.traffic_policy import (
    ClientTLSSettings,
    ConnectionPoolSettings,
    HTTPSettings,
    OutlierDetection,
    PortTrafficPolicy,
    TCPSettings,
    TrafficPolicy,
    TunnelSettings,
)
from mizzen.api.validate.destination_rule.balancing import check_load_balancer
from mizzen.api.validate.faults import Faults, at, error, errors_only, warning
from mizzen.api.validate.values.addresses import ip_fault, port_fault
from mizzen.api.validate.values.names import fqdn_fault
from mizzen.api.validate.values.numbers import duration_fault, percent_fault

_CONFIG_MAP = "configmap://"
_DEPRECATED_ERRORS = (
    "outlier detection consecutive errors is deprecated, use consecutiveGatewayErrors or consecutive5xxErrors instead"
)
_UNSPLIT_ERRORS = (
    "outlier detection consecutive local origin failures is specified, but split external local origin errors is set "
    "to false"
)


def check_traffic_policy(policy: TrafficPolicy, namespace: str, path: str) -> Faults:
    """The policy of a host or a subset, in a DestinationRule of `namespace`."""
    if policy == TrafficPolicy():
        yield error(path, "traffic policy must have at least one field")
    if policy.tunnel is not None and policy.proxy_protocol is not None:
        yield error(path, "tunnel and proxyProtocol must not be set together")
    yield from _check_common(policy, namespace, path)
    for index, port in enumerate(policy.port_level_settings):
        yield from _check_port_policy(port, namespace, f"{path}.portLevelSettings[{index}]")
    if policy.tunnel is not None:
        yield from _check_tunnel(policy.tunnel, f"{path}.tunnel")


def _check_port_policy(policy: PortTrafficPolicy, namespace: str, path: str) -> Faults:
    """The policy of one port; as in the reference, warnings of it are kept back."""
    if policy.port is None:
        yield error(f"{path}.port", "portTrafficPolicy must have valid port")
    settings = (policy.load_balancer, policy.connection_pool, policy.outlier_detection, policy.tls)
    if all(setting is None for setting in settings):
        yield error(path, "port traffic policy must have at least one field")
    yield from errors_only(_check_common(policy, namespace, path))


def _check_common(policy: TrafficPolicy | PortTrafficPolicy, namespace: str, path: str) -> Faults:
    if policy.outlier_detection is not None:
        yield from check_outlier_detection(policy.outlier_detection, f"{path}.outlierDetection")
    if policy.connection_pool is not None:
        yield from check_connection_pool(policy.connection_pool, f"{path}.connectionPool")
    if policy.load_balancer is not None:
        ejects = policy.outlier_detection is not None
        yield from check_load_balancer(policy.load_balancer, f"{path}.loadBalancer", ejects=ejects)
    if policy.tls is not None:
        yield from check_client_tls(policy.tls, namespace, f"{path}.tls")


def check_outlier_detection(detection: OutlierDetection, path: str) -> Faults:
    """When endpoints are ejected."""
    yield from at(f"{path}.interval", duration_fault(detection.interval))
    yield from at(f"{path}.baseEjectionTime", duration_fault(detection.base_ejection_time))
    if detection.consecutive_errors:
        yield warning(f"{path}.consecutiveErrors", _DEPRECATED_ERRORS)
    if detection.consecutive_local_origin_failures and not detection.split_external_local_origin_errors:
        yield error(f"{path}.consecutiveLocalOriginFailures", _UNSPLIT_ERRORS)
    yield from at(f"{path}.maxEjectionPercent", percent_fault(detection.max_ejection_percent))
    yield from at(f"{path}.minHealthPercent", percent_fault(detection.min_health_percent))


def check_connection_pool(pool: ConnectionPoolSettings, path: str) -> Faults:
    """The circuit breakers of a destination."""
    if pool.http is None and pool.tcp is None:
        yield error(path, "connection pool must have at least one field")
    if pool.http is not None:
        yield from _check_http_pool(pool.http, f"{path}.http")
    if pool.tcp is not None:
        yield from _check_tcp_pool(pool.tcp, f"{path}.tcp")


def _check_http_pool(pool: HTTPSettings, path: str) -> Faults:
    limits = (
        ("http1MaxPendingRequests", "http1 max pending requests", pool.http1_max_pending_requests),
        ("http2MaxRequests", "http2 max requests", pool.http2_max_requests),
        ("maxRequestsPerConnection", "max requests per connection", pool.max_requests_per_connection),
        ("maxRetries", "max retries", pool.max_retries),
        ("maxConcurrentStreams", "max concurrent streams", pool.max_concurrent_streams),
    )
    for field, words, limit in limits:
        if limit < 0:
            yield error(f"{path}.{field}", f"{words} must be non-negative")
    yield from at(f"{path}.idleTimeout", duration_fault(pool.idle_timeout))
    if pool.use_client_protocol and pool.h2_upgrade_policy == "UPGRADE":
        message = "use client protocol must not be true when H2UpgradePolicy is UPGRADE"
        yield error(f"{path}.useClientProtocol", message)
    if pool.http2_keep_alive is not None:
        spans = (("interval", pool.http2_keep_alive.interval), ("timeout", pool.http2_keep_alive.timeout))
        for field, span in spans:
            missing = f"http2 keepalive {field} is required" if span is None else None
            yield from at(f"{path}.http2KeepAlive.{field}", missing or duration_fault(span))


def _check_tcp_pool(pool: TCPSettings, path: str) -> Faults:
    if pool.max_connections < 0:
        yield error(f"{path}.maxConnections", "max connections must be non-negative")
    yield from at(f"{path}.connectTimeout", duration_fault(pool.connect_timeout))
    yield from at(f"{path}.maxConnectionDuration", duration_fault(pool.max_connection_duration))
    # Zero turns the timeout off.
    yield from at(f"{path}.idleTimeout", duration_fault(pool.idle_timeout or None))


def _check_tunnel(tunnel: TunnelSettings, path: str) -> Faults:
    if tunnel.protocol not in ("", "CONNECT", "POST"):
        yield error(f"{path}.protocol", 'tunnel protocol must be "CONNECT" or "POST"')
    no_name, no_ip = fqdn_fault(tunnel.target_host), ip_fault(tunnel.target_host)
    if no_name and no_ip:
        yield error(f"{path}.targetHost", f"tunnel target host must be valid FQDN or IP address: {no_name}; {no_ip}")
    no_port = port_fault(tunnel.target_port)
    yield from at(f"{path}.targetPort", no_port and f"tunnel target port is invalid: {no_port}")


def check_client_tls(tls: ClientTLSSettings, namespace: str, path: str) -> Faults:
    """TLS towards a destination: where certificates come from, which is not checked where a secret holds them."""
    unnamed = tls.ca_certificates or tls.subject_alt_names
    if tls.insecure_skip_verify and tls.mode == "SIMPLE" and (unnamed or tls.credential_name):
        what = "CaCertificates or CredentialName or SubjectAltNames"
        yield error(path, f"cannot specify {what} when InsecureSkipVerify is set true")
    if tls.insecure_skip_verify and tls.mode == "MUTUAL" and unnamed:
        message = "cannot specify CaCertificates or SubjectAltNames when InsecureSkipVerify is set true"
        yield error(path, message)
    if tls.credential_name.startswith(_CONFIG_MAP):
        reason = _config_map_fault(tls.credential_name, namespace)
        yield from at(f"{path}.credentialName", reason and f"invalid configmap:// credentialName: {reason}")
    if tls.mode in ("SIMPLE", "MUTUAL") and tls.credential_name:
        if tls.client_certificate or tls.ca_certificates or tls.private_key or tls.ca_crl:
            what = "client certificates or CA certificate or CA CRL"
            yield error(path, f"cannot specify {what} If credentialName is set")
    elif tls.mode == "MUTUAL":
        for field, words, value in (
            ("clientCertificate", "client certificate", tls.client_certificate),
            ("privateKey", "private key", tls.private_key),
        ):
            if not value:
                yield error(f"{path}.{field}", f"{words} required for mutual tls")


def _config_map_fault(credential: str, own: str) -> str | None:
    """A ConfigMap is named with its namespace, which has to be the DestinationRule's own."""
    namespace, _, name = credential.removeprefix(_CONFIG_MAP).partition("/")
    if not namespace or not name or "/" in name:
        return f"{credential} is not of the form configmap://<namespace>/<name>"
    return None if namespace == own else f"{credential} is not in the namespace of the destination rule, {own}"
