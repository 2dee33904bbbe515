"""Validation against the recorded CRDs: whatever a schema refuses is refused, at the place where it stands.

From each bound of each schema (lengths, sizes, ranges, patterns, durations, required and exclusive fields) an object is
made that breaks it and one that just keeps it. For other CEL rules `cel.yaml` has an input each, by message; one that
it lacks fails.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import validated
import yaml

from mizzen.api.decode import decode_object
from mizzen.api.validate.faults import REFUSED_BY_SCHEMA
from mizzen.api.validate.objects import validate_object

SCHEMAS = Path(__file__).parents[1] / "schemas"
CEL = yaml.safe_load((Path(__file__).parent / "cel.yaml").read_text())
SAME = "only what is absent can be told from what is there"
UNTOLD = {
    ("Gateway", "spec.servers[].tls.credentialNames", "minItems"): SAME,
    ("Gateway", "spec.servers[].tls.tlsCertificates", "minItems"): SAME,
    ("Sidecar", "spec.ingress[].tls.credentialNames", "minItems"): SAME,
    ("Sidecar", "spec.ingress[].tls.tlsCertificates", "minItems"): SAME,
    ("PeerAuthentication", "spec.portLevelMtls", "minProperties"): SAME,
    ("RequestAuthentication", "spec.jwtRules[].jwksUri", "minLength"): SAME,
    ("RequestAuthentication", "spec.jwtRules[].jwks_uri", "minLength"): SAME,
    ("RequestAuthentication", "spec.jwtRules[].issuer", "minLength"): SAME,
    ("WasmPlugin", "spec.pluginName", "minLength"): SAME,
    ("WasmPlugin", "spec.imagePullSecret", "minLength"): SAME,
    ("TrafficExtension", "spec.wasm.pluginName", "minLength"): SAME,
    ("TrafficExtension", "spec.wasm.imagePullSecret", "minLength"): SAME,
}
"""Bounds that a decoded object cannot break: an empty value of an optional field is one that is not there."""
WIDTHS = (0, 2**32 - 1)
"""Bounds that are an integer's width: decoding holds them."""


class Bound(NamedTuple):
    """One bound of a schema, or a rule that all schemas have in the same form."""

    kind: str
    path: str
    word: str
    limit: Any
    schema: Mapping[str, Any]


def bounds_of(schema: Mapping[str, Any], kind: str, path: str) -> Iterator[Bound]:
    """The bounds of a schema and of all in it."""
    words = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "pattern", "required")
    yield from (Bound(kind, path, word, schema[word], schema) for word in words if word in schema)
    for word in ("minimum", "maximum"):
        if word in schema and schema[word] not in WIDTHS:
            yield Bound(kind, path, word, schema[word], schema)
    if any("duration(self)" in rule["rule"] for rule in schema.get("x-kubernetes-validations", ())):
        yield Bound(kind, path, "duration", "1ms", schema)
    for options in (schema.get("oneOf"), *(each.get("oneOf") for each in schema.get("allOf", ()))):
        names = [name for option in options or () for name in option.get("required", ())]
        if len(names) > 1:
            yield Bound(kind, path, "oneOf", names[:2], schema)
    for name, child in schema.get("properties", {}).items():
        yield from bounds_of(child, kind, f"{path}.{name}")
    if "items" in schema:
        yield from bounds_of(schema["items"], kind, f"{path}[]")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from bounds_of(schema["additionalProperties"], kind, f"{path}{{}}")


def specs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema of the spec of each kind of Istio's, in its first version."""
    for path in sorted(SCHEMAS.glob("*.istio.io_*.yaml")):
        crd = yaml.safe_load(path.read_text())
        schema = next(version["schema"] for version in crd["versions"] if isinstance(version["schema"], dict))
        yield crd["names"]["kind"], schema["spec"]


BOUNDS = [bound for kind, schema in specs() for bound in bounds_of(schema, kind, "spec")]
TOLD = [bound for bound in BOUNDS if (bound.kind, bound.path, bound.word) not in UNTOLD]


def sample(schema: Mapping[str, Any], number: int) -> Any:
    """A value of a schema's type, another one for each number."""
    kind = schema.get("type")
    if kind == "object":
        return {name: sample(schema["properties"][name], number) for name in schema.get("required", ())}
    if kind == "array":
        return []
    if kind == "boolean":
        return True
    if "enum" in schema:
        return schema["enum"][0]
    return number % 60000 + 1 if kind in ("integer", "number") else "1s" if "duration" in str(schema) else f"a{number}"


