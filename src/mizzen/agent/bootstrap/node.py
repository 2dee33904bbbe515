"""The xDS node: who this proxy says it is.

In: the pod's facts (`Pod`), the merged ProxyConfig and the environment that the injector wrote.
Out: the node as protobuf JSON, with the metadata keys that Istio's control plane reads. Variables
`ISTIO_META_<KEY>` set `<KEY>`; `ISTIO_METAJSON_<KEY>` sets it to parsed JSON; both win over the same names in
ProxyConfig's proxyMetadata. Reading files and interfaces is elsewhere (`options`).
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from mizzen.agent.bootstrap.proxy_config import ProxyConfig
from mizzen.errors import DecodeError

ISTIO_VERSION = "1.32.0"
"""The version of Istio whose behaviour this agent has; control planes gate features by it."""

STATUS_PORT = 15021
PROMETHEUS_PORT = 15090
ENVOY_METRICS = "/stats/envoy"
"""Path of the agent at which Envoy's metrics have Istio's labels; what Envoy serves at 15090 comes from there."""

_META = "ISTIO_META_"
_META_JSON = "ISTIO_METAJSON_"


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """What Kubernetes, or whoever stands in for it, says of the pod."""

    kind: str = "sidecar"
    """`sidecar` or `router`."""
    name: str
    namespace: str
    domain: str
    """The domain of the node's id: `<namespace>.svc.<cluster domain>`."""
    service_account: str = ""
    addresses: tuple[str, ...]
    labels: Mapping[str, str] = MappingProxyType({})
    annotations: Mapping[str, str] = MappingProxyType({})

    @property
    def node_id(self) -> str:
        """`kind~address~name.namespace~domain`, as Istio's control plane parses it."""
        return "~".join((self.kind, self.addresses[0], f"{self.name}.{self.namespace}", self.domain))

    @property
    def ipv6_only(self) -> bool:
        """Whether the pod has no IPv4 address."""
        return all(":" in address for address in self.addresses)


def build_metadata(
    pod: Pod, config: ProxyConfig, environ: Mapping[str, str], extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The node's metadata, sorted by key; `extra` holds what only the agent knows."""
    labels = {key: value for key, value in pod.labels.items() if key != "pod-template-hash"}
    metadata: dict[str, Any] = {
        "ISTIO_VERSION": ISTIO_VERSION,
        "ENVOY_STATUS_PORT": STATUS_PORT,
        "ENVOY_PROMETHEUS_PORT": PROMETHEUS_PORT,
        **extra,
        "NAME": pod.name,
        "NAMESPACE": pod.namespace,
        "INSTANCE_IPS": ",".join(pod.addresses),
        "ANNOTATIONS": dict(pod.annotations),
        "PROXY_CONFIG": dict(config.raw),
    }
    if pod.service_account:
        metadata["SERVICE_ACCOUNT"] = pod.service_account
    variables = {key: value for key, value in config.proxy_metadata.items() if key.startswith(_META)}
    variables |= {key: value for key, value in environ.items() if key.startswith(_META)}
    metadata |= {key.removeprefix(_META): value for key, value in variables.items() if value}
    given = _parse_json_variables({**config.proxy_metadata, **environ})
    if "LABELS" in given:
        metadata["STATIC_LABELS"] = given["LABELS"]
    metadata["LABELS"] = labels | given.pop("LABELS", {})
    for key, value in given.items():
        earlier = metadata.get(key)
        metadata[key] = earlier | value if isinstance(value, dict) and isinstance(earlier, dict) else value
    return dict(sorted(metadata.items()))


def _parse_json_variables(environ: Mapping[str, str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for name, text in environ.items():
        if not name.startswith(_META_JSON) or not text:
            continue
        try:
            value = json.loads(text)
        except ValueError as bad:
            raise DecodeError(f"not JSON: {bad}", name) from bad
        key = name.removeprefix(_META_JSON)
        if key == "LABELS" and not isinstance(value, dict):
            raise DecodeError("expected an object", name)
        parsed[key] = value
    return parsed


def select_cluster(labels: Mapping[str, str], workload: str, namespace: str, config: ProxyConfig) -> str:
    """The node's cluster: the service name that traces carry."""
    canonical = labels.get("service.istio.io/canonical-name", "")
    if config.tracing_service_name == "CANONICAL_NAME_ONLY" and canonical:
        return canonical
    if config.tracing_service_name == "CANONICAL_NAME_AND_NAMESPACE" and canonical:
        return f"{canonical}.{namespace}"
    if config.service_cluster and config.service_cluster != "istio-proxy":
        return config.service_cluster
    for name in (labels.get("app"), labels.get("app.kubernetes.io/name"), canonical, workload):
        if name:
            return f"{name}.{namespace}" if namespace else name
    return f"istio-proxy.{namespace}" if namespace else "istio-proxy"


def select_locality(labels: Mapping[str, str]) -> dict[str, str]:
    """Region, zone and sub-zone from the labels that state them; Istio's own label holds all three."""
    whole = labels.get("topology.istio.io/locality") or labels.get("istio-locality")
    if whole:
        parts = (whole if "/" in whole else whole.replace(".", "/")).split("/")
    else:
        parts = [
            labels.get("topology.kubernetes.io/region", ""),
            labels.get("topology.kubernetes.io/zone", ""),
            labels.get("topology.istio.io/subzone", ""),
        ]
    fields = zip(("region", "zone", "subZone"), parts, strict=False)
    return {field: value for field, value in fields if value}


def build_node(pod: Pod, metadata: Mapping[str, Any], config: ProxyConfig) -> dict[str, Any]:
    """The node as protobuf JSON."""
    labels = metadata["LABELS"]
    identity = {
        "id": pod.node_id,
        "cluster": select_cluster(labels, metadata.get("WORKLOAD_NAME", ""), pod.namespace, config),
        "metadata": dict(metadata),
    }
    locality = select_locality(labels)
    return {**identity, "locality": locality} if locality else identity


_PEER_PARTS = ("WORKLOAD", "NAMESPACE", "CANONICAL_SERVICE", "CANONICAL_REVISION", "CLUSTER", "APP", "VERSION")


def build_identity_variables(pod: Pod, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Environment variables in which Envoy finds who this workload is, for metrics, spans and its peers.

    Configuration names the variables and so is the same for every workload. `MZ_PEER` holds what metrics and peers
    need in one record.
    """
    labels: Mapping[str, str] = metadata["LABELS"]
    workload = metadata.get("WORKLOAD_NAME", "")
    revision = labels.get("service.istio.io/canonical-revision", "") or "latest"
    facts = {
        "WORKLOAD": workload,
        "NAMESPACE": pod.namespace,
        "CANONICAL_SERVICE": labels.get("service.istio.io/canonical-name", ""),
        "CANONICAL_REVISION": revision,
        "APP": labels.get("app", "") or workload,
        "VERSION": labels.get("version", "") or revision,
        "CLUSTER": metadata.get("CLUSTER_ID", ""),
        "MESH": metadata.get("MESH_ID", ""),
        "UNKNOWN": "",
    }
    known = {name: str(value).replace(";", ",") or "unknown" for name, value in facts.items()}
    known["PEER"] = ";".join(known[part] for part in _PEER_PARTS)
    return {f"MZ_{name}": value for name, value in known.items()}
