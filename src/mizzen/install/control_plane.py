"""The control plane's own workload: Deployment, Service, autoscaler, disruption budget, ServiceMonitor.

In: `Values`. Out: documents. The container runs `mizzen discovery` without root, rights or a file system to write to.
Its pods are never injected, so that nothing need answer for them to start.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.install.identity import REVISION_LABEL, TAG_LABEL, Identity, document
from mizzen.install.values import Values, as_text

PORTS = (
    ("grpc-xds", 15010, 15010),
    ("grpc-xds-mtls", 15011, 15011),
    ("https-dns", 15012, 15012),
    ("https-webhook", 443, 15017),
    ("http-monitoring", 15014, 15014),
)
"""Name, port of the Service, port of the pods."""

_PLUGGED = "cacerts"


def control_plane_documents(values: Values) -> list[dict[str, Any]]:
    """All of it, as far as it is wanted."""
    documents = [deployment(values), service(values)]
    if values.get("pilot.autoscaleEnabled"):
        documents.append(_autoscaler(values))
    if values.get("global.defaultPodDisruptionBudget.enabled"):
        documents.append(_disruption_budget(values))
    if values.get("serviceMonitor.enabled"):
        documents.append(_service_monitor(values))
    return documents


def service(values: Values) -> dict[str, Any]:
    """The control plane's Service."""
    spec: dict[str, Any] = {
        "ports": service_ports(),
        "selector": selector(values.identity),
    }
    spec |= given(values.get("pilot") or {}, "ipFamilyPolicy", "ipFamilies")
    annotations = texts(values.get("pilot.serviceAnnotations"))
    return _own(values, "v1", "Service", annotations=annotations, spec=spec)


def service_ports() -> list[dict[str, Any]]:
    """Its ports."""
    return [{"name": name, "port": port, "protocol": "TCP", "targetPort": target} for name, port, target in PORTS]


def tag_service(values: Values, tag: str) -> dict[str, Any]:
    """The Service of a tag of the revision: the same control plane by another name."""
    made = service(values)
    made["metadata"]["name"] = f"istiod-revision-tag-{tag}"
    made["metadata"]["labels"] = {**made["metadata"]["labels"], TAG_LABEL: tag}
    return made


def selector(identity: Identity) -> dict[str, str]:
    """The labels that the control plane's pods alone have."""
    return {"app": "istiod", REVISION_LABEL: identity.revision_label}


def _own(
    values: Values, version: str, kind: str, *, annotations: Mapping[str, str] | None = None, **body: Any
) -> dict[str, Any]:
    identity = values.identity
    labels = identity.labels(app="istiod", istio="pilot")
    made = document(version, kind, identity.name, namespace=identity.namespace, labels=labels, **body)
    if annotations:
        made["metadata"]["annotations"] = dict(annotations)
    return made


# -- the Deployment ---------------------------------------------------------------------------------------------------


def deployment(values: Values) -> dict[str, Any]:
    """The Deployment; how many replicas there are is the autoscaler's if there is one."""
    identity = values.identity
    labels = identity.labels(app="istiod", istio="pilot") | {"sidecar.istio.io/inject": "false"}
    annotations = {
        "prometheus.io/port": "15014",
        "prometheus.io/scrape": "true",
        "sidecar.istio.io/inject": "false",
        **(values.get("pilot.podAnnotations") or {}),
    }
    spec: dict[str, Any] = {
        "strategy": {
            "rollingUpdate": {
                "maxSurge": values.get("pilot.rollingMaxSurge"),
                "maxUnavailable": values.get("pilot.rollingMaxUnavailable"),
            }
        },
        "selector": {"matchLabels": selector(identity)},
        "template": {
            "metadata": {
                "labels": {**texts(values.get("pilot.podLabels")), **labels},
                "annotations": texts(annotations),
            },
            "spec": _pod(values),
        },
    }
    if not values.get("pilot.autoscaleEnabled"):
        spec["replicas"] = values.get("pilot.replicaCount")
    made = _own(values, "apps/v1", "Deployment", spec=spec)
    made["metadata"]["labels"] = {**texts(values.get("pilot.deploymentLabels")), **made["metadata"]["labels"]}
    return made


