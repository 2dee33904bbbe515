"""Gateways that run beside the control plane: Deployment, Service, account, autoscaler, disruption budget.

In: `Values`. Out: the documents of each gateway that is enabled. A pod says that it is to be a gateway, and the
injector makes it one; its image is what the injector chooses (`auto`), so that gateways follow the control plane.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.install.control_plane import given, scheduling, texts, utilization
from mizzen.install.identity import REVISION_LABEL, document
from mizzen.install.values import Tree, Values, as_text

_SERVICE_FIELDS = (
    "loadBalancerIP",
    "loadBalancerClass",
    "loadBalancerSourceRanges",
    "externalTrafficPolicy",
    "externalIPs",
    "ipFamilyPolicy",
    "ipFamilies",
)


def gateway_documents(values: Values) -> list[dict[str, Any]]:
    """All objects of all gateways."""
    return [each for name, own in values.gateways.items() for each in _Gateway(values, name, own).documents()]


class _Gateway:
    """One gateway."""

    def __init__(self, values: Values, name: str, own: Tree) -> None:
        self._values, self._name, self._own = values, name, own
        self._selector = texts(own.get("labels")) or {"app": name, "istio": name.removeprefix("istio-")}
        self._labels = {**self._selector, **values.identity.labels("IngressGateways")}

    def documents(self) -> list[dict[str, Any]]:
        account = self._object("v1", "ServiceAccount", annotations=self._get("serviceAccount", "annotations"))
        found = [account, self._deployment(), self._service()]
        if self._get("autoscaling", "enabled"):
            found.append(self._autoscaler())
        if budget := self._own.get("podDisruptionBudget"):
            spec = {**budget, "selector": {"matchLabels": self._selector}}
            found.append(self._object("policy/v1", "PodDisruptionBudget", spec=spec))
        return found

    def _get(self, group: str, name: str) -> Any:
        return (self._own.get(group) or {}).get(name)

    def _object(
        self, version: str, kind: str, *, annotations: Mapping[str, Any] | None = None, **body: Any
    ) -> dict[str, Any]:
        namespace = as_text(self._own.get("namespace")) or self._values.identity.namespace
        made = document(version, kind, self._name, namespace=namespace, labels=self._labels, **body)
        if spelt := texts(annotations):
            made["metadata"]["annotations"] = spelt
        return made

    def _deployment(self) -> dict[str, Any]:
        revision = self._values.identity.revision_label
        labels = {**self._selector, "sidecar.istio.io/inject": "true", REVISION_LABEL: revision}
        annotations = {
            "inject.istio.io/templates": "gateway",
            "prometheus.io/path": "/stats/prometheus",
            "prometheus.io/port": "15020",
            "prometheus.io/scrape": "true",
            **(self._own.get("podAnnotations") or {}),
        }
        spec: dict[str, Any] = {
            "selector": {"matchLabels": self._selector},
            "template": {"metadata": {"labels": labels, "annotations": texts(annotations)}, "spec": self._pod()},
        }
        if not self._get("autoscaling", "enabled"):
            spec["replicas"] = self._own.get("replicaCount")
        return self._object("apps/v1", "Deployment", spec=spec)

    def _pod(self) -> dict[str, Any]:
        container: dict[str, Any] = {
            "name": "istio-proxy",
            "image": "auto",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "privileged": False,
                "readOnlyRootFilesystem": True,
                "runAsGroup": 1337,
                "runAsNonRoot": True,
                "runAsUser": 1337,
            },
        }
        container |= given(self._own, "resources")
        if environment := texts(self._own.get("env")):
            container["env"] = [{"name": name, "value": environment[name]} for name in sorted(environment)]
        return {
            "serviceAccountName": self._name,
            "securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]},
            "containers": [container],
            **given(self._own, "terminationGracePeriodSeconds"),
            **scheduling(self._own),
        }

    def _service(self) -> dict[str, Any]:
        service = self._own.get("service") or {}
        spec = {
            "type": service.get("type"),
            "ports": service.get("ports"),
            "selector": self._selector,
            **given(service, *_SERVICE_FIELDS),
        }
        return self._object("v1", "Service", annotations=service.get("annotations"), spec=spec)

    def _autoscaler(self) -> dict[str, Any]:
        scaling = self._own.get("autoscaling") or {}
        spec: dict[str, Any] = {
            "minReplicas": scaling.get("minReplicas"),
            "maxReplicas": scaling.get("maxReplicas"),
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": self._name},
            "metrics": [utilization("cpu", scaling.get("targetCPUUtilizationPercentage"))],
        }
        if behavior := scaling.get("autoscaleBehavior"):
            spec["behavior"] = behavior
        return self._object("autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)
