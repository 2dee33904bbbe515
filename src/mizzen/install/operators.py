"""What a file says about an installation: Helm values, or an IstioOperator as istioctl takes it.

In: a document. Out: a layer of values. Of an IstioOperator its `values`, the mesh config, hub, tag, revision, namespace
and the usual settings of the components are read; whatever else it says stays in the layer under its own name, where
it is found to have no effect.
"""

from collections.abc import Mapping
from typing import Any

from mizzen.errors import DecodeError
from mizzen.install.values import Tree, merge

_OPERATOR = "IstioOperator"
_PILOT = "pilot"
_GATEWAY_LISTS = ("ingressGateways", "egressGateways")
_TOP = {
    "hub": ("global", "hub"),
    "tag": ("global", "tag"),
    "namespace": ("global", "istioNamespace"),
    "revision": ("revision",),
    "meshConfig": ("meshConfig",),
}
_SAME = ("resources", "replicaCount", "nodeSelector", "tolerations", "affinity", "podAnnotations")
_SCALING = {"autoscaleMin": "minReplicas", "autoscaleMax": "maxReplicas"}
_KNOWN_PROFILES = ("", "default", "empty", "minimal")
"""Profiles that ask for no more than the defaults have."""


def layer_of(document: Tree) -> Tree:
    """The values of a document. Raises DecodeError for one that is something else."""
    kind = document.get("kind")
    if kind == _OPERATOR:
        spec = document.get("spec") or {}
        if not isinstance(spec, Mapping):
            raise DecodeError("expected a map", "spec")
        return _of_operator(spec)
    if kind is not None and "apiVersion" in document:
        raise DecodeError(f"expected values or an {_OPERATOR}, got a {kind}")
    return document


def _of_operator(spec: Tree) -> dict[str, Any]:
    layer: dict[str, Any] = {}
    for name, value in spec.items():
        if name in _TOP:
            layer = merge(layer, _nest(_TOP[name], value))
        elif name == "components" and isinstance(value, Mapping):
            layer = merge(layer, _of_components(value))
        elif name not in ("values", "unvalidatedValues") and (name != "profile" or value not in _KNOWN_PROFILES):
            layer[name] = value
    for name in ("values", "unvalidatedValues"):
        layer = merge(layer, spec.get(name) or {})
    return layer


def _of_components(components: Tree) -> dict[str, Any]:
    layer: dict[str, Any] = {}
    for name, value in components.items():
        if name == _PILOT and isinstance(value, Mapping):
            layer = merge(layer, {"pilot": _settings(value)})
        elif name in _GATEWAY_LISTS and isinstance(value, list):
            layer = merge(layer, {"gateways": dict(map(_of_gateway, value))})
        elif not isinstance(value, Mapping) or value.get("enabled"):
            layer[f"components.{name}"] = value
    return layer


def _of_gateway(gateway: Tree) -> tuple[str, dict[str, Any]]:
    if not isinstance(gateway, Mapping) or not gateway.get("name"):
        raise DecodeError("expected a gateway with a name", "spec.components")
    own = _settings(gateway)
    scaling = {key: own.pop(name) for name, key in _SCALING.items() if name in own}
    if scaling:
        own["autoscaling"] = scaling
    if "serviceAnnotations" in own:
        own = merge(own, {"service": {"annotations": own.pop("serviceAnnotations")}})
    for name, key in (("namespace", "namespace"), ("label", "labels"), ("enabled", "enabled")):
        if name in gateway:
            own[key] = gateway[name]
    return str(gateway["name"]), own


def _settings(component: Tree) -> dict[str, Any]:
    """The `k8s` settings of a component, by the names that the control plane's values have."""
    found: dict[str, Any] = {}
    for name, value in (component.get("k8s") or {}).items():
        if name in (*_SAME, "serviceAnnotations"):
            found[name] = value
        elif name == "env" and isinstance(value, list):
            found["env"] = {each.get("name"): each.get("value") for each in value if "value" in each}
        elif name == "hpaSpec" and isinstance(value, Mapping):
            bounds = {"autoscaleMin": value.get("minReplicas"), "autoscaleMax": value.get("maxReplicas")}
            found |= {key: bound for key, bound in bounds.items() if bound is not None}
        elif name == "service" and isinstance(value, Mapping):
            found["service"] = value
        else:
            found[f"k8s.{name}"] = value
    return found


def _nest(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for step in reversed(path):
        value = {step: value}
    nested: dict[str, Any] = value
    return nested
