"""The container istio-proxy, as a sidecar or as a gateway.

In: everything known of the pod. Out: one raw container. Environment, volumes and capture have their own modules; here
are its image, arguments, ports, probes, lifecycle, rights and resources.
"""

from typing import Any, Literal

import msgspec

from mizzen.inject.interception import PROMETHEUS_PORT, READINESS_PORT
from mizzen.inject.mesh import MeshChoices
from mizzen.inject.overrides import Overrides
from mizzen.inject.values import InjectionConfig, Resources
from mizzen.inject.workload import PROXY

Role = Literal["sidecar", "router"]


class ProxyShape(msgspec.Struct, frozen=True, kw_only=True):
    """How this pod's proxy runs."""

    role: Role
    native: bool
    """As an init container that stays."""
    hold_application: bool


def build_proxy(
    shape: ProxyShape,
    config: InjectionConfig,
    overrides: Overrides,
    *,
    image: str,
    env: list[Any],
    mounts: list[Any],
) -> dict[str, Any]:
    """The container before the user's own words on it are merged."""
    container: dict[str, Any] = {"name": PROXY, "image": image}
    if config.image_pull_policy:
        container["imagePullPolicy"] = config.image_pull_policy
    if shape.native:
        container["restartPolicy"] = "Always"
    container["ports"] = [{"containerPort": PROMETHEUS_PORT, "protocol": "TCP", "name": "http-envoy-prom"}]
    container["args"] = build_arguments(shape.role, config, overrides)
    container |= _lifecycle(shape, config, overrides)
    container["env"] = env
    container |= _probes(shape, config, overrides)
    container["securityContext"] = _security_context(shape, config, overrides)
    container["resources"] = build_resources(shape.role, config, overrides)
    container["volumeMounts"] = mounts
    return container


def build_arguments(role: Role, config: InjectionConfig, overrides: Overrides) -> list[str]:
    """The agent's command line."""
    arguments = ["proxy", role, "--domain", f"$(POD_NAMESPACE).svc.{config.cluster_domain}"]
    arguments.append(f"--proxyLogLevel={overrides.log_level}")
    arguments.append(f"--proxyComponentLogLevel={overrides.component_log_level}")
    arguments.append(f"--log_output_level={overrides.agent_log_level}")
    arguments += [f"--stsPort={config.sts_port}"] if config.sts_port else []
    arguments += ["--log_as_json"] if config.log_as_json else []
    arguments += [f"--outlierLogPath={config.outlier_log_path}"] if config.outlier_log_path else []
    return arguments


def build_image(name: str, config: InjectionConfig, overrides: Overrides, mesh: MeshChoices) -> str:
    """A name below the hub with the tag; a name that holds a slash is taken as it is."""
    if "/" in name:
        return name
    kind = overrides.image_type or mesh.image_type
    suffix = f"-{kind}" if kind and kind != "default" else ""
    return f"{config.hub}/{name}:{config.tag}{suffix}"


def build_resources(role: Role, config: InjectionConfig, overrides: Overrides) -> dict[str, Any]:
    """The annotations' resources alone if there are any, else the installation's."""
    chosen = overrides.resources or (config.resources if role == "sidecar" else config.gateway_resources)
    return _resources(chosen)


def _resources(resources: Resources) -> dict[str, Any]:
    parts = {"requests": dict(resources.requests), "limits": dict(resources.limits)}
    return {name: part for name, part in parts.items() if part}


def _lifecycle(shape: ProxyShape, config: InjectionConfig, overrides: Overrides) -> dict[str, Any]:
    if config.lifecycle:
        return {"lifecycle": msgspec.to_builtins(config.lifecycle)}
    if shape.role == "router":
        return {}
    if shape.native:
        drain = ["pilot-agent", "request", f"--debug-port={overrides.status_port}", "POST", "drain"]
        return {"lifecycle": {"preStop": {"exec": {"command": drain}}}}
    if shape.hold_application:
        return {"lifecycle": {"postStart": {"exec": {"command": ["pilot-agent", "wait"]}}}}
    return {}


def _probes(shape: ProxyShape, config: InjectionConfig, overrides: Overrides) -> dict[str, Any]:
    if overrides.status_port == 0:
        return {}
    probes = {}
    if shape.role == "sidecar" and config.startup_probe:
        probes["startupProbe"] = _probe(period=1, failures=config.startup_failures, delay=0)
    probes["readinessProbe"] = _probe(
        period=overrides.readiness_period,
        failures=overrides.readiness_failures,
        delay=overrides.readiness_initial_delay,
    )
    return probes


def _probe(*, period: int, failures: int, delay: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": "/healthz/ready", "port": READINESS_PORT},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _security_context(shape: ProxyShape, config: InjectionConfig, overrides: Overrides) -> dict[str, Any]:
    if shape.role == "router":
        return {"runAsUser": config.proxy_uid, "runAsGroup": config.proxy_gid}
    added = ["NET_ADMIN"] if overrides.capture.mode == "TPROXY" else []
    added += ["NET_BIND_SERVICE"] if overrides.cap_net_bind_service else []
    privileged = config.privileged or config.core_dumps
    root = bool(added) or config.core_dumps
    capabilities = {**({"add": added} if added else {}), "drop": ["ALL"]}
    return {
        "allowPrivilegeEscalation": privileged,
        "capabilities": capabilities,
        "privileged": privileged,
        "readOnlyRootFilesystem": not config.core_dumps,
        "runAsUser": 0 if root else config.proxy_uid,
        "runAsGroup": config.proxy_gid,
        "runAsNonRoot": not root,
    }
