"""What an installation decides about injection, as one frozen value with Istio's defaults.

In: the `values` (JSON) and `config` (YAML) of the ConfigMap `istio-sidecar-injector`, or fields set by hand.
Out: `InjectionConfig`. Go templates of the `config` key are not read: the templates `sidecar` and `gateway` are built
in, and only aliases and defaults may name them.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from mizzen.api.meta import LabelSelector
from mizzen.errors import DecodeError

Quantities = Mapping[str, str]


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """Requests and limits of the injected containers."""

    requests: Quantities = {}
    limits: Quantities = {}


class Cni(msgspec.Struct, frozen=True, kw_only=True):
    """A node agent sets up capture instead of an init container with NET_ADMIN."""

    enabled: bool = False
    provider: str = "default"
    """`multus` is chained by an annotation on the pod."""


class InjectionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Installation-wide choices; a pod's annotations may override most of them."""

    hub: str = "docker.io/istio"
    tag: str = "1.32.0"
    proxy_image: str = "proxyv2"
    """A name below the hub, or a whole reference if it holds a slash."""
    init_image: str = "proxyv2"
    image_type: str = ""
    """`debug` or `distroless`: becomes a suffix of the tag."""
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()

    dialect: Literal["istio", "envoy"] = "istio"
    """`envoy` for a proxy image with Mizzen's agent and upstream Envoy; the node then says so to the control plane."""

    istio_namespace: str = "istio-system"
    revision: str = ""
    revision_tags: tuple[str, ...] = ()
    """Further names under which this control plane is selected; `default` makes it the unlabelled one."""
    cluster_domain: str = "cluster.local"
    cluster_id: str = "Kubernetes"
    network: str = ""
    mesh_id: str = ""
    """Empty means the trust domain."""
    cert_provider: str = "istiod"
    ca_address: str = ""
    """Empty means port 15012 of the revision's control plane."""
    token_audience: str = "istio-ca"

    policy: str = "enabled"
    """`enabled`, `disabled`; any other value never injects."""
    always_inject: tuple[LabelSelector, ...] = ()
    never_inject: tuple[LabelSelector, ...] = ()
    enable_namespaces_by_default: bool = False
    injected_annotations: Mapping[str, str] = {}
    default_templates: tuple[str, ...] = ("sidecar",)
    aliases: Mapping[str, tuple[str, ...]] = {}

    log_level: str = "warning"
    component_log_level: str = "misc:error"
    agent_log_level: str = "default:info"
    log_as_json: bool = False
    outlier_log_path: str = ""
    sts_port: int = 0

    resources: Resources = Resources(
        requests={"cpu": "100m", "memory": "128Mi"}, limits={"cpu": "2000m", "memory": "1024Mi"}
    )
    gateway_resources: Resources = Resources()
    lifecycle: Mapping[str, Any] = {}
    privileged: bool = False
    cap_net_bind_service: bool = False
    core_dumps: bool = False
    native_sidecars: bool = False
    """Sidecars as init containers that stay; needs Kubernetes 1.33 (the caller knows the cluster)."""
    hold_application: bool = False

    status_port: int = 15020
    readiness_initial_delay: int = 0
    readiness_period: int = 15
    readiness_failures: int = 4
    startup_probe: bool = True
    startup_failures: int = 600
    rewrite_probes: bool = True

    include_outbound_ranges: str = "*"
    exclude_outbound_ranges: str = ""
    include_inbound_ports: str = "*"
    exclude_inbound_ports: str = ""
    include_outbound_ports: str = ""
    exclude_outbound_ports: str = ""
    exclude_interfaces: str = ""
    proxy_uid: int = 1337
    proxy_gid: int = 1337
    cni: Cni = Cni()
    native_nftables: bool = False
    force_apply_iptables: bool = False

    mount_mtls_certs: bool = False
    compliance_policy: str = ""
    environment: Mapping[str, str] = {}
    """Further variables of the proxy; they stand in for others of the same names."""

    @property
    def revision_name(self) -> str:
        """The revision as labels and annotations spell it."""
        return self.revision or "default"

    @property
    def control_plane(self) -> str:
        """Host of this revision's control plane as pods reach it."""
        suffix = f"-{self.revision}" if self.revision and self.revision != "default" else ""
        return f"istiod{suffix}.{self.istio_namespace}.svc"


