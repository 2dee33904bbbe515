"""Injection: namespaces and pods that get no sidecar, or might get two.

In: Namespaces, pods, the injector's ConfigMap. Out: IST0102, IST0103, IST0123, IST0148. Istio's own namespace is left
alone. Namespaces that choose a revision are not looked at for pods without a sidecar, as in the reference.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mizzen.analysis import catalogue, membership
from mizzen.analysis import settings as analysis_settings
from mizzen.analysis.findings import Finding, full_name, report
from mizzen.analysis.membership import DATAPLANE_MODE, INJECT, INJECTION, REVISION
from mizzen.api.kube.cluster import Namespace
from mizzen.api.kube.data import ConfigMap
from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query

_INJECTOR = "istio-sidecar-injector"


@query
def injector_values(db: Engine, revision: str) -> Mapping[str, Any]:
    """The Helm values that the injector of a revision works with; empty where they are not known."""
    name = _INJECTOR if revision in ("", "default") else f"{_INJECTOR}-{revision}"
    found: ConfigMap | None = db.input(Key("ConfigMap", analysis_settings.settings(db).istio_namespace, name))
    try:
        values = json.loads(found.data.get("values", "")) if found is not None else {}
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """A value by its dotted path, or None."""
    found: Any = values
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


@query
def check_namespace(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Labels that contradict each other, and namespaces without injection."""
    found: Namespace | None = db.input(key)
    if found is None or key.name == analysis_settings.settings(db).istio_namespace:
        return ()
    return tuple(_check(db, key, found.metadata.labels))


def _check(db: Engine, key: Key, labels: Mapping[str, str]) -> Iterator[Finding]:
    chosen = [INJECTION] if INJECTION in labels else []
    if labels.get(INJECTION, "enabled") == "enabled":
        chosen += [name for name in (REVISION, DATAPLANE_MODE) if name in labels]
    if len(chosen) > 1:
        listed = [f"{name}={labels[name]}" for name in chosen]
        yield report(catalogue.NAMESPACE_MULTIPLE_INJECTION_LABELS, key, listed, path="metadata.labels")
    if membership.is_ambient(labels) or labels.get(INJECTION) or REVISION in labels:
        return
    values = injector_values(db, analysis_settings.settings(db).revision)
    if value_at(values, "sidecarInjectorWebhook.enableNamespacesByDefault") is True:
        yield report(catalogue.NAMESPACE_INJECTION_ENABLED_BY_DEFAULT, key, path="metadata.name")
    else:
        yield report(catalogue.NAMESPACE_NOT_INJECTED, key, key.name, key.name, path="metadata.name")


@query
def check_pod(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A pod without a sidecar, where every pod is to have one."""
    pod: Pod | None = db.input(key)
    if pod is None or pod.spec.host_network or membership.has_proxy(pod.spec):
        return ()
    if key.namespace == analysis_settings.settings(db).istio_namespace:
        return ()
    space = membership.namespace_labels(db, key.namespace) or {}
    asked = pod.metadata.labels.get(INJECT, pod.metadata.annotations.get(INJECT, ""))
    if space.get(INJECTION) != "enabled" or membership.is_ambient(space) or asked.lower() == "false":
        return ()
    return (report(catalogue.POD_MISSING_PROXY, key, full_name(key), path="metadata.name"),)
