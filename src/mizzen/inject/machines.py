"""The files with which a machine outside Kubernetes joins the mesh.

In: a WorkloadGroup's document, the mesh config as it was written, and what an operator chose. Out: the texts of
`mesh.yaml`, the ProxyConfig of the machine's agent, and of `cluster.env`, its environment, as istioctl writes them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from mizzen.errors import DecodeError
from mizzen.inject.mesh import PROXY_CONFIG, merge_proxy_config, parse_annotation
from mizzen.inject.workload import mapping

_NAME = "service.istio.io/canonical-name"
_REVISION = "service.istio.io/canonical-revision"
_DEFAULT_STATUS_PORT = 15020
_UNCAPTURED = ("22", "15090", "15021")
"""SSH, so that a fault of ours locks nobody out, and the proxy's own."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator says of a machine."""

    cluster: str
    """The cluster that the machine counts as part of."""
    discovery: str
    """Where a control plane of a revision is; empty for the default one."""
    captures_dns: bool = True
    registers: bool = False
    """Whether its WorkloadEntry is made when it connects."""
    internal_address: str = ""
    external_address: str = ""


class Machine:
    """What is written for the machines of one group."""

    def __init__(self, group: Mapping[str, Any], mesh: Mapping[str, Any], choices: Choices) -> None:
        """Raises DecodeError for a `proxy.istio.io/config` that cannot be understood."""
        self._choices = choices
        self._metadata, self._spec = mapping(group, "metadata"), mapping(group, "spec")
        self._template = mapping(self._spec, "template")
        self._trust_domain = str(mesh.get("trustDomain") or "")
        config: Mapping[str, Any] = _as_json(mapping(mesh, "defaultConfig"))
        if choices.discovery and not config.get("discoveryAddress"):
            config = {**config, "discoveryAddress": choices.discovery}
        for place in (self._metadata, mapping(self._spec, "metadata")):
            own, problems = parse_annotation(str(mapping(place, "annotations").get(PROXY_CONFIG, "")))
            if problems:
                raise DecodeError(problems[0].message, f"WorkloadGroup {self.name}")
            config = merge_proxy_config(config, _as_json(own))
        self._proxy = {**config, "proxyMetadata": self._proxy_metadata(config)}
        if self._spec.get("probe"):
            self._proxy["readinessProbe"] = self._spec["probe"]

    @property
    def name(self) -> str:
        """The group's name."""
        return str(self._metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace of the machine's identity."""
        return str(self._metadata.get("namespace") or "")

    @property
    def service_account(self) -> str:
        """The account of the machine's identity."""
        return str(self._template.get("serviceAccount") or "default")

    @property
    def overridden_labels(self) -> Mapping[str, str]:
        """Labels of the template, which are stronger than those meant for labels."""
        return mapping(self._template, "labels")

    def mesh_config(self) -> str:
        """The text of `mesh.yaml`."""
        text: str = yaml.safe_dump({"defaultConfig": self._proxy}, sort_keys=True, allow_unicode=True, width=1 << 30)
        return text

    def environment(self) -> str:
        """The text of `cluster.env`, for a shell to read."""
        choices = self._choices
        ports = sorted(str(port) for port in self._ports.values())
        found = {
            **self._proxy["proxyMetadata"],
            "ISTIO_INBOUND_PORTS": ",".join(ports) or "*",
            "ISTIO_NAMESPACE": self.namespace,
            "ISTIO_SERVICE": f"{self.name}.{self.namespace}",
            "ISTIO_SERVICE_CIDR": "*",
            "ISTIO_LOCAL_EXCLUDE_PORTS": ",".join(self._uncaptured_ports()),
            "SERVICE_ACCOUNT": self.service_account,
        }
        if choices.discovery:
            found["CA_ADDR"] = choices.discovery
        if choices.internal_address or choices.external_address:
            found["ISTIO_SVC_IP"] = choices.internal_address or choices.external_address
        if choices.external_address:
            # The address is not one of the machine's own.
            found["REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION"] = "true"
        return "".join(f"{name}={_quote(str(found[name]))}\n" for name in sorted(found))

    @property
    def _ports(self) -> Mapping[str, Any]:
        return mapping(self._template, "ports")

    def _uncaptured_ports(self) -> tuple[str, ...]:
        status = str(self._proxy.get("statusPort") or _DEFAULT_STATUS_PORT)
        return _UNCAPTURED if status in _UNCAPTURED else (*_UNCAPTURED, status)

    def _proxy_metadata(self, config: Mapping[str, Any]) -> dict[str, str]:
        labels = {**mapping(mapping(self._spec, "metadata"), "labels"), **self.overridden_labels}
        service = _first(labels, _NAME, "app.kubernetes.io/name", "app") or self.name
        revision = _first(labels, _REVISION, "app.kubernetes.io/version", "version") or "latest"
        choices = self._choices
        found = {
            **mapping(config, "proxyMetadata"),
            "CANONICAL_SERVICE": service,
            "CANONICAL_REVISION": revision,
            "POD_NAMESPACE": self.namespace,
            "SERVICE_ACCOUNT": self.service_account,
            "TRUST_DOMAIN": self._trust_domain,
            "ISTIO_META_CLUSTER_ID": choices.cluster,
            "ISTIO_META_MESH_ID": str(config.get("meshId") or ""),
            "ISTIO_META_NETWORK": str(self._template.get("network") or ""),
            "ISTIO_META_WORKLOAD_NAME": self.name,
            "ISTIO_METAJSON_LABELS": _json({**labels, _NAME: service, _REVISION: revision}),
        }
        if self._ports:
            listed = [
                {"name": name, "containerPort": self._ports[name], "protocol": ""} for name in sorted(self._ports)
            ]
            found["ISTIO_META_POD_PORTS"] = _json(listed)
        if choices.captures_dns:
            found["ISTIO_META_DNS_CAPTURE"] = "true"
        if choices.registers:
            found["ISTIO_META_AUTO_REGISTER_GROUP"] = self.name
        return {name: str(value) for name, value in found.items()}


def _as_json(config: Mapping[str, Any]) -> dict[str, Any]:
    """Fields under one name each: protobuf's JSON may write them in either of two ways."""
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in config.items()}


def _first(labels: Mapping[str, Any], *names: str) -> str:
    return next((str(labels[name]) for name in names if labels.get(name)), "")


def _json(value: Any) -> str:
    sort = isinstance(value, dict)
    return json.dumps(value, sort_keys=sort, separators=(",", ":"), ensure_ascii=False)


def _quote(text: str) -> str:
    """Quoted for a shell whatever it holds, so that every line reads alike."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