def value_at(bound: Bound, *, beyond: bool) -> Any:
    """A value that breaks the bound, or one that only just keeps it."""
    step = 1 if beyond else 0
    match bound.word:
        case "maxLength":
            return "a" * (bound.limit + step)
        case "minLength":
            return "a" * (bound.limit - step)
        case "maxItems" | "minItems":
            count = bound.limit + (step if bound.word == "maxItems" else -step)
            return [sample(bound.schema["items"], number) for number in range(count)]
        case "maxProperties":
            values = bound.schema["additionalProperties"]
            return {f"a{number}": sample(values, number) for number in range(bound.limit + step)}
        case "maximum":
            return bound.limit + step
        case "minimum":
            return bound.limit - step
        case "pattern":
            return "!" if beyond else "a" * (64 if "{64}" in bound.limit else 1)
        case "duration":
            return "0.0009s" if beyond else "1ms"
        case "oneOf":
            return {name: sample(bound.schema["properties"][name], 0) for name in bound.limit[: 1 + step]}
        case "required":
            return {} if beyond else sample(bound.schema, 0)
    raise AssertionError(bound.word)


def place(value: Any, path: str) -> Any:
    """The value at a path, in containers with nothing else."""
    for step in reversed(re.findall(r"\.[^.\[{]+|\[\]|\{\}", path.removeprefix("spec"))):
        value = [value] if step == "[]" else {"a": value} if step == "{}" else {step[1:]: value}
    return value


def errors(kind: str, spec: Any) -> list[tuple[str, str]]:
    """Code and path of each error of an object, with `[]` for any place in a list or map."""
    decoded = decode_object(validated.make_document(kind, spec))
    problems = decoded.problems
    if decoded.object is not None and decoded.key is not None:
        problems += validate_object(decoded.key, decoded.object)
    return [(each.code, re.sub(r"\[[^\]]*\]", "[]", each.path)) for each in problems if each.level == "error"]


def wire_path(bound: Bound) -> str:
    """The path of a bound as Problems spell it."""
    path = bound.path.replace("{}", "[]")
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), path)


def is_about(at: str, path: str) -> bool:
    """Whether an error is told of a field, of something in it, or of what directly holds it, the whole spec excepted."""
    holder = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
    return at == path or at.startswith((f"{path}.", f"{path}[")) or (at == holder and at != "spec")


@pytest.mark.parametrize("bound", TOLD, ids=lambda bound: f"{bound.kind}-{bound.path}-{bound.word}")
def test_what_a_schema_refuses_is_refused(bound: Bound) -> None:
    path = wire_path(bound)
    found = [at for _, at in errors(bound.kind, place(value_at(bound, beyond=True), bound.path))]
    broken = [f"{path}.{name}" for name in bound.limit] if bound.word == "required" else [path]

    assert [one for one in broken if not any(is_about(at, one) for at in found)] == []


@pytest.mark.parametrize("bound", TOLD, ids=lambda bound: f"{bound.kind}-{bound.path}-{bound.word}")
def test_what_a_schema_just_allows_is_no_matter_of_the_schema(bound: Bound) -> None:
    found = errors(bound.kind, place(value_at(bound, beyond=False), bound.path))
    refused = [at for code, at in found if code == REFUSED_BY_SCHEMA]

    # What is made only to be there may itself be required to be more.
    assert wire_path(bound) not in refused or bound.word in ("maxLength", "maxProperties", "maxItems", "minLength")


def test_every_cel_rule_has_an_input_that_breaks_it() -> None:
    messages = {
        (kind, rule["message"])
        for kind, schema in specs()
        for rule in cel_rules(schema)
        if "duration(self)" not in rule["rule"]
    }

    assert {(kind, message) for message, inputs in CEL.items() for kind in inputs} == messages


def cel_rules(schema: Any) -> Iterator[Mapping[str, str]]:
    """The CEL rules anywhere in a schema."""
    if isinstance(schema, Mapping):
        yield from schema.get("x-kubernetes-validations", ())
        for child in schema.values():
            yield from cel_rules(child)


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        pytest.param(kind, case, id=f"{kind}-{message}-{number}")
        for message, inputs in CEL.items()
        for kind, cases in inputs.items()
        for number, case in enumerate(cases)
    ],
)
def test_what_a_cel_rule_refuses_is_refused(kind: str, case: Mapping[str, Any]) -> None:
    found = [at for _, at in errors(kind, case["spec"])]

    assert any(is_about(at, case["at"]) for at in found)
