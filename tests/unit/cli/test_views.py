"""Pods are found by what people type, among objects."""

import pytest

from mizzen.api.kube.pods import Pod
from mizzen.api.meta import Key, ObjectMeta
from mizzen.cli import views
from mizzen.errors import MizzenError

OBJECTS = {
    Key("Pod", space, name): Pod(metadata=ObjectMeta(name=name, namespace=space))
    for space, name in (("shop", "cart-v1-0"), ("shop", "cart-v2-0"), ("pay", "ledger-0"), ("default", "probe"))
}


@pytest.mark.parametrize(
    ("reference", "namespace", "found"),
    [
        ("cart-v1-0.shop", "", "cart-v1-0"),
        ("cart-v1-0", "shop", "cart-v1-0"),
        ("probe", "", "probe"),
        ("pod/probe", "", "probe"),
        ("deploy/cart-v2.shop", "", "cart-v2-0"),
        ("statefulset/ledger", "pay", "ledger-0"),
    ],
)
def test_a_pod_among_objects(reference: str, namespace: str, found: str) -> None:
    assert views.find_pod(OBJECTS, reference, namespace).metadata.name == found


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("ledger-0", 'pods "ledger-0" not found in namespace default; there are ledger-0.pay'),
        ("nope.shop", 'pods "nope" not found in namespace shop; there are cart-v1-0.shop, cart-v2-0.shop'),
        ("deploy/nope.shop", 'no pods match "deploy/nope.shop"'),
        ("secret/x", '"secret/x" does not refer to a pod: unknown resource type "secret"'),
    ],
)
def test_a_pod_that_is_not_there_is_named_with_those_that_are(reference: str, message: str) -> None:
    with pytest.raises(MizzenError) as failed:
        views.find_pod(OBJECTS, reference, "")

    assert message in str(failed.value)


@pytest.mark.parametrize("text", ["app=cart,track=new", "app==cart, track=new", "app=cart,,track=new"])
def test_a_selector_is_labels(text: str) -> None:
    assert views.parse_selector(text) == {"app": "cart", "track": "new"}


@pytest.mark.parametrize("text", ["app", "", "=x", "app in (a)"])
def test_what_is_no_selector(text: str) -> None:
    with pytest.raises(MizzenError, match="is no selector"):
        views.parse_selector(text)
