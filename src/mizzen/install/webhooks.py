"""The webhook configurations of a revision or of a tag: which pods and objects the API server asks about.

In: an `Injector` or a `Validator`. Out: one configuration each. Entries and selectors are Istio's: a namespace's
`istio-injection` beats its `istio.io/rev`, and a pod's own `istio.io/rev` counts where the namespace has neither. No
entry is asked about the system's namespaces, whatever somebody labels them with, nor about pods that refuse (as those
of the control plane do): then an absent control plane keeps neither the system nor itself from starting.
"""

from typing import Any

import msgspec

from mizzen.install.identity import (
    DEFAULT_NAMESPACE,
    DEFAULT_REVISION,
    REVISION_LABEL,
    TAG_LABEL,
    Identity,
    document,
)

SYSTEM_NAMESPACES = ("kube-node-lease", "kube-public", "kube-system", "local-path-storage")
GROUPS = ("extensions.istio.io", "networking.istio.io", "security.istio.io", "telemetry.istio.io")
"""Those whose objects are validated."""

_INJECT, _NAMESPACE_INJECT = "sidecar.istio.io/inject", "istio-injection"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_INJECTION, _VALIDATION = "sidecar-injector.istio.io", "validation.istio.io"
_GROUP = "admissionregistration.k8s.io/v1"
_PORT = 443

Expression = dict[str, Any]


class Injector(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked about pods, and about which."""

    identity: Identity = Identity()
    """The control plane that is asked."""
    tag: str = ""
    """Another name by which pods and namespaces select it; empty means the revision's own."""
    enable_namespaces_by_default: bool = False
    """Whether namespaces without any label are injected; for the default revision or tag alone."""
    reinvocation_policy: str = "Never"
    path: str = "/inject"
    url: str = ""
    """A control plane outside the cluster; `path` does not count then."""
    ca_bundle: str = ""
    """PEM in base64; empty leaves it to the control plane, which keeps it right."""

    @property
    def name(self) -> str:
        """The configuration's name."""
        base = f"istio-revision-tag-{self.tag}" if self.tag else f"istio-sidecar-injector{self.identity.suffix}"
        namespace = self.identity.namespace
        return base if namespace == DEFAULT_NAMESPACE else f"{base}-{namespace}"

    @property
    def selected_as(self) -> str:
        """The value of `istio.io/rev` that selects it."""
        return self.tag or self.identity.revision_label


class Validator(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked about the mesh's objects: those of its revision, or those that name none."""

    identity: Identity = Identity()
    is_default: bool = False
    """Whether this is the configuration for objects without a revision, of which a cluster has one."""
    failure_policy: str = "Ignore"
    """Open at first: the control plane closes it once the API server was seen to reach it."""
    url: str = ""
    ca_bundle: str = ""

    @property
    def name(self) -> str:
        """The configuration's name."""
        return (
            "istiod-default-validator"
            if self.is_default
            else f"istio-validator{self.identity.suffix}-{self.identity.namespace}"
        )


def injector_configuration(injector: Injector) -> dict[str, Any]:
    """The MutatingWebhookConfiguration of a revision or a tag."""
    labels = {**injector.identity.labels(app="sidecar-injector")}
    if injector.tag:
        labels[TAG_LABEL] = injector.tag
    return document(
        _GROUP, "MutatingWebhookConfiguration", injector.name, labels=labels, webhooks=injection_entries(injector)
    )


def injection_entries(injector: Injector) -> list[dict[str, Any]]:
    """Two entries by revision; two more for `istio-injection` where the revision or the tag is the default."""
    revision = _in(REVISION_LABEL, injector.selected_as)
    unlabelled = [_absent(_NAMESPACE_INJECT), _absent(REVISION_LABEL)]
    willing = _not_in(_INJECT, "false")
    entries = [
        _entry(injector, "rev.namespace.", [revision, _absent(_NAMESPACE_INJECT)], [willing]),
        _entry(injector, "rev.object.", [_absent(REVISION_LABEL), _absent(_NAMESPACE_INJECT)], [willing, revision]),
    ]
    if injector.selected_as == DEFAULT_REVISION:
        asks = [_in(_INJECT, "true"), _absent(REVISION_LABEL)]
        entries += [
            _entry(injector, "namespace.", [_in(_NAMESPACE_INJECT, "enabled")], [willing]),
            _entry(injector, "object.", unlabelled, asks),
        ]
        if injector.enable_namespaces_by_default:
            silent = [_absent(_INJECT), _absent(REVISION_LABEL)]
            entries.append(_entry(injector, "auto.", unlabelled, silent))
    return entries


def _entry(injector: Injector, prefix: str, namespaces: list[Expression], objects: list[Expression]) -> dict[str, Any]:
    return {
        "name": f"{prefix}{_INJECTION}",
        "clientConfig": _client_config(injector.identity, injector.url, injector.path, injector.ca_bundle),
        "sideEffects": "None",
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "failurePolicy": "Fail",
        "reinvocationPolicy": injector.reinvocation_policy,
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchExpressions": [*namespaces, _not_in(_NAMESPACE_NAME, *SYSTEM_NAMESPACES)]},
        "objectSelector": {"matchExpressions": objects},
    }


def validator_configuration(validator: Validator) -> dict[str, Any]:
    """The ValidatingWebhookConfiguration of a revision, or the one for objects that name none."""
    labels = {**validator.identity.labels(app="istiod"), "istio": "istiod"}
    selected = _in(REVISION_LABEL, validator.identity.revision_label)
    prefix = "rev."
    if validator.is_default:
        labels[TAG_LABEL] = DEFAULT_REVISION
        selected, prefix = _absent(REVISION_LABEL), ""
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": list(GROUPS), "apiVersions": ["*"], "resources": ["*"]}
    entry = {
        "name": f"{prefix}{_VALIDATION}",
        "clientConfig": _client_config(validator.identity, validator.url, "/validate", validator.ca_bundle),
        "rules": [rule],
        "failurePolicy": validator.failure_policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchExpressions": [selected]},
    }
    return document(_GROUP, "ValidatingWebhookConfiguration", validator.name, labels=labels, webhooks=[entry])


def _client_config(identity: Identity, url: str, path: str, bundle: str) -> dict[str, Any]:
    where: dict[str, Any] = {"url": url}
    if not url:
        service = {"name": identity.name, "namespace": identity.namespace, "path": path, "port": _PORT}
        where = {"service": service}
    return {**where, "caBundle": bundle} if bundle else where


def _in(key: str, *values: str) -> Expression:
    return {"key": key, "operator": "In", "values": list(values)}


def _not_in(key: str, *values: str) -> Expression:
    return {"key": key, "operator": "NotIn", "values": list(values)}


def _absent(key: str) -> Expression:
    return {"key": key, "operator": "DoesNotExist"}
