"""The definitions of the mesh's kinds: what is recorded of Istio's own, and what `kubectl` and an API server ask of any."""

import copy
import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import crd_facts
import pytest
import schema_bounds
import yaml

from mizzen.api.message import Message
from mizzen.api.shape import shape_of
from mizzen.install.crds.definitions import mesh_crds, mesh_kinds
from mizzen.install.crds.terms import TERMS

CHART = pathlib.Path(__file__).parents[3] / "charts" / "mizzen" / "crds"
RECORDED = {crd["names"]["kind"]: crd for crd in schema_bounds.recorded("*.istio.io_*.yaml")}
OURS = {crd["spec"]["names"]["kind"]: crd for crd in mesh_crds()}
KUBECTL_MOST = 262144
"""Bytes of annotations that an object may have; `kubectl apply` keeps a copy of the object in one."""

ADDED = {
    ("ServiceEntry", "status", "addresses"): "addresses that the control plane gives are written there",
}
"""Fields of ours that the recorded definitions leave open, and why they are there."""
LEFT_OUT = {
    ("AuthorizationPolicy", "only-one=provider"): "of one field no two can be set",
}
"""What the recorded definitions ask for and ours do not, and why."""


def schema(kind: str) -> dict[str, Any]:
    return OURS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def lines(of: Mapping[str, Any]) -> list[str]:
    return [line for part in ("spec", "status") for line in crd_facts.of_schema(part, of[part])]


def test_the_kinds_are_those_recorded() -> None:
    assert OURS.keys() == RECORDED.keys()


@pytest.mark.parametrize("kind", RECORDED)
def test_fields_types_and_all_that_is_asked_of_them_are_those_recorded(kind: str) -> None:
    recorded = lines(schema_bounds.schema_of(RECORDED[kind]))
    for of, words in LEFT_OUT:
        if of == kind:
            assert any(f" {words}" in line for line in recorded)
            recorded = [line.replace(f" {words}", "") for line in recorded]
    ours = copy.deepcopy(schema(kind))
    for of, part, field in ADDED:
        if of == kind:
            del ours[part]["properties"][field]
    assert lines(ours) == recorded


@pytest.mark.parametrize("kind", RECORDED)
def test_names_and_versions_are_those_recorded(kind: str) -> None:
    recorded, ours = RECORDED[kind], OURS[kind]["spec"]
    assert (ours["group"], ours["scope"]) == (recorded["group"], recorded["scope"])
    assert crd_facts.of_names(ours["names"]) == crd_facts.of_names(recorded["names"])
    assert sorted(map(crd_facts.of_version, ours["versions"])) == sorted(
        map(crd_facts.of_version, recorded["versions"])
    )


@pytest.mark.parametrize("kind", OURS)
def test_all_versions_have_one_schema(kind: str) -> None:
    first, *more = (version["schema"] for version in OURS[kind]["spec"]["versions"])
    assert all(one == first for one in more)


@pytest.mark.parametrize("kind", OURS)
def test_kubectl_can_apply_it_without_a_server_that_merges(kind: str) -> None:
    assert len(json.dumps(OURS[kind])) < KUBECTL_MOST


@pytest.mark.parametrize("kind", OURS)
def test_helm_leaves_it_when_the_release_goes(kind: str) -> None:
    metadata = OURS[kind]["metadata"]
    assert metadata["annotations"]["helm.sh/resource-policy"] == "keep"
    assert (metadata["labels"]["app"], metadata["labels"]["istio"]) == (
        "istio-pilot",
        OURS[kind]["spec"]["group"].removesuffix(".istio.io"),
    )


def nodes(of: Any) -> Iterator[Mapping[str, Any]]:
    """Every schema in a schema."""
    yield of
    for nested in (*of.get("properties", {}).values(), of.get("items"), of.get("additionalProperties")):
        if isinstance(nested, Mapping):
            yield from nodes(nested)


@pytest.mark.parametrize("kind", OURS)
def test_messages_say_what_they_are_in_names_of_the_wire(kind: str) -> None:
    for node in nodes(schema(kind)["spec"]):
        if node["type"] == "object" and "properties" in node:
            assert node["description"].endswith(".")
        text = node.get("description", "")
        assert "\n" not in text
        assert not any("_" in word for word in text.split("`")[1::2] if word.islower())


def structs() -> set[type[Message]]:
    found: set[type[Message]] = set()
    waiting = [shape_of(kind.type) for kind in mesh_kinds()]
    while waiting:
        shape = waiting.pop()
        if shape.cls not in found:
            found.add(shape.cls)
            waiting += [nested for _, nested in shape.nested.values()]
    return found


def test_terms_are_about_structs_and_fields_that_there_are() -> None:
    known = structs()
    for at, terms in TERMS.items():
        cls, field = at if isinstance(at, tuple) else (at, None)
        assert cls in known
        if field is not None:
            nested = shape_of(cls).fields[next(w for n, w in _wires(cls) if n == field)].shape
            assert nested is not None
            cls = nested.cls
        names = {name for name, _ in _wires(cls)}
        assert {*terms.required, *terms.fields, *terms.also_as, *(n for g in terms.one_of for n in g)} <= names


def _wires(cls: type[Message]) -> list[tuple[str, str]]:
    return list(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))


def test_the_files_of_the_chart_are_what_is_made_now() -> None:
    """`mizzen manifest crds --dir charts/mizzen/crds` writes them."""
    files = {path.name: yaml.safe_load(path.read_text()) for path in CHART.iterdir()}
    made = {f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml": crd for crd in mesh_crds()}
    assert files.keys() == made.keys()
    assert [name for name, crd in made.items() if files[name] != crd] == []
