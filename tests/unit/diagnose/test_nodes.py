"""The node that a pod's proxy would send, built from the pod."""

from typing import Any

import pytest

from mizzen.api.decode import decode_object
from mizzen.api.kube.pods import Pod
from mizzen.diagnose import nodes
from mizzen.errors import DecodeError
from mizzen.model import proxy


def pod(**fields: Any) -> Pod:
    raw: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "cart-0", "namespace": "shop", **fields.pop("metadata", {})},
        "spec": {"containers": [{"name": "app"}, {"name": "istio-proxy"}], **fields.pop("spec", {})},
        "status": {"podIP": "10.0.0.1", **fields.pop("status", {})},
    }
    found = decode_object(raw).object
    assert isinstance(found, Pod)
    return found


def test_the_node_says_who_the_proxy_is() -> None:
    node = nodes.build_node(
        pod(metadata={"labels": {"app": "cart"}}, spec={"serviceAccountName": "cart", "nodeName": "n1"})
    )

    assert node["id"] == "sidecar~10.0.0.1~cart-0.shop~shop.svc.cluster.local"
    assert node["cluster"] == "cart.shop"
    parsed = proxy.parse_node(node)
    assert (parsed.service_account, parsed.node_name, dict(parsed.labels)) == ("cart", "n1", {"app": "cart"})


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({"containers": [{"name": "istio-proxy"}]}, "router"),
        ({"containers": [{"name": "istio-proxy", "args": ["proxy", "sidecar"]}]}, "sidecar"),
        ({"containers": [{"name": "istio-proxy", "args": ["proxy", "waypoint"]}]}, "waypoint"),
        ({"containers": [{"name": "app"}, {"name": "istio-proxy", "args": ["proxy", "router"]}]}, "router"),
        ({"containers": [{"name": "app"}]}, "sidecar"),
        ({"containers": [{"name": "app"}], "initContainers": [{"name": "istio-proxy"}]}, "sidecar"),
    ],
)
def test_the_kind_of_proxy_is_told_from_the_containers(spec: dict[str, Any], kind: str) -> None:
    assert nodes.proxy_kind(pod(spec=spec)) == kind


def test_a_gateway_template_makes_a_router() -> None:
    annotations = {"inject.istio.io/templates": "gateway"}

    assert nodes.proxy_kind(pod(metadata={"annotations": annotations})) == "router"


@pytest.mark.parametrize("fields", [{"status": {"podIP": ""}}, {"spec": {"hostNetwork": True}}])
def test_a_pod_without_an_address_of_its_own_cannot_be_a_proxy(fields: dict[str, Any]) -> None:
    with pytest.raises(DecodeError, match=r"pod cart-0\.shop has no address of its own"):
        nodes.build_node(pod(**fields))


def test_the_environment_of_an_injected_proxy_counts() -> None:
    variables = {
        "ISTIO_META_DNS_CAPTURE": "true",
        "ISTIO_META_MIZZEN_DIALECT": "envoy",
        "PROXY_CONFIG": '{"concurrency": 1}',
        "OTHER": "x",
    }
    env = [{"name": name, "value": value} for name, value in variables.items()]
    metadata = nodes.build_node(pod(spec={"containers": [{"name": "istio-proxy", "env": env}]}))["metadata"]

    assert (metadata["DNS_CAPTURE"], metadata["MIZZEN_DIALECT"]) == ("true", "envoy")
    assert metadata["PROXY_CONFIG"] == {"concurrency": 1}
    assert "OTHER" not in metadata
