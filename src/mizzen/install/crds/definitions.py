"""Definitions: a CustomResourceDefinition for each of the mesh's kinds.

In: the kinds that are read (`api.kinds`). Out: documents, in the order of that list. All versions of a kind have one
schema, so that none needs conversion; which one is stored is what Istio's own definitions store, so that the two can
stand in for each other while a cluster moves. Uninstalling leaves them: with a definition every object of it goes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mizzen.api.kinds import KINDS, Kind
from mizzen.api.networking.service_entry import ServiceEntry, ServiceEntryStatus
from mizzen.api.shape import shape_of
from mizzen.install.crds.descriptions import description_of
from mizzen.install.crds.schemas import ANYTHING, schema_of

API_VERSION = "apiextensions.k8s.io/v1"
LABELS: Mapping[str, str] = {"app": "istio-pilot", "chart": "istio", "release": "istio"}
"""By which tools of Istio find the definitions, beside `istio` for the part of it."""
ANNOTATIONS: Mapping[str, str] = {"helm.sh/resource-policy": "keep"}

_GROUP_SUFFIX = ".istio.io"
_SHORT_NAMES: Mapping[str, str] = {
    "AuthorizationPolicy": "ap",
    "DestinationRule": "dr",
    "Gateway": "gw",
    "PeerAuthentication": "pa",
    "RequestAuthentication": "ra",
    "ServiceEntry": "se",
    "Telemetry": "telemetry",
    "VirtualService": "vs",
    "WorkloadEntry": "we",
    "WorkloadGroup": "wg",
}
_STORED: Mapping[str, str] = {"Telemetry": "v1alpha1"}
"""The versions stored, of kinds for which it is not the first."""

_AGE = (("Age", "date", ".metadata.creationTimestamp"),)
_COLUMNS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "AuthorizationPolicy": (("Action", "string", ".spec.action"), *_AGE),
    "DestinationRule": (("Host", "string", ".spec.host"), *_AGE),
    "PeerAuthentication": (("Mode", "string", ".spec.mtls.mode"), *_AGE),
    "ServiceEntry": (
        ("Hosts", "string", ".spec.hosts"),
        ("Location", "string", ".spec.location"),
        ("Resolution", "string", ".spec.resolution"),
        *_AGE,
    ),
    "Telemetry": _AGE,
    "TrafficExtension": _AGE,
    "VirtualService": (("Gateways", "string", ".spec.gateways"), ("Hosts", "string", ".spec.hosts"), *_AGE),
    "WasmPlugin": _AGE,
    "WorkloadEntry": (*_AGE, ("Address", "string", ".spec.address")),
    "WorkloadGroup": _AGE,
}
"""What a table of objects shows beside their names."""


def mesh_kinds() -> Iterator[Kind]:
    """The kinds that are the mesh's own."""
    return (kind for kind in KINDS if kind.group.endswith(_GROUP_SUFFIX))


def mesh_crds() -> tuple[dict[str, Any], ...]:
    """The definitions of all of them."""
    return tuple(crd(kind) for kind in mesh_kinds())


def crd(kind: Kind) -> dict[str, Any]:
    """The definition of a kind."""
    schema = _object_schema(kind)
    stored = _STORED.get(kind.kind, kind.versions[0])
    columns = [{"name": name, "type": what, "jsonPath": path} for name, what, path in _COLUMNS.get(kind.kind, ())]
    return {
        "apiVersion": API_VERSION,
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "labels": {**LABELS, "istio": kind.group.removesuffix(_GROUP_SUFFIX)},
            "annotations": dict(ANNOTATIONS),
        },
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == stored,
                    **({"additionalPrinterColumns": columns} if columns else {}),
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
                for version in kind.versions
            ],
        },
    }


def _names(kind: Kind) -> dict[str, Any]:
    short = _SHORT_NAMES.get(kind.kind)
    return {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "categories": ["istio-io", kind.group.replace(".", "-")],
        **({"shortNames": [short]} if short else {}),
    }


def _object_schema(kind: Kind) -> dict[str, Any]:
    spec = shape_of(kind.type).fields["spec"].shape
    assert spec is not None, kind
    return {
        "type": "object",
        "description": description_of(kind.type),
        "properties": {"spec": schema_of(spec.cls, (kind.type, "spec")), "status": _status_schema(kind)},
    }


def _status_schema(kind: Kind) -> dict[str, Any]:
    """What controllers write; more than is named here is kept."""
    text: dict[str, Any] = {"type": "string"}
    time = {"type": "string", "format": "date-time"}
    generation = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    level = {"type": "string", "enum": ["UNKNOWN", "ERROR", "WARNING", "INFO"]}
    condition = {
        "lastProbeTime": time,
        "lastTransitionTime": time,
        "message": text,
        "observedGeneration": generation,
        "reason": text,
        "status": text,
        "type": text,
    }
    message = {"documentationUrl": text, "level": level, "type": _object({"code": text, "name": text})}
    status = _object(
        {
            "conditions": _list_of(condition),
            "observedGeneration": generation,
            "validationMessages": _list_of(message),
        }
    )
    if kind.type is ServiceEntry:
        status["properties"]["addresses"] = schema_of(ServiceEntryStatus)["properties"]["addresses"]
    return {**status, "description": "What controllers have written of the object.", ANYTHING: True}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties)}


def _list_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _object(properties)}
