from typing import Any

import pytest

from mizzen.api.kinds import KINDS, Kind
from mizzen.api.kube.pods import Pod
from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.proxy import ProxyConfig
from mizzen.api.networking.traffic_policy import OutlierDetection
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.api.shape import Shape, is_plain, shape_of


def shapes_in(shape: Shape) -> dict[type, Shape]:
    """The shape and all those below it, by their Struct."""
    found = {shape.cls: shape}
    for _, nested in shape.nested.values():
        found |= shapes_in(nested)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_struct_is_worked_out_and_documented(kind: Kind) -> None:
    for cls, shape in shapes_in(shape_of(kind.type)).items():
        assert cls.__doc__
        assert not shape.fields.keys() & shape.aliases.keys()
        assert not shape.fields.keys() & (cls.unread - {"status"})
        for field in shape.fields.values():
            assert field.expected


def test_shapes_are_made_once() -> None:
    assert shape_of(Pod) is shape_of(Pod)


def test_protobuf_names_are_aliases() -> None:
    assert shape_of(OutlierDetection).aliases["consecutive_5xx_errors"].wire == "consecutive5xxErrors"
    assert shape_of(MeshConfig).aliases["mesh_mTLS"].wire == "meshMTLS"
    assert shape_of(Pod).aliases == {}


def test_enums_know_their_numbers() -> None:
    policy = shape_of(ProxyConfig).fields["controlPlaneAuthPolicy"].enum
    assert policy == {0: "NONE", 1: "MUTUAL_TLS", 1000: "INHERIT"}


@pytest.mark.parametrize(
    ("data", "plain"),
    [
        ({}, True),
        ({"apiVersion": "v1", "kind": "VirtualService", "status": {"any": "thing"}}, True),
        ({"spec": {"hosts": ["a"], "http": [{"match": [{"headers": {"x": {"exact": ""}}}]}]}}, True),
        ({"spec": None}, True),
        ({"spec": ["of", "a wrong type"]}, True),
        ({"spec": {"http": {"of": "a wrong type"}}}, True),
        ({"spec": {"http": [{"match": [{"headers": ["of a wrong type"]}]}]}}, True),
        ({"speck": {}}, False),
        ({"spec": {"http": [{}, {"timeoutt": "1s"}]}}, False),
        ({"spec": {"http": [{"match": [{"headers": {"x": {"exactly": "a"}}}]}]}}, False),
        ({"spec": {"export_to": []}}, False),
        ({1: 2}, False),
    ],
)
def test_data_is_plain_if_all_its_names_are_known(data: dict[Any, Any], plain: bool) -> None:
    assert is_plain(data, shape_of(VirtualService)) is plain
