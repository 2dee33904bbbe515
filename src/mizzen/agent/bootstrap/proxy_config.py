"""ProxyConfig as the agent sees it: what one Envoy is started with.

In: the JSON or YAML of the `PROXY_CONFIG` variable and of the pod's `proxy.istio.io/config` annotation.
Out: `ProxyConfig`, which holds the typed fields that the agent reads and, as `raw`, the whole merged object that
travels in the node's metadata. Fields that only the control plane reads are kept in `raw` and not judged here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import yaml

from mizzen import words
from mizzen.errors import DecodeError

ANNOTATION = "proxy.istio.io/config"

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "configPath": "./etc/istio/proxy",
        "binaryPath": "/usr/local/bin/envoy",
        "serviceCluster": "istio-proxy",
        "drainDuration": "45s",
        "terminationDrainDuration": "5s",
        "discoveryAddress": "istiod.istio-system.svc:15012",
        "proxyAdminPort": 15000,
        "controlPlaneAuthPolicy": "MUTUAL_TLS",
        "statNameLength": 189,
        "statusPort": 15020,
    }
)
"""Istio's built-in proxy configuration."""


class StatsMatcher(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Names of further Envoy statistics to keep."""

    inclusion_prefixes: tuple[str, ...] = ()
    inclusion_suffixes: tuple[str, ...] = ()
    inclusion_regexps: tuple[str, ...] = ()


class ProxyConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields that the agent reads; durations are Go or protobuf duration texts."""

    config_path: str
    binary_path: str
    service_cluster: str
    drain_duration: str
    termination_drain_duration: str
    discovery_address: str
    proxy_admin_port: int
    control_plane_auth_policy: str
    stat_name_length: int
    status_port: int
    concurrency: int | None = None
    tracing_service_name: str = "APP_LABEL_AND_NAMESPACE"
    proxy_metadata: Mapping[str, str] = MappingProxyType({})
    runtime_values: Mapping[str, str] = MappingProxyType({})
    proxy_stats_matcher: StatsMatcher = StatsMatcher()
    ca_certificates_pem: tuple[str, ...] = ()
    """Further roots that workloads trust."""
    raw: Mapping[str, Any] = MappingProxyType({})
    """The whole merged configuration in protobuf JSON."""

    @property
    def drain_seconds(self) -> float:
        """Seconds that Envoy takes to drain a listener."""
        return words.parse_duration(self.drain_duration)

    @property
    def termination_drain_seconds(self) -> float:
        """Seconds between the order to stop and Envoy's end."""
        return words.parse_duration(self.termination_drain_duration)


def parse_proxy_config(*texts: str) -> ProxyConfig:
    """The defaults with each text merged over them in turn; empty texts say nothing."""
    merged: dict[str, Any] = dict(DEFAULTS)
    for text in texts:
        merged = _merge(merged, _parse_object(text))
    try:
        config = msgspec.convert({**merged, "raw": merged}, ProxyConfig, strict=False)
        words.parse_duration(config.drain_duration)
        words.parse_duration(config.termination_drain_duration)
    except (msgspec.ValidationError, ValueError) as bad:
        raise DecodeError(str(bad), "ProxyConfig") from bad
    return config


def _parse_object(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as bad:
        raise DecodeError(" ".join(str(bad).split()), "ProxyConfig") from bad
    if not isinstance(value, dict):
        raise DecodeError("expected an object", "ProxyConfig")
    return value


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Objects merge field by field, all else is replaced; null takes a field back to nothing."""
    merged = dict(below)
    for field, value in above.items():
        earlier = merged.get(field)
        merged[field] = _merge(earlier, value) if isinstance(value, dict) and isinstance(earlier, dict) else value
    return {field: value for field, value in merged.items() if value is not None}
