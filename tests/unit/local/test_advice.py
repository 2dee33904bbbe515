"""What a running mesh says of manifests that refer to what is not there."""

from meshes import documents

from mizzen.api.decode import decode_object
from mizzen.api.meta import Key, Object
from mizzen.local.advice import Advice
from mizzen.sources.origins import Origin

TEXT = """
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: split, namespace: shop}
spec: {hosts: [cart], http: [{route: [{destination: {host: cart, subset: v9}}]}]}
"""
RULE = """
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec: {host: cart, subsets: [{name: v9, labels: {version: v9}}]}
"""


def objects(text: str) -> dict[Key, Object]:
    found = {}
    for document in documents(text):
        decoded = decode_object(document)
        assert decoded.key is not None
        assert decoded.object is not None
        found[decoded.key] = decoded.object
    return found


def test_a_missing_subset_is_named_with_its_object_and_place_until_it_is_there() -> None:
    advice = Advice()
    key = Key("VirtualService", "shop", "split")
    (line,) = advice.errors(objects(TEXT), {key: Origin("traffic.yaml", 7)})
    assert line.startswith("error: traffic.yaml:7: VirtualService shop/split: ")
    assert "v9" in line
    assert "IST0101" in line
    assert advice.errors(objects(TEXT + "---" + RULE), {}) == []
    assert len(advice.errors(objects(TEXT), {})) == 1
