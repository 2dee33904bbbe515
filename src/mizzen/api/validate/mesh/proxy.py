"""The settings of one proxy: paths, ports, durations and the addresses that it calls."""

from mizzen.api.mesh.proxy import ProxyConfig, Tracing
from mizzen.api.scalars import Duration
from mizzen.api.validate.faults import Faults, at, error, quote
from mizzen.api.validate.values.addresses import is_ip, port_fault
from mizzen.api.validate.values.names import fqdn_fault
from mizzen.api.validate.values.numbers import SECOND, duration_fault
from mizzen.api.validate.workload import check_probe

_NO_DISCOVERY = "discovery address must be set to the proxy discovery service"


def check_proxy_settings(settings: ProxyConfig, path: str) -> Faults:
    """All rules of a proxy's settings."""
    for field, words, value in (
        ("configPath", "config path must be set", settings.config_path),
        ("binaryPath", "binary path must be set", settings.binary_path),
        (
            "serviceCluster",
            "oneof service cluster or tracing service name must be specified",
            settings.service_cluster or settings.tracing_service_name,
        ),
    ):
        if not value:
            yield error(f"{path}.{field}", words)
    for field, words, duration in (
        ("drainDuration", "drain", settings.drain_duration),
        ("terminationDrainDuration", "termination drain", settings.termination_drain_duration),
    ):
        fault = _whole_seconds_fault(duration)
        yield from at(f"{path}.{field}", fault and f"invalid {words} duration: {fault}")
    fault = address_fault(settings.discovery_address) if settings.discovery_address else None
    missing = None if settings.discovery_address else _NO_DISCOVERY
    yield from at(f"{path}.discoveryAddress", missing or (fault and f"invalid discovery address: {fault}"))
    yield from _check_addresses(settings, path)
    for field, words, port in (
        ("proxyAdminPort", "proxy admin", settings.proxy_admin_port),
        ("statusPort", "status", settings.status_port),
    ):
        fault = port_fault(port)
        yield from at(f"{path}.{field}", fault and f"invalid {words} port: {fault}")
    if settings.readiness_probe is not None:
        yield from check_probe(settings.readiness_probe, f"{path}.readinessProbe")


def _whole_seconds_fault(duration: Duration | None) -> str | None:
    fault = duration_fault(duration)
    if fault is None and duration is not None and duration % SECOND:
        return "only durations to seconds precision are supported"
    return fault


def address_fault(address: str) -> str | None:
    """What is wrong with the address of a service: a name or an IP address, and a port."""
    host, colon, port = address.rpartition(":")
    if not colon:
        return f"unable to split {quote(address)}: missing port in address"
    if not port.isascii() or not port.isdigit():
        return f"port ({port}) is not a number"
    literal = host.removeprefix("[").removesuffix("]")
    no_port = port_fault(int(port[:10]))
    return no_port or (None if is_ip(literal) else fqdn_fault(host))


def _check_addresses(settings: ProxyConfig, path: str) -> Faults:
    services = (
        ("statsdUdpAddress", "statsd udp", settings.statsd_udp_address),
        ("envoyMetricsServiceAddress", "envoy metrics service", settings.envoy_metrics_service_address),
        ("zipkinAddress", "zipkin", settings.zipkin_address),
    )
    for field, words, address in services:
        yield from _check_address(address, words, f"{path}.{field}")
    for field, words, service in (
        ("envoyMetricsService", "envoy metrics service", settings.envoy_metrics_service),
        ("envoyAccessLogService", "envoy access log service", settings.envoy_access_log_service),
    ):
        if service is not None:
            yield from _check_address(service.address, words, f"{path}.{field}.address")
    if settings.tracing is not None:
        yield from _check_tracing(settings.tracing, f"{path}.tracing")


def _check_address(address: str, words: str, path: str) -> Faults:
    fault = address_fault(address) if address else None
    yield from at(path, fault and f"invalid {words} address {quote(address)}: {fault}")


def _check_tracing(tracing: Tracing, path: str) -> Faults:
    """A tracer needs an address; Datadog's may name the node it runs on by an environment variable."""
    if tracing.zipkin is not None:
        fault = address_fault(tracing.zipkin.address)
        yield from at(f"{path}.zipkin.address", fault and f"invalid zipkin address: {fault}")
    if tracing.lightstep is not None:
        fault = address_fault(tracing.lightstep.address)
        yield from at(f"{path}.lightstep.address", fault and f"invalid lightstep address: {fault}")
        if not tracing.lightstep.access_token:
            yield error(f"{path}.lightstep.accessToken", "access token is required")
    if tracing.datadog is not None and not tracing.datadog.address.startswith("$("):
        fault = address_fault(tracing.datadog.address)
        yield from at(f"{path}.datadog.address", fault and f"invalid datadog address: {fault}")
    if not 0 <= tracing.sampling <= 100:
        yield error(f"{path}.sampling", "sampling must be in range [0.0, 100.0]")
