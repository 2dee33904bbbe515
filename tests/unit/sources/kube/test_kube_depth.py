"""Objects that nest deeper than a decoder follows cost neither the others of a list nor the control plane."""

import json

import msgspec
import pytest

from mizzen.api.kinds import kind_named
from mizzen.sources.kube.client import Event, Page, _decode
from mizzen.sources.kube.depth import shallow
from mizzen.sources.kube.reading import Reader
from mizzen.sources.kube.served import Resource


def envoy_filter(levels: int) -> bytes:
    value = '{"a":' * levels + '"]}\\\\\\"{["' + "}" * levels
    patch = '{"applyTo":"CLUSTER","patch":{"operation":"MERGE","value":' + value + "}}"
    head = '"apiVersion":"networking.istio.io/v1alpha3","kind":"EnvoyFilter"'
    metadata = '"metadata":{"name":"deep","namespace":"shop","resourceVersion":"7"}'
    return ("{" + head + "," + metadata + ',"spec":{"configPatches":[' + patch + "]}}").encode()


def depth(value: object) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if children is None else 1 + max(map(depth, children), default=0)


def test_what_is_not_deep_stays_as_it_is() -> None:
    assert shallow(envoy_filter(20)) == envoy_filter(20)


def test_what_is_deep_is_cut_and_what_follows_is_kept() -> None:
    found = json.loads(shallow(b'{"a":' + b"[" * 9_000 + b"]" * 9_000 + b',"b":["]",{"c":1}]}'))
    assert found["b"] == ["]", {"c": 1}]
    assert 100 < depth(found["a"]) < 200


def test_an_event_and_a_page_with_a_deep_object_are_read() -> None:
    raw = envoy_filter(9_000)
    event = _decode(msgspec.json.Decoder(Event), b'{"type":"ADDED","object":' + raw + b"}")
    assert event.type == "ADDED"
    page = _decode(msgspec.json.Decoder(Page), b'{"metadata":{},"items":[' + raw + b",{}]}")
    assert len(page.items) == 2


@pytest.mark.parametrize("levels", [120, 300, 500, 800, 950, 9_000])
def test_a_deep_object_is_recognised_however_deep_it_is(levels: int) -> None:
    reader = Reader(Resource(kind_named("EnvoyFilter"), "v1alpha3"))
    event = _decode(msgspec.json.Decoder(Event), b'{"type":"ADDED","object":' + envoy_filter(levels) + b"}")
    reading = reader.read(event.object, reader.head(event.object))
    assert (reading.key.name, reading.resource_version) == ("deep", "7")
