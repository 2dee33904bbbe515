"""The Structs against the recorded schemas: every field of every CRD version and of the mesh config, nothing invented.

`schemas/` holds facts of the reference: the CRDs without descriptions, and the messages of the mesh config by their
protobuf names. A difference is reported as its path and what is wrong there.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
import yaml

from mizzen.api.kinds import KINDS, kind_of_api
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.networks import MeshNetworks
from mizzen.api.message import FreeForm, Message
from mizzen.api.networking.destination_rule import DestinationRuleSpec
from mizzen.api.networking.proxy_config import ProxyConfigSpec
from mizzen.api.networking.virtual_service import VirtualServiceSpec
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.api.networking.workload_group import WorkloadGroupSpec
from mizzen.api.scalars import Duration, Int32, Int64, UInt32, UInt64, decode_scalar
from mizzen.api.shape import Field, Shape, shape_of

SCHEMAS = Path(__file__).parent / "schemas"
CRDS = sorted(SCHEMAS.glob("*_*.yaml"))
MESSAGES: Mapping[str, Any] = yaml.safe_load((SCHEMAS / "mesh-config.yaml").read_text())

SCALARS = {
    "string": str,
    "bool": bool,
    "double": float,
    "int32": Int32,
    "int64": Int64,
    "uint32": UInt32,
    "uint64": UInt64,
    "bytes": bytes,
    "google.protobuf.Duration": Duration,
    "google.protobuf.Struct": FreeForm,
    "google.protobuf.BoolValue": bool,
    "google.protobuf.DoubleValue": float,
    "google.protobuf.Int32Value": Int32,
    "google.protobuf.Int64Value": Int64,
    "google.protobuf.UInt32Value": UInt32,
    "google.protobuf.UInt64Value": UInt64,
}
INTEGERS = (Int32, Int64, UInt32, UInt64)
UNRULED_DURATIONS = (".tcp.idleTimeout", ".httpCookie.ttl", ".retryBudget.budgetInterval")
"""Durations by protobuf's messages, for which the CRDs have no rule."""


