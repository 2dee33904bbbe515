"""The mesh's word on a sidecar: mesh config and the pod's ProxyConfig.

In: the mesh config as the user wrote it (a mapping in the spelling of its YAML; absent fields have Istio's defaults)
and the pod's `proxy.istio.io/config` annotation. Out: `MeshChoices` with the effective ProxyConfig, still raw, since
it travels whole to the proxy in `PROXY_CONFIG`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import yaml

from mizzen.api.careful import read_fields
from mizzen.api.mesh.proxy import ProxyConfig
from mizzen.api.problems import Problem
from mizzen.inject.overrides import annotation_problem
from mizzen.inject.workload import mapping
from mizzen.inject.yaml_texts import load_yaml

Problems = tuple[Problem, ...]

PROXY_CONFIG = "proxy.istio.io/config"

BUILT_IN: Mapping[str, Any] = MappingProxyType(
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
"""What every proxy takes for granted, so that `PROXY_CONFIG` need not say it."""


class MeshChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of mesh config and ProxyConfig that injection reads."""

    trust_domain: str = "cluster.local"
    prometheus_merge: bool = True
    localhost_inbound: bool = False
    """Inbound traffic goes to 127.0.0.1, as it did before Istio 1.10."""
    mesh_status_port: int = 15020
    proxy_config: Mapping[str, Any] = {}
    """The effective ProxyConfig without what every proxy takes for granted."""

    @property
    def proxy_metadata(self) -> Mapping[str, str]:
        """Environment for the proxy, sorted by name."""
        pairs = mapping(self.proxy_config, "proxyMetadata")
        return {str(name): _text(pairs[name]) for name in sorted(pairs)}

    @property
    def hold_application(self) -> bool:
        """Whether the application waits for its proxy."""
        return self.proxy_config.get("holdApplicationUntilProxyStarts") is True

    @property
    def image_type(self) -> str:
        """A variant of the proxy image; empty for the installation's."""
        return str(mapping(self.proxy_config, "image").get("imageType") or "")

    @property
    def interception_mode(self) -> str:
        """How this proxy captures if its annotation does not say."""
        return str(self.proxy_config.get("interceptionMode") or "REDIRECT")

    @property
    def status_port(self) -> int | None:
        """The agent's port; None for the installation's."""
        return _port(self.proxy_config)


def read_mesh(mesh: Mapping[str, Any] | None, annotations: Mapping[str, str]) -> tuple[MeshChoices, Problems]:
    """The mesh's choices for one pod, and what is wrong with the pod's annotation, which then counts as absent."""
    mesh = mesh or {}
    default = mapping(mesh, "defaultConfig")
    own, problems = parse_annotation(annotations.get(PROXY_CONFIG, ""))
    wanted = merge_proxy_config(default, own)
    choices = MeshChoices(
        trust_domain=str(mesh.get("trustDomain") or "cluster.local"),
        prometheus_merge=mesh.get("enablePrometheusMerge") is not False,
        localhost_inbound=mapping(mesh, "inboundTrafficPolicy").get("mode") == "LOCALHOST",
        mesh_status_port=_port(default) or BUILT_IN["statusPort"],
        proxy_config={name: value for name, value in wanted.items() if BUILT_IN.get(name) != value},
    )
    return choices, problems


def parse_annotation(text: str) -> tuple[Mapping[str, Any], Problems]:
    """The ProxyConfig in the YAML of `proxy.istio.io/config`; any fault makes it none."""
    if not text.strip():
        return {}, ()
    try:
        value = load_yaml(text)
    except (yaml.YAMLError, RecursionError) as bad:
        return {}, (_problem(" ".join(str(bad).split())),)
    if not isinstance(value, dict):
        return {}, (_problem("expected an object"),)
    _, found = read_fields(value, ProxyConfig, protobuf_json=True)
    problems = tuple(_problem(str(problem)) for problem in found if problem.level == "error")
    return ({}, problems) if problems else (value, ())


def _port(proxy_config: Mapping[str, Any]) -> int | None:
    port = proxy_config.get("statusPort")
    return port if isinstance(port, int) else None


def _problem(message: str) -> Problem:
    return annotation_problem(PROXY_CONFIG, f"failed to convert to apply proxy config: {message}")


def merge_proxy_config(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` over `below`: the two maps of names merge key by key, every other field is replaced whole."""
    merged = {**below, **above}
    for name in ("proxyMetadata", "runtimeValues"):
        if name in merged:
            merged[name] = {**mapping(below, name), **mapping(above, name)}
    return merged


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
