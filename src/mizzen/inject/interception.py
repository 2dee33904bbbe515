"""Capture in the pod: istio-init, or istio-validation and annotations where a node agent does the work.

In: overrides and installation. Out: the init container whose arguments `mizzen.capture.arguments` reads, and the
annotations that tell the CNI plug-in the same.
"""

from typing import Any

from mizzen.inject import overrides as names
from mizzen.inject.overrides import Overrides
from mizzen.inject.values import InjectionConfig
from mizzen.inject.workload import INIT, VALIDATION

OUTBOUND_PORT = 15001
INBOUND_PORT = 15006
PROMETHEUS_PORT = 15090
READINESS_PORT = 15021

NETWORKS = "k8s.v1.cni.cncf.io/networks"


def build_init(
    config: InjectionConfig,
    overrides: Overrides,
    *,
    image: str,
    proxy_uid: int,
    resources: dict[str, Any],
    env: list[Any],
) -> dict[str, Any] | None:
    """The container, or None where nothing is captured."""
    if overrides.capture.mode == "NONE":
        return None
    container: dict[str, Any] = {
        "name": VALIDATION if config.cni.enabled else INIT,
        "image": image,
        "args": build_arguments(config, overrides, proxy_uid=proxy_uid),
        "resources": resources,
        "securityContext": _security_context(config),
    }
    if config.image_pull_policy:
        container["imagePullPolicy"] = config.image_pull_policy
    if env:
        container["env"] = env
    return container


def build_arguments(config: InjectionConfig, overrides: Overrides, *, proxy_uid: int) -> list[str]:
    """The command line of istio-iptables."""
    capture = overrides.capture
    arguments = ["istio-iptables", "-p", str(OUTBOUND_PORT), "-z", str(INBOUND_PORT), "-u", str(proxy_uid)]
    arguments += ["-m", capture.mode]
    arguments += ["-i", capture.include_outbound_ranges, "-x", capture.exclude_outbound_ranges]
    arguments += ["-b", capture.include_inbound_ports, "-d", excluded_inbound_ports(overrides)]
    optional = {
        "-q": capture.include_outbound_ports,
        "-o": capture.exclude_outbound_ports,
        "-k": capture.virtual_interfaces,
        "-c": capture.exclude_interfaces,
    }
    for flag, value in optional.items():
        arguments += [flag, value] if value is not None else []
    arguments.append(f"--log_output_level={overrides.agent_log_level}")
    arguments += ["--log_as_json"] if config.log_as_json else []
    if config.cni.enabled:
        arguments += ["--run-validation", "--skip-rule-apply"]
    elif config.force_apply_iptables:
        arguments.append("--force-apply")
    arguments += ["--native-nftables"] if config.native_nftables else []
    return arguments


def excluded_inbound_ports(overrides: Overrides) -> str:
    """The proxy's own ports, then what the user excludes with the status port added."""
    return ",".join([str(PROMETHEUS_PORT), str(READINESS_PORT), *_excluded_by_user(overrides)])


def build_cni_annotations(config: InjectionConfig, overrides: Overrides, present: str) -> dict[str, str]:
    """What the CNI plug-in reads; `present` is the pod's list of further networks, for multus to extend."""
    if not config.cni.enabled:
        return {}
    capture = overrides.capture
    annotations = {
        names.INTERCEPTION_MODE: capture.mode,
        names.INCLUDE_OUTBOUND_RANGES: capture.include_outbound_ranges,
        names.EXCLUDE_OUTBOUND_RANGES: capture.exclude_outbound_ranges or None,
        names.INCLUDE_INBOUND_PORTS: capture.include_inbound_ports,
        names.EXCLUDE_INBOUND_PORTS: ",".join(_excluded_by_user(overrides)),
        names.INCLUDE_OUTBOUND_PORTS: capture.include_outbound_ports,
        names.EXCLUDE_OUTBOUND_PORTS: capture.exclude_outbound_ports,
        names.REROUTE_INTERFACES: capture.virtual_interfaces,
        names.EXCLUDE_INTERFACES: capture.exclude_interfaces,
        NETWORKS: _networks(present) if config.cni.provider == "multus" else None,
    }
    return {name: value for name, value in annotations.items() if value is not None}


def _excluded_by_user(overrides: Overrides) -> list[str]:
    ports = [port.strip() for port in overrides.capture.exclude_inbound_ports.split(",") if port.strip()]
    status = str(overrides.status_port)
    return ports if status in (*ports, "0") else [*ports, status]


def _networks(present: str) -> str:
    """multus takes a comma list or a JSON list; ours goes last, once."""
    network = "default/istio-cni"
    if present.strip().startswith("["):
        entry = '{"name":"istio-cni","namespace":"default"}'
        listed = present.strip().removesuffix("]").rstrip().rstrip(",")
        return present if '"istio-cni"' in present else f"{listed}{'' if listed == '[' else ','}{entry}]"
    parts = [part.strip() for part in present.split(",") if part.strip()]
    return ", ".join(parts if network in parts else [*parts, network])


def _security_context(config: InjectionConfig) -> dict[str, Any]:
    context: dict[str, Any] = {"allowPrivilegeEscalation": config.privileged, "privileged": config.privileged}
    if config.cni.enabled:
        identity = {"runAsUser": config.proxy_uid, "runAsGroup": config.proxy_gid, "runAsNonRoot": True}
        return {**context, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True, **identity}
    capabilities = {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}
    identity = {"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False}
    return {**context, "capabilities": capabilities, "readOnlyRootFilesystem": False, **identity}
