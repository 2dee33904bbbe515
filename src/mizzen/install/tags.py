"""A revision's tag, as documents: another name by which namespaces and pods select a control plane.

In: the revision's own injector and Service as the cluster has them, what the tag is to be. Out: the tag's injector and
Service; for the tag `default` also the validator of objects without a revision, and the injector of the revision
`default` deactivated, so that nobody injects twice. Whom the API server asks, and whom it believes there, is copied
from the revision's injector, be it by Service or by URL, Mizzen's or Istio's.
"""

import urllib.parse
from collections.abc import Mapping
from typing import Any

import msgspec

from mizzen.install.control_plane import selector, service_ports
from mizzen.install.identity import COMPONENT_LABEL, DEFAULT_REVISION, REVISION_LABEL, TAG_LABEL, Identity
from mizzen.install.webhooks import Injector, Validator, injector_configuration, validator_configuration

DEACTIVATED = {"istio.io/deactivated": "never-match"}
"""Labels that nothing has, by which an entry is asked about nothing."""
DEFAULT_VALIDATOR = "istiod-default-validator"

_INJECTION = "sidecar-injector.istio.io"
_INSTALLERS = (COMPONENT_LABEL, "app.kubernetes.io/managed-by", "helm.sh/chart", "release")
"""Labels by which an installer knows what is its own to remove; a tag is its user's."""

Document = Mapping[str, Any]


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """What a tag is to be."""

    name: str
    identity: Identity
    """The control plane that it stands for."""
    injector: Document
    """That control plane's own injector."""
    service: Document | None = None
    """Its Service, if it is in this cluster."""
    configuration: str = ""
    """Another name for the tag's injector."""
    injects_by_default: bool = False
    """Whether namespaces without any label are injected; for the tag `default` alone."""

    @property
    def is_default(self) -> bool:
        """Whether objects and namespaces that name no revision are its own."""
        return self.name == DEFAULT_REVISION


def tag_documents(tag: Tag, validator: Document | None = None) -> list[dict[str, Any]]:
    """What makes a tag; `validator` is the one that the cluster has for objects without a revision."""
    entry = own_entry(tag.injector)
    documents = [_injector(tag, entry)]
    if tag.is_default:
        documents.append(_validator(tag, entry, validator))
    return [*documents, _service(tag)]


def own_entry(injector: Document) -> Document | None:
    """The entry of an injector that is copied; None where it has none that injects."""
    return next((each for each in injector.get("webhooks") or () if each["name"].endswith(_INJECTION)), None)


def deactivate(injector: Document) -> dict[str, Any]:
    """The parts of an injector to apply over it, for it to be asked about nothing."""
    never = {"matchLabels": DEACTIVATED}
    entries = [
        {"name": each["name"], "namespaceSelector": never, "objectSelector": never}
        for each in injector.get("webhooks") or ()
    ]
    heads = {name: injector[name] for name in ("apiVersion", "kind")}
    return {**heads, "metadata": {"name": injector["metadata"]["name"]}, "webhooks": entries}


def _injector(tag: Tag, entry: Document | None) -> dict[str, Any]:
    made = injector_configuration(
        Injector(
            identity=tag.identity,
            tag=tag.name,
            enable_namespaces_by_default=tag.injects_by_default,
            reinvocation_policy=(entry or {}).get("reinvocationPolicy") or "Never",
        )
    )
    if tag.configuration:
        made["metadata"]["name"] = tag.configuration
    made["metadata"]["labels"] = _labels(tag, app="sidecar-injector")
    if entry is not None:
        made["webhooks"] = [{**each, "clientConfig": dict(entry["clientConfig"])} for each in made["webhooks"]]
    return made


def _validator(tag: Tag, entry: Document | None, found: Document | None) -> dict[str, Any]:
    closed = any(each.get("failurePolicy") == "Fail" for each in (found or {}).get("webhooks") or ())
    policy = "Fail" if closed else "Ignore"
    made = validator_configuration(Validator(identity=tag.identity, is_default=True, failure_policy=policy))
    labels = made["metadata"]["labels"]
    made["metadata"]["labels"] = {**_labels(tag, app=labels["app"]), "istio": labels["istio"]}
    if entry is not None:
        config = _aimed_at(entry["clientConfig"], "/validate")
        made["webhooks"] = [{**each, "clientConfig": config} for each in made["webhooks"]]
    return made


def _aimed_at(config: Document, path: str) -> dict[str, Any]:
    """The same server by another path."""
    if url := config.get("url"):
        return {**config, "url": urllib.parse.urlsplit(url)._replace(path=path, query="").geturl()}
    return {**config, "service": {**(config.get("service") or {}), "path": path}}


def _service(tag: Tag) -> dict[str, Any]:
    metadata = {
        "name": f"istiod-revision-tag-{tag.name}",
        "namespace": tag.identity.namespace,
        "labels": {**_labels(tag, app="istiod"), "istio": "pilot"},
    }
    if tag.service is not None:
        spec = tag.service.get("spec") or {}
        ports = [
            {name: value for name, value in port.items() if name != "nodePort"} for port in spec.get("ports") or ()
        ]
        pods = dict(spec.get("selector") or {})
    else:
        ports = service_ports()
        pods = selector(tag.identity)
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports, "selector": pods}}


def _labels(tag: Tag, app: str) -> dict[str, str]:
    """Those of the revision's injector, without an installer's marks."""
    copied = tag.injector["metadata"].get("labels") or {}
    own = {"app": app, REVISION_LABEL: tag.identity.revision_label, TAG_LABEL: tag.name}
    return {**{name: value for name, value in copied.items() if name not in _INSTALLERS}, **own}