def load_versions(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A CRD and the schema of each version that is served."""
    crd = yaml.safe_load(path.read_text())
    schemas = {version["name"]: version["schema"] for version in crd["versions"] if version["served"]}
    for name, schema in schemas.items():
        if isinstance(schema, str):
            schemas[name] = schemas[schema.removeprefix("same as ")]
    return crd, schemas


def defaults_of(shape: Shape) -> dict[str, Any]:
    """The default of each field of a Struct, by its wire name."""
    bare = shape.cls()
    return {info.encode_name: getattr(bare, info.name) for info in msgspec.structs.fields(shape.cls)}


def compare_object(schema: Mapping[str, Any], shape: Shape, path: str) -> Iterator[str]:
    """Differences between an object's schema and a Struct."""
    properties = schema.get("properties", {})
    exclusive = {name for option in schema.get("oneOf", ()) for name in option.get("required", ())}
    defaults = defaults_of(shape)
    for name in shape.fields.keys() - properties.keys():
        yield f"{path}.{name}: invented"
    for name, child in properties.items():
        here = f"{path}.{name}"
        field = shape.fields.get(name) or shape.aliases.get(name)
        if field is None:
            yield f"{here}: missing"
            continue
        yield from compare_field(child, field, here)
        default = defaults[field.wire]
        if (child.get("nullable") or name in exclusive) and default is not None:
            yield f"{here}: absent must differ from zero"
        if "default" in child:
            given = msgspec.convert({name: child["default"]}, shape.cls, dec_hook=decode_scalar)
            if given != shape.cls():
                yield f"{here}: default is {default!r}, must be {child['default']!r}"


def compare_field(schema: Mapping[str, Any], field: Field, path: str) -> Iterator[str]:
    """Differences between the schema of a property and a field."""
    container = "one"
    if schema.get("type") == "array":
        container, schema = "list", schema["items"]
    elif "additionalProperties" in schema:
        container, schema = "map", schema["additionalProperties"]
    if container != field.container:
        yield f"{path}: is a {field.container}, must be a {container}"
    elif schema.get("type") == "object" and not schema.get("x-kubernetes-preserve-unknown-fields"):
        if field.shape is None:
            yield f"{path}: must be a message"
        else:
            yield from compare_object(schema, field.shape, path)
    elif field.shape is not None:
        yield f"{path}: must be no message"
    else:
        yield from compare_leaf(schema, field, path)


def compare_leaf(schema: Mapping[str, Any], field: Field, path: str) -> Iterator[str]:
    """Differences between the schema of a value and a leaf."""
    if "enum" in schema:
        if get_origin(field.leaf) is not Literal or list(get_args(field.leaf)) != schema["enum"]:
            yield f"{path}: must be one of {schema['enum']} in this order"
    elif field.leaf not in allowed_leaves(schema, path):
        yield f"{path}: is {field.leaf}, must be {allowed_leaves(schema, path)[0]}"


def allowed_leaves(schema: Mapping[str, Any], path: str) -> tuple[Any, ...]:
    """The types that the schema of a value allows for: one, but for integers whose width it does not tell."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return (FreeForm,)
    if schema.get("type") == "integer":
        if schema.get("maximum") == 2**32 - 1:
            return (UInt32,)
        return (Int32,) if schema.get("format") == "int32" else INTEGERS
    if schema.get("type") == "string":
        rules = " ".join(rule["rule"] for rule in schema.get("x-kubernetes-validations", ()))
        if "duration(self)" in rules or "(h|m|s|ms)" in schema.get("pattern", "") or path.endswith(UNRULED_DURATIONS):
            return (Duration,)
        return (bytes,) if schema.get("format") == "byte" else (str,)
    return ({"boolean": bool, "number": float}[schema["type"]],)


@pytest.mark.parametrize("path", CRDS, ids=lambda path: path.stem)
def test_every_crd_has_its_struct(path: Path) -> None:
    crd, schemas = load_versions(path)
    kind = kind_of_api(crd["group"], crd["names"]["kind"])
    assert kind is not None
    assert set(kind.versions) == set(schemas)
    assert kind.plural == crd["names"]["plural"]
    assert kind.namespaced == (crd["scope"] == "Namespaced")
    spec = shape_of(kind.type).fields["spec"].shape
    assert spec is not None
    differences = {
        difference
        for schema in schemas.values()
        for difference in compare_object(schema["spec"], spec, f"{kind.kind}.spec")
    }
    assert sorted(differences) == []


def test_every_kind_of_the_mesh_has_a_crd() -> None:
    recorded = {tuple(path.stem.split("_")) for path in CRDS}
    ours = {
        (kind.group, kind.kind)
        for kind in KINDS
        if kind.group.endswith((".istio.io", "gateway.networking.k8s.io", "x-k8s.io"))
    }
    assert ours == recorded


def compare_message(name: str, shape: Shape, seen: set[tuple[str, type]]) -> Iterator[str]:
    """Differences between a protobuf message and a Struct, and between the messages in them."""
    if (name, shape.cls) in seen:
        return
    seen.add((name, shape.cls))
    defaults = defaults_of(shape)
    for wire in shape.fields.keys() ^ MESSAGES[name].keys():
        yield f"{name}.{wire}: invented or missing"
    for wire, text in MESSAGES[name].items():
        if wire in shape.fields:
            yield from compare_message_field(f"{name}.{wire}", text, shape.fields[wire], defaults[wire], seen)


def compare_message_field(
    path: str, text: str, field: Field, default: Any, seen: set[tuple[str, type]]
) -> Iterator[str]:
    """Differences between a field of a protobuf message and one of a Struct."""
    declared, _, notes = text.partition(" (")
    container = "list" if declared.startswith("repeated ") else "map" if declared.startswith("map<") else "one"
    value = declared.removeprefix("repeated ").removeprefix("map<").removesuffix(">").split(", ")[-1]
    if field.container != container:
        yield f"{path}: is a {field.container}, must be a {container}"
    if isinstance(MESSAGES.get(value), list):
        if list(field.enum.values()) != MESSAGES[value]:
            yield f"{path}: must be one of {MESSAGES[value]} in this order"
    elif value in MESSAGES:
        if field.shape is None:
            yield f"{path}: must be a message"
        else:
            yield from compare_message(value, field.shape, seen)
    elif field.leaf != SCALARS[value]:
        yield f"{path}: is {field.leaf}, must be {SCALARS[value]}"
    has_presence = value.startswith("google.protobuf.") or isinstance(MESSAGES.get(value), dict) or "oneof" in notes
    if container == "one" and has_presence != (default is None):
        yield f"{path}: absent {'must' if has_presence else 'must not'} differ from zero"


@pytest.mark.parametrize(
    ("message", "struct"),
    [
        ("istio.mesh.v1alpha1.MeshConfig", MeshConfig),
        ("istio.mesh.v1alpha1.MeshNetworks", MeshNetworks),
        ("istio.networking.v1alpha3.VirtualService", VirtualServiceSpec),
        ("istio.networking.v1alpha3.DestinationRule", DestinationRuleSpec),
        ("istio.networking.v1alpha3.WorkloadEntry", WorkloadEntrySpec),
        ("istio.networking.v1alpha3.WorkloadGroup", WorkloadGroupSpec),
        ("istio.networking.v1beta1.ProxyConfig", ProxyConfigSpec),
    ],
)
def test_every_message_has_its_struct(message: str, struct: type[Message]) -> None:
    assert sorted(compare_message(message, shape_of(struct), set())) == []