def _pod(values: Values) -> dict[str, Any]:
    pilot = values.get("pilot") or {}
    spec: dict[str, Any] = {
        "serviceAccountName": values.identity.name,
        "securityContext": {"runAsNonRoot": True},
        "containers": [_container(values)],
        "volumes": [
            {"name": _PLUGGED, "secret": {"secretName": _PLUGGED, "optional": True}},
            *(pilot.get("volumes") or []),
        ],
    }
    spec["securityContext"] |= given(pilot, "seccompProfile")
    if secrets := values.get("global.imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    return spec | given(values.get("global") or {}, "priorityClassName") | scheduling(pilot)


def _container(values: Values) -> dict[str, Any]:
    pilot = values.get("pilot") or {}
    ports = (("http-ready", 8080), *((name, target) for name, _, target in PORTS))
    container: dict[str, Any] = {
        "name": "discovery",
        "image": image(values, values.text("pilot.image"), hub=pilot.get("hub"), tag=pilot.get("tag")),
        "args": _arguments(values),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": 8080},
            "initialDelaySeconds": 1,
            "periodSeconds": 3,
            "timeoutSeconds": 5,
        },
        "env": _environment(values),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        },
        "volumeMounts": [
            {"name": _PLUGGED, "mountPath": "/etc/cacerts", "readOnly": True},
            *(pilot.get("volumeMounts") or []),
        ],
    }
    return container | given(values.get("global") or {}, "imagePullPolicy") | given(pilot, "resources")


def _arguments(values: Values) -> list[str]:
    return [
        "discovery",
        "--grpcAddr=:15010",
        "--monitoringAddr=:15014",
        f"--log_output_level={values.text('global.logging.level')}",
        *(["--log_as_json"] if values.get("global.logAsJson") else []),
        f"--domain={values.text('global.proxy.clusterDomain')}",
        f"--keepaliveMaxServerConnectionAge={values.text('pilot.keepaliveMaxServerConnectionAge')}",
        *map(as_text, values.get("pilot.extraContainerArgs") or ()),
    ]


def _environment(values: Values) -> list[dict[str, Any]]:
    def field(name: str, path: str) -> dict[str, Any]:
        return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}

    own = {
        "CLUSTER_ID": values.text("global.multiCluster.clusterName"),
        "PILOT_TRACE_SAMPLING": values.text("pilot.traceSampling"),
        "REVISION": values.identity.revision_label,
        "TOKEN_AUDIENCES": values.text("global.sds.token.aud"),
    }
    plain = texts(own | (values.get("pilot.env") or {}))
    return [
        field("POD_NAME", "metadata.name"),
        field("POD_NAMESPACE", "metadata.namespace"),
        field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
        *({"name": name, "value": plain[name]} for name in sorted(plain)),
    ]


def image(values: Values, name: str, *, hub: Any = "", tag: Any = "") -> str:
    """HUB/NAME:TAG, unless the name is a whole reference."""
    if "/" in name:
        return name
    variant = values.text("global.variant")
    suffix = f"-{variant}" if variant else ""
    return f"{hub or values.text('global.hub')}/{name}:{as_text(tag) or values.text('global.tag')}{suffix}"


# -- what goes with it ------------------------------------------------------------------------------------------------


def _autoscaler(values: Values) -> dict[str, Any]:
    pilot = values.get("pilot") or {}
    spec = {
        "minReplicas": pilot.get("autoscaleMin"),
        "maxReplicas": pilot.get("autoscaleMax"),
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": values.identity.name},
        "metrics": [
            utilization(name, percent)
            for name in ("cpu", "memory")
            if (percent := (pilot.get(name) or {}).get("targetAverageUtilization"))
        ],
    }
    if behavior := pilot.get("autoscaleBehavior"):
        spec["behavior"] = behavior
    return _own(values, "autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)


def utilization(resource: str, percent: Any) -> dict[str, Any]:
    """A metric of an autoscaler."""
    return {
        "type": "Resource",
        "resource": {"name": resource, "target": {"type": "Utilization", "averageUtilization": percent}},
    }


def _disruption_budget(values: Values) -> dict[str, Any]:
    spec = {**(values.get("pilot.pdb") or {}), "selector": {"matchLabels": selector(values.identity)}}
    return _own(values, "policy/v1", "PodDisruptionBudget", spec=spec)


def _service_monitor(values: Values) -> dict[str, Any]:
    spec = {
        "selector": {"matchLabels": {**selector(values.identity), "istio": "pilot"}},
        "endpoints": [{"port": "http-monitoring", "interval": values.text("serviceMonitor.interval")}],
    }
    made = _own(values, "monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)
    made["metadata"]["labels"] |= texts(values.get("serviceMonitor.labels"))
    return made


def scheduling(values: Mapping[str, Any]) -> dict[str, Any]:
    """Where pods may run, as far as it is said."""
    return given(values, "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


def given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Those of the fields that are not empty."""
    return {name: values[name] for name in names if values.get(name)}


def texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    """Labels, annotations and variables: texts, whatever YAML took them for; null is none."""
    return {name: as_text(value) for name, value in (values or {}).items() if value is not None}
