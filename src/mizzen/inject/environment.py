"""The environment of istio-proxy, in Istio's order.

In: the workload, the installation and the mesh's choices. Out: the list of `env` entries. What a variable means is the
agent's business; here only who gets which value.
"""

from typing import Any

import msgspec

from mizzen.inject.mesh import MeshChoices
from mizzen.inject.overrides import Overrides
from mizzen.inject.values import InjectionConfig
from mizzen.inject.workload import Workload, items

Variable = dict[str, Any]

PROMETHEUS = "ISTIO_PROMETHEUS_ANNOTATIONS"
APP_PROBERS = "ISTIO_KUBE_APP_PROBERS"

_POD_FIELDS = (
    ("POD_NAME", "metadata.name"),
    ("POD_NAMESPACE", "metadata.namespace"),
    ("INSTANCE_IP", "status.podIP"),
    ("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    ("HOST_IP", "status.hostIP"),
)


def build_environment(
    workload: Workload, config: InjectionConfig, overrides: Overrides, mesh: MeshChoices, *, network: str
) -> list[Variable]:
    """Every variable but those that probes and Prometheus append later."""
    usual = _usual(workload, config, overrides, mesh, network)
    kept = [variable for variable in usual if variable["name"] not in config.environment]
    return [*kept, *(text(name, value) for name, value in sorted(config.environment.items()))]


def _usual(
    workload: Workload, config: InjectionConfig, overrides: Overrides, mesh: MeshChoices, network: str
) -> list[Variable]:
    return [
        *_trust(config, mesh),
        *[_field(name, path) for name, path in _POD_FIELDS],
        _limit("ISTIO_CPU_LIMIT", "limits.cpu"),
        text("PROXY_CONFIG", _json(mesh.proxy_config)),
        text("ISTIO_META_POD_PORTS", _json(_pod_ports(workload))),
        text("ISTIO_META_APP_CONTAINERS", ",".join(str(c.get("name", "")) for c in workload.containers)),
        _limit("GOMEMLIMIT", "limits.memory"),
        *_compliance(config),
        text("ISTIO_META_CLUSTER_ID", config.cluster_id),
        _field("ISTIO_META_NODE_NAME", "spec.nodeName"),
        text("ISTIO_META_INTERCEPTION_MODE", overrides.capture.mode),
        *([text("ISTIO_META_NETWORK", network)] if network else []),
        *_identity(workload),
        *_bootstrap(overrides),
        text("ISTIO_META_MESH_ID", config.mesh_id or mesh.trust_domain),
        text("TRUST_DOMAIN", mesh.trust_domain),
        *([text("ISTIO_META_MIZZEN_DIALECT", config.dialect)] if config.dialect != "istio" else []),
        *metadata(mesh),
    ]


def metadata(mesh: MeshChoices) -> list[Variable]:
    """The mesh's `proxyMetadata`, which istio-init gets too."""
    return [text(name, value) for name, value in mesh.proxy_metadata.items()]


def text(name: str, value: str) -> Variable:
    """A variable with a plain value."""
    return {"name": name, "value": value}


def _trust(config: InjectionConfig, mesh: MeshChoices) -> list[Variable]:
    legacy = [text("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", "true")] if mesh.localhost_inbound else []
    authority = config.ca_address or f"{config.control_plane}:15012"
    return [*legacy, text("PILOT_CERT_PROVIDER", config.cert_provider), text("CA_ADDR", authority)]


def _compliance(config: InjectionConfig) -> list[Variable]:
    policy = config.compliance_policy
    if not policy:
        return []
    strict = [text("GODEBUG", "fips140=only")] if policy == "fips-140-3" else []
    return [text("COMPLIANCE_POLICY", policy), *strict]


def _identity(workload: Workload) -> list[Variable]:
    found = [text("ISTIO_META_WORKLOAD_NAME", workload.name)] if workload.name else []
    if workload.owner is not None:
        found.append(text("ISTIO_META_OWNER", workload.owner.reference(workload.namespace)))
    return found


def _bootstrap(overrides: Overrides) -> list[Variable]:
    if not overrides.bootstrap_override:
        return []
    return [text("ISTIO_BOOTSTRAP_OVERRIDE", "/etc/istio/custom-bootstrap/custom_bootstrap.json")]


def _pod_ports(workload: Workload) -> list[Any]:
    names = ("name", "hostPort", "containerPort", "protocol")
    ports = [port for container in workload.containers for port in items(container, "ports")]
    return [{name: port[name] for name in names if name in port} for port in ports]


def _field(name: str, path: str) -> Variable:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _limit(name: str, resource: str) -> Variable:
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": "1"}}}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
