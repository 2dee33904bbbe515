"""What is not read of an object is gone with its bytes: nothing of it is held, and nobody hears that it changed."""

import pathlib
from typing import Any

import msgspec
import pytest
import yaml

from mizzen.api.kinds import Kind, kind_named
from mizzen.api.kube.pods import as_running
from mizzen.api.meta import LAST_APPLIED
from mizzen.api.shape import Shape, shape_of
from mizzen.sources.kube.reading import Reader
from mizzen.sources.kube.served import SERVED_KINDS, Resource

HEAD = {"name": "a", "namespace": "shop", "resourceVersion": "7"}
RULES = pathlib.Path(__file__).parents[2] / "api" / "validate" / "rules"


def planted(shape: Shape, text: str) -> dict[str, Any]:
    """An object with such a text in every field that is not read, at every depth."""
    inside = {
        name: {"one": below, "list": [below], "map": {"key": below}}[container]
        for name, (container, nested) in shape.nested.items()
        if (below := planted(nested, text))
    }
    unread = shape.cls.unread - shape.fields.keys()
    return {name: [{"text": text}] for name in unread} | inside


def spec_of(kind: Kind) -> dict[str, Any]:
    """A spec in which nothing is wrong, of a kind that is validated."""
    path = RULES / f"{kind.kind}.yaml"
    return {"spec": yaml.safe_load(path.read_text())["base"]} if kind.group.endswith(".istio.io") else {}


def read(kind: Kind, document: dict[str, Any]) -> Any:
    found = Reader(Resource(kind, kind.versions[0])).read(msgspec.json.encode(document))
    assert not [problem for problem in found.problems if problem.level == "error"]
    assert found.object is not None
    return found.object


@pytest.mark.parametrize("kind", SERVED_KINDS, ids=lambda kind: kind.name)
def test_what_is_not_read_is_dropped_at_every_depth(kind: Kind) -> None:
    objects = []
    for text in ("something-that-nobody-reads", "something-else"):
        document = planted(shape_of(kind.type), text) | spec_of(kind)
        assert {"managedFields", "finalizers", "selfLink"} <= document["metadata"].keys()
        remarks = {"tool.example/at": text} if kind.takes_remarks else {}
        document["metadata"] |= HEAD | {"annotations": {LAST_APPLIED: text, "istio.io/kept": "yes", **remarks}}
        objects.append(read(kind, document))
        held = msgspec.json.encode(objects[-1]).decode()
        assert text not in held
        assert "istio.io/kept" in held
    assert objects[0] == objects[1]


def test_of_a_pod_nothing_is_held_that_was_for_its_making() -> None:
    kind = kind_named("Pod")
    objects = []
    for text in ("one", "another"):
        annotations = {"example.com/note": text, "istio.io/rev": "stable"}
        conditions = [{"type": "Ready", "status": "True", "reason": text}, {"type": "ContainersReady", "status": text}]
        status = {"conditions": conditions, "containerStatuses": [{"name": text, "ready": True}]}
        objects.append(read(kind, {"metadata": HEAD | {"annotations": annotations}, "status": status}))
    assert objects[0] == objects[1]
    assert objects[0].metadata.annotations == {"istio.io/rev": "stable"}
    assert as_running(objects[0]) is objects[0]
