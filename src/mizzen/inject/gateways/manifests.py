"""The manifests of a managed Gateway.

In: the Deployment that a Gateway wants, the installation's `InjectionConfig`, the mesh config as written. Out:
`Rendered`: ServiceAccount, Deployment and Service, with an autoscaler and a disruption budget if a patch asks for them,
each with its patches; or the Problems for which there are none.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from mizzen.api.problems import Problem
from mizzen.inject.gateways import pods, strategic
from mizzen.inject.values import InjectionConfig
from mizzen.inject.yaml_texts import load_yaml
from mizzen.model import names
from mizzen.model.convert.gateways.deployments import PARTS, Deployment, Part, Patch

NAME_LABEL = "gateway.networking.k8s.io/gateway-name"
CLASS_LABEL = "gateway.networking.k8s.io/gateway-class-name"
MANAGED_LABEL = "gateway.istio.io/managed"

_INVALID = "invalid-parameters"
_ONLY_IF_ASKED = ("horizontalPodAutoscaler", "podDisruptionBudget")
_NEAR = {"networking.istio.io/traffic-distribution": "PreferClose"}


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """The manifests of one Gateway."""

    documents: tuple[dict[str, Any], ...] = ()
    problems: tuple[Problem, ...] = ()


class _Refused(Exception):
    """A patch that does not read; carries its Problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def gateway_manifests(
    wanted: Deployment, config: InjectionConfig | None = None, mesh: Mapping[str, Any] | None = None
) -> Rendered:
    """Everything that the Gateway wants, or what is in the way."""
    if wanted.fault is not None:
        return Rendered(problems=(_problem(wanted, "spec.infrastructure.parametersRef", wanted.fault.message),))
    config = config or InjectionConfig()
    pod, problems = pods.gateway_pod(wanted, _labels(wanted), config, mesh or {})
    if problems:
        return Rendered(problems=tuple(msgspec.structs.replace(problem, key=wanted.gateway) for problem in problems))
    try:
        return Rendered(documents=tuple(_patched(wanted, _base(wanted, pod))))
    except _Refused as bad:
        return Rendered(problems=(bad.problem,))


# -- the objects ------------------------------------------------------------------------------------------------------


def _labels(wanted: Deployment) -> dict[str, str]:
    return {
        **wanted.labels,
        NAME_LABEL: names.label_value(wanted.gateway.name),
        CLASS_LABEL: wanted.class_name,
        MANAGED_LABEL: wanted.controller.replace("/", "-"),
        "service.istio.io/canonical-name": names.label_value(wanted.name),
    }


def _base(wanted: Deployment, pod: dict[str, Any]) -> dict[Part, dict[str, Any]]:
    """Every object before its patches."""
    selector = {NAME_LABEL: names.label_value(wanted.gateway.name)}
    account = _object(wanted, "v1", "ServiceAccount", {}, name=wanted.service_account)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": wanted.name}
    return {
        "serviceAccount": account,
        "deployment": _object(
            wanted, "apps/v1", "Deployment", {"spec": {"selector": {"matchLabels": selector}, "template": pod}}
        ),
        "service": _object(wanted, "v1", "Service", {"spec": _service(wanted, selector)}),
        "horizontalPodAutoscaler": _object(
            wanted,
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            {"spec": {"scaleTargetRef": target, "maxReplicas": 1}},
        ),
        "podDisruptionBudget": _object(
            wanted, "policy/v1", "PodDisruptionBudget", {"spec": {"selector": {"matchLabels": selector}}}
        ),
    }


def _object(wanted: Deployment, version: str, kind: str, body: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    annotations = dict(wanted.annotations)
    if kind == "Service" and wanted.is_waypoint:
        annotations |= _NEAR
    metadata: dict[str, Any] = {
        "name": name or wanted.name,
        "namespace": wanted.gateway.namespace,
        "labels": _labels(wanted),
    }
    if annotations:
        metadata["annotations"] = annotations
    if wanted.uid:
        owner = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway"}
        metadata["ownerReferences"] = [{**owner, "name": wanted.gateway.name, "uid": wanted.uid}]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **body}


def _service(wanted: Deployment, selector: Mapping[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "type": wanted.service_type,
        "selector": dict(selector),
        "ports": [
            {"name": port.name, "port": port.number, "protocol": "TCP", "appProtocol": port.protocol}
            for port in wanted.ports
        ],
    }
    if wanted.address:
        spec["loadBalancerIP"] = wanted.address
    return spec


# -- patches ----------------------------------------------------------------------------------------------------------


def _patched(wanted: Deployment, base: Mapping[Part, dict[str, Any]]) -> list[dict[str, Any]]:
    order: tuple[Part, ...] = ("serviceAccount", *(part for part in PARTS if part != "serviceAccount"))
    documents = []
    for part in order:
        patches = [patch for patch in wanted.patches if patch.part == part]
        if part in _ONLY_IF_ASKED and not patches:
            continue
        document = base[part]
        for patch in patches:
            document = _identified(strategic.merge(document, _read(wanted, patch)), base[part])
        documents.append(document)
    return documents


def _read(wanted: Deployment, patch: Patch) -> Mapping[str, Any]:
    try:
        value = load_yaml(patch.text)
    except (yaml.YAMLError, RecursionError) as bad:
        raise _Refused(_patch_problem(wanted, patch, " ".join(str(bad).split()))) from bad
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Refused(_patch_problem(wanted, patch, "expected an object"))
    return value


def _identified(document: dict[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The document under the name and kind of its base, which no patch may change."""
    own = {field: base["metadata"][field] for field in ("name", "namespace")}
    metadata = document.get("metadata")
    kept = {**(metadata if isinstance(metadata, Mapping) else {}), **own}
    return {**document, "apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": kept}


def _patch_problem(wanted: Deployment, patch: Patch, message: str) -> Problem:
    return _problem(wanted, "spec.infrastructure.parametersRef", f"{patch.source} {patch.part}: {message}")


def _problem(wanted: Deployment, path: str, message: str) -> Problem:
    return Problem(key=wanted.gateway, path=path, message=message, code=_INVALID, level="error")
