"""Kinds of Kubernetes that only analysis reads, and the conditions in any object's status.

In: plain documents. Out: inputs for the engine: webhook configurations and CustomResourceDefinitions, which the mesh
does not act on, and `Conditions`, since no Struct of `api` holds what others wrote into a status.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from mizzen.api.message import Message
from mizzen.api.meta import Key, LabelSelector, Object
from mizzen.api.scalars import decode_scalar

CRD = "CustomResourceDefinition"
MUTATING = "MutatingWebhookConfiguration"
VALIDATING = "ValidatingWebhookConfiguration"
CONDITIONS = "Conditions"

T = TypeVar("T", bound=Object)


class ServiceReference(Message, frozen=True, kw_only=True):
    """A webhook's server in the cluster."""

    namespace: str = ""
    name: str = ""


class WebhookClientConfig(Message, frozen=True, kw_only=True):
    """Where a webhook is called: a URL, or a Service."""

    url: str | None = None
    service: ServiceReference | None = None


class Webhook(Message, frozen=True, kw_only=True):
    """One webhook and the objects that it is called for."""

    name: str = ""
    client_config: WebhookClientConfig = WebhookClientConfig()
    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()


class WebhookConfiguration(Object, frozen=True, kw_only=True):
    """Both kinds of webhook configuration."""

    webhooks: tuple[Webhook, ...] = ()


class CRDNames(Message, frozen=True, kw_only=True):
    """How the kind is called."""

    kind: str = ""
    plural: str = ""


class CRDVersion(Message, frozen=True, kw_only=True):
    """A version of the kind."""

    name: str = ""
    served: bool = True


class CRDSpec(Message, frozen=True, kw_only=True):
    """What a CustomResourceDefinition defines, without its schema."""

    group: str = ""
    names: CRDNames = CRDNames()
    versions: tuple[CRDVersion, ...] = ()


class CustomResourceDefinition(Object, frozen=True, kw_only=True):
    """The kind CustomResourceDefinition."""

    spec: CRDSpec = CRDSpec()


class Condition(Message, frozen=True, kw_only=True):
    """A condition of a status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


_KINDS: Mapping[tuple[str, str], type[Object]] = {
    ("apiextensions.k8s.io", CRD): CustomResourceDefinition,
    ("admissionregistration.k8s.io", MUTATING): WebhookConfiguration,
    ("admissionregistration.k8s.io", VALIDATING): WebhookConfiguration,
}


def decode_cluster_object(raw: Mapping[str, Any]) -> tuple[Key, Object] | None:
    """The object of a document, if it is of a kind of this module and has the shape of one."""
    group = str(raw.get("apiVersion")).partition("/")[0]
    cls = _KINDS.get((group, str(raw.get("kind"))))
    if cls is None:
        return None
    try:
        found = msgspec.convert(raw, cls, dec_hook=decode_scalar)
    except msgspec.ValidationError:
        return None
    return Key(str(raw["kind"]), "", found.metadata.name), found


def read_conditions(raw: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions that stand in an object's status, also those by parent."""
    status = raw.get("status")
    return tuple(_conditions(status)) if isinstance(status, dict) else ()


def _conditions(status: Mapping[str, Any]) -> Iterator[Condition]:
    parents = status.get("parents")
    holders = [status, *(parents if isinstance(parents, list) else ())]
    for holder in holders:
        listed = holder.get("conditions") if isinstance(holder, dict) else None
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict):
                known = {name: str(each.get(name) or "") for name in ("type", "status", "reason", "message")}
                yield Condition(**known)


def conditions_key(key: Key) -> Key:
    """Where the engine has the conditions of an object."""
    return Key(CONDITIONS, key.namespace, f"{key.kind}/{key.name}")
