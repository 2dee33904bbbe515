"""A real API server and the definitions of the mesh's kinds: what it takes by them, and what it refuses in which words."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import golden
import kube_bed
import pytest
import schema_bounds
import validated
from eventually import eventually_blocking
from kube_bed import Answer, Bed
from schema_bounds import Bound, is_about

from mizzen.api.decode import decode_object
from mizzen.api.kinds import Kind, split_api_version
from mizzen.api.validate.faults import REFUSED_BY_SCHEMA
from mizzen.api.validate.objects import validate_object
from mizzen.install.crds.definitions import mesh_crds, mesh_kinds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = {(kind.group, kind.kind): kind for kind in mesh_kinds()}
BY_KIND = {kind.kind: kind for kind in mesh_kinds()}


@pytest.fixture(scope="module")
def defined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """An API server that knows the mesh's kinds by our definitions alone."""
    with kube_bed.running(tmp_path_factory.mktemp("defined")) as bed:
        for crd in mesh_crds():
            bed.apply(f"{CRDS}/{crd['metadata']['name']}", crd)
        for kind in mesh_kinds():
            eventually_blocking(lambda kind=kind: is_served(bed, kind), 120)
        eventually_blocking(lambda: is_answered(bed, "GET", "/api/v1/namespaces/default"), 120)
        yield bed


def is_answered(bed: Bed, method: str, path: str) -> bool:
    try:
        return bool(bed.call(method, path))
    except Answer:
        return False


def is_served(bed: Bed, kind: Kind) -> bool:
    return all(is_answered(bed, "GET", f"/apis/{kind.group}/{one}/{kind.plural}") for one in kind.versions)


def causes(bed: Bed, document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Field and message of each fault that the server finds in an object, strictly and without keeping it."""
    group, version = split_api_version(document["apiVersion"])
    kind = KINDS[group, document["kind"]]
    kept = {name: text for name, text in document["metadata"].items() if name in ("name", "labels", "annotations")}
    path = f"/apis/{group}/{version}/namespaces/default/{kind.plural}?dryRun=All&fieldValidation=Strict"
    try:
        bed.call("POST", path, {**document, "metadata": kept})
    except Answer as answer:
        listed = answer.body.get("details", {}).get("causes") or [{"field": "", "message": answer.body["message"]}]
        return [(one.get("field", ""), one["message"]) for one in listed]
    return []


def is_refused_by_schema(document: Mapping[str, Any]) -> bool:
    """Whether our own decoding and validation say that a schema does not take an object."""
    decoded = decode_object(document)
    if decoded.object is None or decoded.key is None:
        return True
    problems = (*decoded.problems, *validate_object(decoded.key, decoded.object))
    return any(problem.code in (REFUSED_BY_SCHEMA, "unknown-field") for problem in problems)


SPECS = dict(schema_bounds.specs())
WORDS = {
    "duration": "must be a valid duration greater than 1ms",
    "maxItems": "Too many",
    "maxLength": "Too long",
    "maxProperties": "Too many",
    "maximum": "should be less than or equal to",
    "minItems": "should have at least",
    "minLength": "should be at least",
    "minProperties": "should have at least",
    "minimum": "should be greater than or equal to",
    "oneOf": "must validate one and only one schema",
    "pattern": "should match",
    "required": "Required value",
}
"""In which a bound is told."""


def told(bed: Bed, kind: str, spec: Any) -> list[tuple[str, str]]:
    """The faults of an object of this spec, with `[]` for any place in a list; a choice is told without its field."""
    found = []
    for field, message in causes(bed, validated.make_document(kind, spec)):
        choice = re.match(r'Invalid value: "": "([^"]*)"', message)
        found.append((re.sub(r"\[[^\]]*\]", "[]", choice[1] if choice else field), message))
    return found


def spec_of(bound: Bound, *, beyond: bool) -> Any:
    """A spec with a value that breaks the bound or only just keeps it, and with all else that is required."""
    value = schema_bounds.place(schema_bounds.value_at(bound, beyond=beyond), bound.path)
    return schema_bounds.complete(value, SPECS[bound.kind], bound.path)


def server_path(bound: Bound) -> str:
    return bound.path.replace("{}", ".a")


@pytest.mark.parametrize("bound", schema_bounds.BOUNDS, ids=lambda bound: f"{bound.kind}-{bound.path}-{bound.word}")
def test_what_is_beyond_a_bound_is_refused_at_its_place_and_what_keeps_it_is_not(defined: Bed, bound: Bound) -> None:
    path = server_path(bound)
    places = [f"{path}.{name}" for name in bound.limit] if bound.word == "required" else [path]

    refused = [at for at, said in told(defined, bound.kind, spec_of(bound, beyond=True)) if WORDS[bound.word] in said]
    assert [place for place in places if not any(is_about(at, place) or at == path for at in refused)] == []

    kept = told(defined, bound.kind, spec_of(bound, beyond=False))
    assert [said for at, said in kept if at in places and WORDS[bound.word] in said] == []


@pytest.mark.parametrize(
    ("message", "kind", "spec"),
    [
        pytest.param(message, kind, case["spec"], id=f"{kind}-{message}-{number}")
        for message, inputs in schema_bounds.CEL.items()
        for kind, cases in inputs.items()
        for number, case in enumerate(cases)
    ],
)
def test_what_breaks_a_rule_is_refused_in_the_words_of_the_rule(
    defined: Bed, message: str, kind: str, spec: Mapping[str, Any]
) -> None:
    completed = schema_bounds.complete(spec, SPECS[kind], "")
    assert any(message in said for _, said in told(defined, kind, completed))


@pytest.mark.parametrize("kind", SPECS)
def test_a_field_that_is_not_known_is_refused_by_its_name(defined: Bed, kind: str) -> None:
    faults = told(defined, kind, schema_bounds.complete({}, SPECS[kind], "") | {"nobodyKnows": 1})
    assert any('unknown field "spec.nobodyKnows"' in message for _, message in faults)


@pytest.mark.parametrize("name", ["base", *golden.case_names()])
def test_recorded_inputs_are_taken_strictly(defined: Bed, name: str) -> None:
    """Those too that the reference's webhook refuses: no schema does."""
    documents = golden.load_case(name).objects
    mine = [one for one in documents if (split_api_version(one["apiVersion"])[0], one["kind"]) in KINDS]
    assert {one["metadata"]["name"]: faults for one in mine if (faults := causes(defined, one))} == {}
    assert not any(map(is_refused_by_schema, mine))
