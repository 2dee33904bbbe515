"""Validation against the recorded CRDs: whatever a schema refuses is refused, at the place where it stands.

From each bound of each schema (lengths, sizes, ranges, patterns, durations, required and exclusive fields) an object is
made that breaks it and one that just keeps it. For other CEL rules `cel.yaml` has an input each, by message; one that
it lacks fails.
"""

import re
from collections.abc import Mapping
from typing import Any

import pytest
import validated
from schema_bounds import BOUNDS, CEL, Bound, cel_rules, is_about, place, specs, value_at, wire_path

from mizzen.api.decode import decode_object
from mizzen.api.validate.faults import REFUSED_BY_SCHEMA
from mizzen.api.validate.objects import validate_object

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


TOLD = [bound for bound in BOUNDS if (bound.kind, bound.path, bound.word) not in UNTOLD]


def errors(kind: str, spec: Any) -> list[tuple[str, str]]:
    """Code and path of each error of an object, with `[]` for any place in a list or map."""
    decoded = decode_object(validated.make_document(kind, spec))
    problems = decoded.problems
    if decoded.object is not None and decoded.key is not None:
        problems += validate_object(decoded.key, decoded.object)
    return [(each.code, re.sub(r"\[[^\]]*\]", "[]", each.path)) for each in problems if each.level == "error"]


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
