"""The pod of a managed Gateway: the proxy, alone.

In: the Deployment that a Gateway wants, the installation's `InjectionConfig` and the mesh config as written. Out: a pod
template, or what is wrong with the annotations that the Gateway hands down. It says of itself that it is not to be
injected.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.api.problems import Problem
from mizzen.inject.mesh import read_mesh
from mizzen.inject.overrides import read_overrides
from mizzen.inject.template import TEMPLATES, Template, build_template
from mizzen.inject.values import InjectionConfig, Resources
from mizzen.inject.workload import Owner, Workload
from mizzen.model.convert.gateways.deployments import Deployment

_READINESS = {"path": "/healthz/ready", "port": 15021, "scheme": "HTTP"}
_PORTS = (("metrics", 15020), ("status-port", 15021), ("http-envoy-prom", 15090))
_WAYPOINT_RESOURCES = Resources(requests={"cpu": "100m", "memory": "128Mi"}, limits={"cpu": "2", "memory": "1Gi"})
_SCRAPED = {
    "prometheus.io/path": "/stats/prometheus",
    "prometheus.io/port": "15020",
    "prometheus.io/scrape": "true",
}


def gateway_pod(
    wanted: Deployment, labels: Mapping[str, str], config: InjectionConfig, mesh: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """The pod template with these labels; with Problems there is none."""
    annotations = {**wanted.annotations, TEMPLATES: "gateway"}
    choices, faults = read_mesh(mesh, annotations)
    overrides, more = read_overrides(
        annotations,
        config,
        status_port=choices.status_port or config.status_port,
        interception_mode=choices.interception_mode,
    )
    if overrides is None or faults:
        return {}, faults + more
    workload = Workload(
        namespace=wanted.gateway.namespace,
        labels=labels,
        annotations=annotations,
        owner=Owner(api_version="apps/v1", kind="Deployment", name=wanted.name),
        containers=(),
    )
    account = {"spec": {"serviceAccountName": wanted.service_account}}
    built = build_template(account, workload, config, overrides, choices)
    if isinstance(built, Problem):
        return {}, (built,)
    return _assemble(wanted, labels, built, config), ()


def _assemble(
    wanted: Deployment, labels: Mapping[str, str], built: Template, config: InjectionConfig
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "serviceAccountName": wanted.service_account,
        "containers": [_container(wanted, built, config)],
        "volumes": built.volumes,
        "securityContext": {"sysctls": built.sysctls},
    }
    if built.image_pull_secrets:
        spec["imagePullSecrets"] = built.image_pull_secrets
    return {
        "metadata": {
            "labels": {"sidecar.istio.io/inject": "false", **labels, **built.labels},
            "annotations": {**wanted.annotations, **_SCRAPED, **built.annotations},
        },
        "spec": spec,
    }


def _container(wanted: Deployment, built: Template, config: InjectionConfig) -> dict[str, Any]:
    """The injected gateway's container with the ports and probes of one that is always a gateway."""
    container = dict(built.proxy)
    container["ports"] = [{"containerPort": port, "name": name, "protocol": "TCP"} for name, port in _PORTS]
    container["startupProbe"] = _probe(period=1, failures=30, delay=1)
    container["readinessProbe"] = _probe(period=15, failures=4, delay=0)
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsUser": config.proxy_uid,
        "runAsGroup": config.proxy_gid,
        "runAsNonRoot": True,
    }
    if wanted.is_waypoint:
        container["args"] = ["proxy", "waypoint", *container["args"][2:]]
        container["resources"] = {
            "requests": dict(_WAYPOINT_RESOURCES.requests),
            "limits": dict(_WAYPOINT_RESOURCES.limits),
        }
    return container


def _probe(*, period: int, failures: int, delay: int) -> dict[str, Any]:
    return {
        "httpGet": dict(_READINESS),
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": failures,
    }
