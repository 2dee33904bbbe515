"""The mesh's settings in force: the reference's defaults, and what a user wrote laid over them.

Fields that are written replace those below them, whole; three are merged further, as Istio does: `defaultConfig`
field by field, the maps `proxyMetadata` and the first level of `proxyHeaders` in it, and `extensionProviders` by name
(the user's first). A field at fault keeps the value below it and yields a Problem; where the text came from is the
caller's to tell. No CRD stands before these settings, so they are read as protobuf's JSON.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec.structs import fields, replace

from mizzen.api.careful import build, read_fields
from mizzen.api.mesh.config import (
    DefaultProviders,
    InboundTrafficPolicy,
    MeshConfig,
    OutboundTrafficPolicy,
)
from mizzen.api.mesh.networks import MeshNetworks
from mizzen.api.mesh.providers import (
    EnvoyFileAccessLogProvider,
    ExtensionProvider,
    PrometheusMetricsProvider,
    StackdriverProvider,
)
from mizzen.api.mesh.proxy import ProxyConfig, ProxyHeaders
from mizzen.api.message import Message
from mizzen.api.networking.traffic_policy import LocalityLoadBalancerSetting
from mizzen.api.problems import Problem
from mizzen.api.scalars import Duration

Problems = tuple[Problem, ...]


@cache
def default_proxy_config() -> ProxyConfig:
    """The settings of a proxy that nobody configured."""
    return ProxyConfig(
        config_path="./etc/istio/proxy",
        binary_path="/usr/local/bin/envoy",
        service_cluster="istio-proxy",
        drain_duration=Duration.of(seconds=45),
        termination_drain_duration=Duration.of(seconds=5),
        discovery_address="istiod.istio-system.svc:15012",
        proxy_admin_port=15000,
        status_port=15020,
        control_plane_auth_policy="MUTUAL_TLS",
        stat_name_length=189,
    )


@cache
def default_mesh_config() -> MeshConfig:
    """The settings of a mesh that nobody configured."""
    return MeshConfig(
        proxy_listen_port=15001,
        proxy_inbound_listen_port=15006,
        connect_timeout=Duration.of(seconds=10),
        dns_refresh_rate=Duration.of(seconds=60),
        protocol_detection_timeout=Duration(0),
        ingress_class="istio",
        ingress_service="istio-ingressgateway",
        ingress_controller_mode="STRICT",
        enable_tracing=True,
        default_config=default_proxy_config(),
        outbound_traffic_policy=OutboundTrafficPolicy(mode="ALLOW_ANY"),
        inbound_traffic_policy=InboundTrafficPolicy(mode="PASSTHROUGH"),
        enable_auto_mtls=True,
        trust_domain="cluster.local",
        default_service_export_to=("*",),
        default_virtual_service_export_to=("*",),
        default_destination_rule_export_to=("*",),
        root_namespace="istio-system",
        locality_lb_setting=LocalityLoadBalancerSetting(enabled=True),
        enable_prometheus_merge=True,
        default_providers=DefaultProviders(),
        extension_providers=(
            ExtensionProvider(name="prometheus", prometheus=PrometheusMetricsProvider()),
            ExtensionProvider(name="stackdriver", stackdriver=StackdriverProvider()),
            ExtensionProvider(name="envoy", envoy_file_access_log=EnvoyFileAccessLogProvider(path="/dev/stdout")),
        ),
    )


def merge_mesh_config(raw: object, base: MeshConfig | None = None) -> tuple[MeshConfig, Problems]:
    """The mesh config that a user wrote (`raw`, its YAML as plain data) over `base`, by default the defaults."""
    below = base or default_mesh_config()
    plain, problems = _read(raw, MeshConfig)
    changes = _written(plain, MeshConfig)
    if "default_config" in changes:
        changes["default_config"] = _over_proxy_config(plain["defaultConfig"], below.default_config)
    if "extension_providers" in changes:
        own = {provider.name for provider in changes["extension_providers"]}
        kept = tuple(provider for provider in below.extension_providers if provider.name not in own)
        changes["extension_providers"] += kept
    if "trust_domain_aliases" in changes:
        aliases = {*changes["trust_domain_aliases"], *below.trust_domain_aliases}
        changes["trust_domain_aliases"] = tuple(sorted(aliases))
    return replace(below, **changes), problems


def merge_proxy_config(raw: object, base: ProxyConfig | None = None) -> tuple[ProxyConfig, Problems]:
    """Proxy settings that a user wrote (an annotation, say) over `base`, by default the defaults."""
    plain, problems = _read(raw, ProxyConfig)
    return _over_proxy_config(plain, base), problems


def decode_mesh_networks(raw: object) -> tuple[MeshNetworks, Problems]:
    """The networks that a user wrote."""
    plain, problems = _read(raw, MeshNetworks)
    return build(plain, MeshNetworks), problems


def _over_proxy_config(plain: Mapping[str, Any], base: ProxyConfig | None) -> ProxyConfig:
    """Fields that were read, over the settings below them."""
    below = base or default_proxy_config()
    changes = _written(plain, ProxyConfig)
    if "proxy_metadata" in changes:
        changes["proxy_metadata"] = {**below.proxy_metadata, **changes["proxy_metadata"]}
    if "proxy_headers" in changes and below.proxy_headers:
        changes["proxy_headers"] = replace(below.proxy_headers, **_written(plain["proxyHeaders"], ProxyHeaders))
    if "tracing_service_name" in changes:
        changes.setdefault("service_cluster", None)  # the two exclude each other
    elif "service_cluster" in changes:
        changes["tracing_service_name"] = None
    return replace(below, **changes)


def _read(raw: object, cls: type[Message]) -> tuple[dict[str, Any], Problems]:
    """The fields that were written, and the Problems; an empty document has none of either."""
    if raw is None:
        return {}, ()
    if not isinstance(raw, Mapping):
        return {}, (Problem(code="invalid-field", message=f"expected a map, got {type(raw).__name__}"),)
    return read_fields(raw, cls, protobuf_json=True)


def _written(plain: Mapping[str, Any], cls: type[Message]) -> dict[str, Any]:
    """The values of the fields that were written, under their Python names."""
    value = build(plain, cls)
    return {info.name: getattr(value, info.name) for info in fields(cls) if info.encode_name in plain}
