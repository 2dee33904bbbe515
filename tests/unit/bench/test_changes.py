"""Changes of the benchmark do what it says of them, in a mesh that is compiled for real."""

import json

import pytest
import yaml

from bench import changes
from bench.compile import Mesh
from mizzen.compile import resource, snapshot
from mizzen.model.proxy import parse_node

NAMESPACES = 3
TYPES = (resource.CLUSTER, resource.ENDPOINT, resource.LISTENER, resource.ROUTE)


@pytest.fixture
def mesh() -> Mesh:
    return Mesh(6, 2, NAMESPACES, "istio")


def told(mesh: Mesh) -> list[dict[tuple[str, str], bytes]]:
    """What each proxy holds, by type and name."""
    found = []
    for node in mesh.nodes:
        proxy = parse_node(node)
        names: dict[str, frozenset[str] | None] = dict.fromkeys(TYPES)
        held = {}
        for type_url in TYPES:
            resources = mesh.db.root(snapshot.resources, proxy, type_url, names[type_url]).value()
            held |= {(type_url, each.name): each.data for each in resources}
            if type_url == resource.CLUSTER:
                names[resource.ENDPOINT] = snapshot.endpoint_names(resources)
            if type_url == resource.LISTENER:
                names[resource.ROUTE] = snapshot.route_names(resources)
        found.append(held)
    return found


@pytest.mark.parametrize("name", changes.KINDS)
def test_a_change_is_told_to_whom_it_concerns_and_to_nobody_else(mesh, name):
    kind = changes.KINDS[name]
    before = told(mesh)
    change = kind.make(0, NAMESPACES, 7)
    mesh.change(kind.title, *change.documents)
    after = told(mesh)
    concerned = [kind.concerns(node, 0, NAMESPACES) for node in mesh.nodes]
    assert [old != new for old, new in zip(before, after, strict=True)] == concerned
    news = [
        b"".join(new[key] for key in new if old.get(key) != new[key]) for old, new in zip(before, after, strict=True)
    ]
    assert all(change.marker.encode() in data for data, concerns in zip(news, concerned, strict=True) if concerns)
    assert not change.marker or change.marker.encode() not in b"".join(b"".join(held.values()) for held in before)
    mesh.change("back", *change.before, gone=change.added)
    assert told(mesh) == before


def test_turns_differ_in_what_is_told(mesh):
    for name, kind in changes.KINDS.items():
        one, other = kind.make(0, NAMESPACES, 1), kind.make(0, NAMESPACES, 2)
        assert (one.marker == other.marker) == (not one.marker), name


def test_edits_that_change_nothing_are_edits_and_change_nothing(mesh):
    for document in changes.quiet_objects():
        mesh.set(document)
    before = told(mesh)
    edits = list(changes.edits(mesh.documents))
    assert len({edit.title for edit in edits}) == 32
    for edit in edits:
        assert edit.text != json.dumps(edit.before), edit.title
        after = yaml.safe_load(edit.text)
        assert changes.identity(after) == changes.identity(edit.before)
        runs = mesh.db.runs
        mesh.set(after)
        assert told(mesh) == before, edit.title
        mesh.set(edit.before)
        assert told(mesh) == before, edit.title
        assert mesh.db.runs == runs, edit.title
