"""MeshConfig: ports, timeouts, trust domains, TLS and what stands under every DestinationRule."""

from mizzen.api.mesh.config import MeshConfig, TLSConfig
from mizzen.api.message import names
from mizzen.api.validate.destination_rule.balancing import check_localities, check_zones
from mizzen.api.validate.destination_rule.policies import check_connection_pool, check_outlier_detection
from mizzen.api.validate.faults import Faults, at, error, list_of, warning
from mizzen.api.validate.mesh.providers import check_providers
from mizzen.api.validate.mesh.proxy import check_proxy_settings
from mizzen.api.validate.values.addresses import port_fault
from mizzen.api.validate.values.names import is_label
from mizzen.api.validate.values.numbers import MILLISECOND, SECOND, duration_fault, duration_text

_SHORTEST_CONNECT, _LONGEST_CONNECT = MILLISECOND, 3600 * SECOND
_CURVES = names("P-224 P-256 P-384 P-521 X25519 X25519Kyber768Draft00 X25519MLKEM768")


def check_mesh_config(config: MeshConfig) -> Faults:
    """All rules of a mesh config."""
    for field, words, port in (
        ("proxyListenPort", "proxy listen port", config.proxy_listen_port),
        ("proxyInboundListenPort", "proxy inbound listen port", config.proxy_inbound_listen_port),
    ):
        fault = port_fault(port)
        yield from at(field, fault and f"invalid {words}: {fault}")
    if config.proxy_http_port:
        fault = port_fault(config.proxy_http_port)
        yield from at("proxyHttpPort", fault and f"invalid proxy HTTP port: {fault}")
    yield from _check_timeouts(config)
    if config.default_config is None:
        yield error("defaultConfig", "missing default config")
    else:
        yield from check_proxy_settings(config.default_config, "defaultConfig")
    yield from _check_trust_domains(config)
    yield from _check_tls(config)
    yield from _check_traffic(config)
    yield from check_providers(config.extension_providers, "extensionProviders")


def _check_timeouts(config: MeshConfig) -> Faults:
    connect = config.connect_timeout
    fault = "duration is not set" if connect is None else duration_fault(connect)
    if fault is None and connect is not None and not _SHORTEST_CONNECT <= connect <= _LONGEST_CONNECT:
        limits = f">{duration_text(_SHORTEST_CONNECT)} and <{duration_text(_LONGEST_CONNECT)}"
        fault = f"time {duration_text(connect)} must be {limits}"
    yield from at("connectTimeout", fault and f"invalid connect timeout: {fault}")
    # No detection at all is fine: zero turns it off.
    fault = duration_fault(config.protocol_detection_timeout or None)
    yield from at("protocolDetectionTimeout", fault and f"invalid protocol detection timeout: {fault}")


def _check_trust_domains(config: MeshConfig) -> Faults:
    fault = _trust_domain_fault(config.trust_domain)
    yield from at("trustDomain", fault and f"trustDomain: {fault}")
    for index, alias in enumerate(config.trust_domain_aliases):
        fault = _trust_domain_fault(alias)
        here = f"trustDomainAliases[{index}]"
        yield from at(here, fault and f"{here}, domain `{alias}` : {fault}")


def _trust_domain_fault(domain: str) -> str | None:
    if not domain:
        return "empty domain name not allowed"
    labels = domain.split(".")
    # A trailing dot is allowed, as in names of the DNS.
    if all(map(is_label, labels if labels[-1] else labels[:-1])):
        return None
    return f'trust domain name "{domain}" invalid'


def _check_tls(config: MeshConfig) -> Faults:
    if config.mesh_mtls is not None and config.mesh_mtls.ecdh_curves:
        yield error("meshMTLS.ecdhCurves", "mesh TLS does not support ECDH curves configuration")
    if config.tls_defaults is not None:
        yield from _check_curves(config.tls_defaults, "tlsDefaults.ecdhCurves")


def _check_curves(tls: TLSConfig, path: str) -> Faults:
    curves = tls.ecdh_curves
    unknown = sorted({curve for curve in curves if curve not in _CURVES})
    repeated = sorted({curve for curve in curves if curves.count(curve) > 1} - set(unknown))
    for word, found in (("unrecognized", unknown), ("duplicate", repeated)):
        if found:
            yield warning(path, f"detected {word} ECDH curves: {list_of(found)}")


def _check_traffic(config: MeshConfig) -> Faults:
    """What a DestinationRule may say as well; failover without outlier detection is a matter of each host there."""
    if config.locality_lb_setting is not None:
        yield from check_localities(config.locality_lb_setting, "localityLbSetting", ejects=True)
    if config.zone_aware_lb_setting is not None:
        yield from check_zones(config.zone_aware_lb_setting, "zoneAwareLbSetting", ejects=True)
    policy = config.default_traffic_policy
    if policy is not None and policy.connection_pool is not None:
        yield from check_connection_pool(policy.connection_pool, "defaultTrafficPolicy.connectionPool")
    if policy is not None and policy.outlier_detection is not None:
        yield from check_outlier_detection(policy.outlier_detection, "defaultTrafficPolicy.outlierDetection")
