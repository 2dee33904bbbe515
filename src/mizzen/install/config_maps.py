"""The ConfigMaps of an installation: mesh config, what injection is told, dashboards.

In: `Values`. Out: documents. What a control plane reads of them is YAML or JSON inside of texts: the injector's are
printed as Go prints JSON, sorted and indented, so that Helm makes the same bytes.
"""

import importlib.resources
import json
from collections.abc import Mapping
from typing import Any

import yaml

from mizzen.install.control_plane import texts
from mizzen.install.identity import document
from mizzen.install.values import Values, merge

DASHBOARD = "mizzen-control-plane.json"

_SECURE_PORT = 15012


def mesh_config_map(values: Values) -> dict[str, Any]:
    """`istio` or `istio-REVISION`: the mesh config and the mesh's networks."""
    identity = values.identity
    texts = {
        "mesh": _print_yaml(mesh_config(values)),
        "meshNetworks": _print_yaml({"networks": values.get("global.meshNetworks") or {}}),
    }
    return document(
        "v1",
        "ConfigMap",
        f"istio{identity.suffix}",
        namespace=identity.namespace,
        labels=identity.labels(app="istiod"),
        data=texts,
    )


def mesh_config(values: Values) -> Mapping[str, Any]:
    """The mesh config: what the other values decide, and `meshConfig` over it."""
    identity = values.identity
    decided: dict[str, Any] = {
        "rootNamespace": identity.namespace,
        "defaultProviders": {"metrics": ["prometheus"]},
        "defaultConfig": {"discoveryAddress": f"{identity.name}.{identity.namespace}.svc:{_SECURE_PORT}"},
    }
    if mesh_id := values.text("global.meshID"):
        decided["defaultConfig"]["meshId"] = mesh_id
    return merge(decided, values.get("meshConfig") or {})


def injector_config_map(values: Values) -> dict[str, Any]:
    """`istio-sidecar-injector` or `istio-sidecar-injector-REVISION`: values, policy and selectors."""
    identity = values.identity
    injector = dict(values.get("sidecarInjectorWebhook") or {})
    told: dict[str, Any] = {
        "global": values.get("global"),
        "pilot": {"cni": values.get("pilot.cni")},
        "revision": values.text("revision"),
        "sidecarInjectorWebhook": injector,
    }
    config: dict[str, Any] = {
        "policy": values.text("global.proxy.autoInject"),
        "defaultTemplates": injector.get("defaultTemplates") or ["sidecar"],
        "aliases": injector.get("aliases") or {},
        "neverInjectSelector": injector.get("neverInjectSelector") or [],
        "alwaysInjectSelector": injector.get("alwaysInjectSelector") or [],
        "injectedAnnotations": injector.get("injectedAnnotations") or {},
    }
    return document(
        "v1",
        "ConfigMap",
        f"istio-sidecar-injector{identity.suffix}",
        namespace=identity.namespace,
        labels=identity.labels(app="sidecar-injector"),
        data={"values": _print_json(told), "config": _print_json(config)},
    )


def dashboards_config_map(values: Values) -> dict[str, Any]:
    """Dashboards of Grafana, for whoever collects them by label."""
    identity = values.identity
    text = importlib.resources.files("mizzen.install").joinpath(f"data/{DASHBOARD}").read_text("utf-8")
    more = texts(values.get("dashboards.labels"))
    return document(
        "v1",
        "ConfigMap",
        f"mizzen-dashboards{identity.suffix}",
        namespace=identity.namespace,
        labels={**identity.labels(app="istiod"), **more},
        data={DASHBOARD: text},
    )


def _print_yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=True, width=1 << 20, allow_unicode=True)


def _print_json(value: Any) -> str:
    """As Go indents JSON: sorted, and safe inside of HTML."""
    text = json.dumps(_whole(value), indent=2, sort_keys=True, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _whole(value: Any) -> Any:
    """Numbers without a fraction as integers, which is how Go prints them."""
    if isinstance(value, Mapping):
        return {key: _whole(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
