"""Requests as they come off the wire."""

import gc

import pytest

from mizzen import protos
from mizzen.compile.resource import CLUSTER
from mizzen.errors import DecodeError
from mizzen.xds.requests import NO_NAMES, Rejection, Request, decode_request, intern_names, intern_versions

_discovery = protos.package("envoy.service.discovery.v3")


def test_a_delta_request_is_decoded():
    message = _discovery.DeltaDiscoveryRequest(
        type_url=CLUSTER,
        response_nonce="n",
        resource_names_subscribe=["a"],
        resource_names_unsubscribe=["b"],
        initial_resource_versions={"c": "1"},
        error_detail={"code": 3, "message": "no"},
    )
    received = decode_request(message.SerializeToString(), delta=True)
    assert received.node is None
    assert received.request == Request(
        type_url=CLUSTER,
        nonce="n",
        names=("a",),
        unsubscribe=("b",),
        initial_versions={"c": "1"},
        rejection=Rejection(code=3, message="no"),
    )


def test_a_state_of_the_world_request_is_decoded():
    message = _discovery.DiscoveryRequest(type_url=CLUSTER, response_nonce="n", resource_names=["a", "b"])
    received = decode_request(message.SerializeToString(), delta=False)
    assert received.request == Request(type_url=CLUSTER, nonce="n", names=("a", "b"))


def test_an_error_without_code_or_text_is_a_rejection():
    message = _discovery.DiscoveryRequest(type_url=CLUSTER, error_detail={})
    request = decode_request(message.SerializeToString(), delta=False).request
    assert request.rejection == Rejection(code=0, message="")


def test_a_node_becomes_json_without_its_extensions():
    message = _discovery.DiscoveryRequest(
        node={"id": "x", "metadata": {"LABELS": {"app": "front"}}, "extensions": [{"name": "envoy.filters.x"}]}
    )
    received = decode_request(message.SerializeToString(), delta=False)
    assert received.node == {"id": "x", "metadata": {"LABELS": {"app": "front"}}}


def test_garbage_is_a_decode_error():
    with pytest.raises(DecodeError, match="not a discovery request"):
        decode_request(b"\xff\xff\xff", delta=True)


def test_a_node_that_json_cannot_say_is_a_decode_error():
    message = _discovery.DiscoveryRequest(node={"id": "x"})
    message.node.metadata.fields["load"].number_value = float("inf")
    with pytest.raises(DecodeError, match="no JSON form"):
        decode_request(message.SerializeToString(), delta=False)


@pytest.mark.parametrize(
    ("code", "text"), [(0, "OK:no"), (13, "Internal:no"), (16, "Unauthenticated:no"), (99, "99:no"), (-1, "-1:no")]
)
def test_rejections_read_as_in_the_reference(code, text):
    assert str(Rejection(code=code, message="no")) == text


def test_equal_names_are_one_object_while_somebody_uses_them():
    one = intern_names(["a", "b"])
    assert intern_names(("b", "a")) is one
    assert intern_names([]) is NO_NAMES
    before = id(one)
    del one
    gc.collect()
    again = intern_names(["a", "b"])
    assert intern_names(["b", "a"]) is again
    assert before


def test_equal_versions_are_one_object_while_somebody_uses_them():
    one = intern_versions({"a": "1", "b": "2"})
    assert intern_versions({"b": "2", "a": "1"}) is one
    assert intern_versions({"a": "1", "b": "3"}) is not one
    assert one.of == {"a": "1", "b": "2"}
