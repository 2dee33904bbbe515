"""The recorded schemas of Istio's kinds, bound by bound, each with a value that breaks it and one that only just keeps it.

For CEL rules other than those about durations `cel.yaml` has an input each, by message and kind.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_API = Path(__file__).parents[1] / "unit" / "api"
SCHEMAS = _API / "schemas"
CEL: Mapping[str, Mapping[str, Any]] = yaml.safe_load((_API / "validate" / "cel.yaml").read_text())
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


def recorded(pattern: str) -> Iterator[dict[str, Any]]:
    """The recorded definitions whose files are called so."""
    for path in sorted(SCHEMAS.glob(pattern)):
        yield yaml.safe_load(path.read_text())


def schema_of(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one schema that all versions of a recorded definition have."""
    return next(version["schema"] for version in crd["versions"] if isinstance(version["schema"], dict))


def specs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schema of the spec of each kind of Istio's, in its first version."""
    for crd in recorded("*.istio.io_*.yaml"):
        yield crd["names"]["kind"], schema_of(crd)["spec"]


BOUNDS = [bound for kind, schema in specs() for bound in bounds_of(schema, kind, "spec")]


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
        case "maxProperties" | "minProperties":
            values = bound.schema["additionalProperties"]
            count = bound.limit + (step if bound.word == "maxProperties" else -step)
            return {f"a{number}": sample(values, number) for number in range(count)}
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


def complete(value: Any, schema: Mapping[str, Any], whole: str, path: str = "spec") -> Any:
    """The value with all that its schema requires, but for what is at the path `whole`, which stays as it is."""
    if path == whole:
        return value
    if isinstance(value, list):
        return [complete(item, schema["items"], whole, f"{path}[]") for item in value]
    if not isinstance(value, dict):
        return value
    if "properties" not in schema:
        return {
            name: complete(item, schema["additionalProperties"], whole, f"{path}{{}}") for name, item in value.items()
        }
    found = {name: complete(item, schema["properties"][name], whole, f"{path}.{name}") for name, item in value.items()}
    for name in schema.get("required", ()):
        if name not in found:
            found[name] = sample(schema["properties"][name], 0)
    return found


def wire_path(bound: Bound) -> str:
    """The path of a bound as Problems spell it."""
    path = bound.path.replace("{}", "[]")
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), path)


def is_about(at: str, path: str) -> bool:
    """Whether an error is told of a field, of something in it, or of what directly holds it, the whole spec excepted."""
    holder = path.removesuffix("[]") if path.endswith("[]") else path.rpartition(".")[0]
    return at == path or at.startswith((f"{path}.", f"{path}[")) or (at == holder and at != "spec")


def cel_rules(schema: Any) -> Iterator[Mapping[str, str]]:
    """The CEL rules anywhere in a schema."""
    if isinstance(schema, Mapping):
        yield from schema.get("x-kubernetes-validations", ())
        for child in schema.values():
            yield from cel_rules(child)
