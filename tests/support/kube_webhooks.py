"""Webhook configurations as an installation brings them, but called by URL, and pods and reviews for their tests."""

from typing import Any

REVISION, INJECT, INJECTION = "istio.io/rev", "sidecar.istio.io/inject", "istio-injection"
GROUPS = ("security.istio.io", "networking.istio.io", "telemetry.istio.io", "extensions.istio.io")
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def selector(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def _entry(prefix: str, url: str, policy: str, namespaces: dict[str, Any], pods: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{prefix}sidecar-injector.istio.io",
        "clientConfig": {"url": url},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "failurePolicy": policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": namespaces,
        "objectSelector": pods,
    }


def injector(
    url: str, revision: str = "default", policy: str = "Fail", name: str = "", tag: str = ""
) -> dict[str, Any]:
    """The injector of a revision, or of a tag that stands for it; that of the default one has four entries."""
    shown = tag or revision
    absent = (expression(INJECTION, "DoesNotExist"), expression(REVISION, "DoesNotExist"))
    wanted = expression(INJECT, "NotIn", "false")
    entries = [
        _entry(
            "rev.namespace.",
            url,
            policy,
            selector(expression(REVISION, "In", shown), expression(INJECTION, "DoesNotExist")),
            selector(wanted),
        ),
        _entry("rev.object.", url, policy, selector(*absent), selector(wanted, expression(REVISION, "In", shown))),
    ]
    if shown == "default":
        asked = selector(expression(INJECT, "In", "true"), expression(REVISION, "DoesNotExist"))
        entries.append(
            _entry("namespace.", url, policy, selector(expression(INJECTION, "In", "enabled")), selector(wanted))
        )
        entries.append(_entry("object.", url, policy, selector(*absent), asked))
    labels = {REVISION: revision, **({"istio.io/tag": tag} if tag else {})}
    suffix = "" if shown == "default" else f"-{shown}"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name or f"istio-sidecar-injector{suffix}", "labels": labels},
        "webhooks": entries,
    }


def validator(url: str, revision: str = "default", groups: tuple[str, ...] = GROUPS) -> dict[str, Any]:
    """The validator of a revision, failing open as it is installed."""
    entry = {
        "name": "rev.validation.istio.io",
        "clientConfig": {"url": url},
        "rules": [
            {"operations": ["CREATE", "UPDATE"], "apiGroups": list(groups), "apiVersions": ["*"], "resources": ["*"]}
        ],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "objectSelector": selector(expression(REVISION, "In", revision)),
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"istio-validator-{revision}", "labels": {REVISION: revision}},
        "webhooks": [entry],
    }


def review(document: dict[str, Any] | None, **request: Any) -> dict[str, Any]:
    """An AdmissionReview of somebody who creates a document."""
    document = document or {}
    group, _, version = document.get("apiVersion", "v1").rpartition("/")
    kind = {"group": group, "version": version, "kind": document.get("kind", "Pod")}
    asked: dict[str, Any] = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": {"group": group, "version": version, "resource": f"{kind['kind'].lower()}s"},
        "namespace": document.get("metadata", {}).get("namespace", "shop"),
        "operation": "CREATE",
        "object": document or None,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**asked, **request}}


def apply_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """What a JSON Patch makes of a document, by the letter of RFC 6902; raises for one that does not fit."""
    for operation in operations:
        kind = operation["op"]
        if kind == "move":
            document, value = _take(document, _steps(operation["from"]))
            document = _put(document, _steps(operation["path"]), value, adds=True)
        elif kind == "remove":
            document, _ = _take(document, _steps(operation["path"]))
        else:
            document = _put(document, _steps(operation["path"]), operation["value"], adds=kind == "add")
    return document


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _take(document: Any, steps: list[str]) -> tuple[Any, Any]:
    step, *rest = steps
    changed = document.copy()
    at = int(step) if isinstance(document, list) else step
    if rest:
        changed[at], taken = _take(document[at], rest)
        return changed, taken
    return changed, changed.pop(at)


def _put(document: Any, steps: list[str], value: Any, *, adds: bool) -> Any:
    if not steps:
        return value
    step, *rest = steps
    changed = document.copy()
    at = int(step) if isinstance(document, list) else step
    if rest:
        changed[at] = _put(document[at], rest, value, adds=adds)
    elif isinstance(changed, list) and adds:
        assert at <= len(changed)
        changed.insert(at, value)
    else:
        assert adds or not isinstance(changed, dict) or at in changed
        changed[at] = value
    return changed
