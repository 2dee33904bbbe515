"""What a CRD asks of an object, one fact a word and one field a line, so that two of them compare as texts do.

A list is `name[]` and a map `name{}` with the line of its values below. CEL rules are told by their messages, and of
several fields that exclude each other `only-one=` tells the names.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = (
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)
_FLAGS = {
    "nullable": "nullable",
    "x-kubernetes-int-or-string": "int-or-string",
    "x-kubernetes-preserve-unknown-fields": "anything",
}
Schema = Mapping[str, Any]


def of_names(names: Mapping[str, Any]) -> str:
    """What a kind is called."""
    short = ",".join(names.get("shortNames", ()))
    return f"{names['kind']} {names['listKind']} {names['plural']} {names['singular']} [{short}] {names['categories']}"


def of_version(version: Mapping[str, Any]) -> str:
    """A version without its schema."""
    columns = " ".join(
        f"{one['name']}:{one['type']}={one['jsonPath']}" for one in version.get("additionalPrinterColumns", ())
    )
    marks = [word for word in ("served", "storage") if version[word]]
    return " ".join(
        [version["name"], *marks, *(["status"] if version["subresources"] == {"status": {}} else []), columns]
    )


def of_schema(name: str, schema: Schema, depth: int = 1, *, required: bool = False) -> Iterator[str]:
    """The lines of a field and of all below it."""
    kind = "int" if "x-kubernetes-int-or-string" in schema else schema.get("type", "?")
    words = [kind, *(["required"] if required else []), *_words(schema)]
    yield f"{'  ' * depth}{name} {' '.join(words)}"
    needed = schema.get("required", ())
    for field, nested in sorted(schema.get("properties", {}).items()):
        yield from of_schema(field, nested, depth + 1, required=field in needed)
    if "items" in schema:
        yield from of_schema("[]", schema["items"], depth + 1)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from of_schema("{}", schema["additionalProperties"], depth + 1)


def _words(schema: Schema) -> Iterator[str]:
    for name in _PLAIN:
        if name in schema:
            yield f"{name}={schema[name]}"
    yield from (word for name, word in _FLAGS.items() if schema.get(name))
    if "enum" in schema:
        yield "enum=" + ",".join(map(str, schema["enum"]))
    if "pattern" in schema:
        yield "pattern=" + schema["pattern"].removeprefix("(").removesuffix(")")
    if "x-kubernetes-list-type" in schema:
        yield f"{schema['x-kubernetes-list-type']}-of={','.join(schema.get('x-kubernetes-list-map-keys', ()))}"
    for choice in (schema, *schema.get("allOf", ())):
        if "oneOf" in choice:
            names = [one["required"][0] for one in choice["oneOf"] if "required" in one]
            yield "only-one=" + ",".join(names)
    for rule in sorted({rule["message"] for rule in schema.get("x-kubernetes-validations", ())}):
        yield f"rule={json.dumps(rule)}"