_VALUES: Mapping[str, str] = {
    "global.hub": "hub",
    "global.tag": "tag",
    "global.variant": "image_type",
    "global.imagePullPolicy": "image_pull_policy",
    "global.imagePullSecrets": "image_pull_secrets",
    "global.istioNamespace": "istio_namespace",
    "global.meshID": "mesh_id",
    "global.network": "network",
    "global.multiCluster.clusterName": "cluster_id",
    "global.pilotCertProvider": "cert_provider",
    "global.caAddress": "ca_address",
    "global.sds.token.aud": "token_audience",
    "global.logging.level": "agent_log_level",
    "global.logAsJson": "log_as_json",
    "global.sts.servicePort": "sts_port",
    "global.mountMtlsCerts": "mount_mtls_certs",
    "global.nativeNftables": "native_nftables",
    "global.proxy.image": "proxy_image",
    "global.proxy.clusterDomain": "cluster_domain",
    "global.proxy.logLevel": "log_level",
    "global.proxy.componentLogLevel": "component_log_level",
    "global.proxy.outlierLogPath": "outlier_log_path",
    "global.proxy.privileged": "privileged",
    "global.proxy.capNetBindService": "cap_net_bind_service",
    "global.proxy.enableCoreDump": "core_dumps",
    "global.proxy.holdApplicationUntilProxyStarts": "hold_application",
    "global.proxy.lifecycle": "lifecycle",
    "global.proxy.autoInject": "policy",
    "global.proxy.resources": "resources",
    "global.proxy.statusPort": "status_port",
    "global.proxy.readinessInitialDelaySeconds": "readiness_initial_delay",
    "global.proxy.readinessPeriodSeconds": "readiness_period",
    "global.proxy.readinessFailureThreshold": "readiness_failures",
    "global.proxy.startupProbe.enabled": "startup_probe",
    "global.proxy.startupProbe.failureThreshold": "startup_failures",
    "global.proxy.includeIPRanges": "include_outbound_ranges",
    "global.proxy.excludeIPRanges": "exclude_outbound_ranges",
    "global.proxy.includeInboundPorts": "include_inbound_ports",
    "global.proxy.excludeInboundPorts": "exclude_inbound_ports",
    "global.proxy.includeOutboundPorts": "include_outbound_ports",
    "global.proxy.excludeOutboundPorts": "exclude_outbound_ports",
    "global.proxy.excludeInterfaces": "exclude_interfaces",
    "global.proxy_init.image": "init_image",
    "global.proxy_init.forceApplyIptables": "force_apply_iptables",
    "pilot.cni.enabled": "cni.enabled",
    "pilot.cni.provider": "cni.provider",
    "istio_cni.enabled": "cni.enabled",
    "istio_cni.provider": "cni.provider",
    "revision": "revision",
    "sidecarInjectorWebhook.rewriteAppHTTPProbe": "rewrite_probes",
    "sidecarInjectorWebhook.enableNamespacesByDefault": "enable_namespaces_by_default",
}
"""Where each field stands in Istio's Helm values."""


def decode_values(values: Mapping[str, Any], base: InjectionConfig | None = None) -> InjectionConfig:
    """`base` with every value that `values` sets; values that injection does not read are left alone."""
    fields = msgspec.structs.asdict(base or InjectionConfig())
    fields["cni"] = msgspec.structs.asdict(fields["cni"])
    for path, field in _VALUES.items():
        value = _look_up(values, path)
        if value is None:
            continue
        group, _, member = field.rpartition(".")
        place = fields[group] if group else fields
        place[member] = _spell(value) if isinstance(place[member], str | Resources) else value
    return _convert(fields)


def decode_injector(config_map: Mapping[str, Any], base: InjectionConfig | None = None) -> InjectionConfig:
    """Reads an `istio-sidecar-injector` ConfigMap."""
    data = config_map.get("data") or {}
    try:
        values = msgspec.json.decode(data.get("values") or "{}", type=dict[str, Any] | None)
        config = msgspec.yaml.decode(data.get("config") or "{}", type=dict[str, Any] | None)
    except (msgspec.DecodeError, ValueError, RecursionError) as bad:
        raise DecodeError(str(bad), "data") from bad
    return decode_config(config or {}, decode_values(values or {}, base))


def decode_config(config: Mapping[str, Any], base: InjectionConfig) -> InjectionConfig:
    """`base` with the injector's policy, selectors, aliases and default templates (its `config` key)."""
    fields = msgspec.structs.asdict(base)
    names = {
        "policy": "policy",
        "defaultTemplates": "default_templates",
        "aliases": "aliases",
        "injectedAnnotations": "injected_annotations",
        "alwaysInjectSelector": "always_inject",
        "neverInjectSelector": "never_inject",
    }
    fields |= {field: config[name] for name, field in names.items() if config.get(name) is not None}
    return _convert(fields)


def _spell(value: Any) -> Any:
    """Numbers where texts belong, as YAML gives for `tag: 1` or `cpu: 2`."""
    if isinstance(value, Mapping):
        return {name: _spell(part) for name, part in value.items()}
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return msgspec.json.encode(value).decode() if number else value


def _look_up(values: Mapping[str, Any], path: str) -> Any:
    found: Any = values
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _convert(fields: Mapping[str, Any]) -> InjectionConfig:
    try:
        return msgspec.convert(fields, InjectionConfig, strict=False, from_attributes=True)
    except msgspec.ValidationError as bad:
        raise DecodeError(str(bad), "values") from bad
