"""The objects that stand for what a cluster would know of the running mesh."""

import json

from local_objects import pod, service
from msgspec.structs import replace

from mizzen.api.decode import decode_object
from mizzen.api.kube.pods import Container, ContainerPort
from mizzen.api.kube.services import (
    EndpointSlice,
    LoadBalancerIngress,
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceStatus,
)
from mizzen.api.meta import ObjectMeta
from mizzen.api.networking.service_entry import ServiceEntry, ServiceEntrySpec
from mizzen.api.networking.service_entry import ServicePort as EntryPort
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.local import publish
from mizzen.local.addresses import entry_key, service_key
from mizzen.local.publish import PresentPod

ENTRY = ServiceEntry(
    metadata=ObjectMeta(name="rates", namespace="shop"),
    spec=ServiceEntrySpec(
        hosts=("a.example.com", "b.example.com"),
        ports=(EntryPort(number=80, name="http", protocol="HTTP", target_port=8080),),
        resolution="STATIC",
        endpoints=(WorkloadEntrySpec(address="10.1.1.1", labels={"app": "rates"}, weight=2),),
    ),
)
NAMED = Container(name="app", ports=(ContainerPort(name="web", container_port=9200),))


def present(name: str, address: str, app: str, *containers: Container, **more: object) -> PresentPod:
    ready, terminating = bool(more.pop("ready", True)), bool(more.pop("terminating", False))
    return PresentPod(pod=pod(name, address, app, *containers, **more), ready=ready, terminating=terminating)


def slices(objects: tuple[object, ...]) -> list[EndpointSlice]:
    return [item for item in objects if isinstance(item, EndpointSlice)]


def test_a_service_gets_its_address_and_a_slice_of_the_pods_it_selects():
    cart = service("cart")
    pods = [present("cart-0", "10.44.0.10", "cart"), present("front-0", "10.44.0.11", "front")]
    objects = publish.build([cart], pods, {service_key(cart): "10.96.1.1"})
    addressed = next(item for item in objects if isinstance(item, Service))
    assert (addressed.spec.cluster_ip, addressed.spec.cluster_ips) == ("10.96.1.1", ("10.96.1.1",))
    (found,) = slices(objects)
    assert found.metadata.labels[publish.SERVICE_NAME] == "cart"
    assert [(port.name, port.port) for port in found.ports] == [("http", 8080)]
    (endpoint,) = found.endpoints
    assert endpoint.addresses == ("10.44.0.10",)
    assert endpoint.target_ref is not None
    assert endpoint.target_ref.name == "cart-0"


def test_readiness_and_termination_show_in_the_conditions():
    pods = [
        present("cart-0", "10.44.0.10", "cart", ready=False),
        present("cart-1", "10.44.0.11", "cart", terminating=True),
    ]
    (found,) = slices(publish.build([service("cart")], pods, {}))
    assert [
        (item.conditions.ready, item.conditions.serving, item.conditions.terminating) for item in found.endpoints
    ] == [
        (False, False, False),
        (False, True, True),
    ]


def test_a_named_target_port_is_each_pods_own_number():
    web = service("search", ServicePort(name="http", port=80, target_port="web"))
    other = Container(name="app", ports=(ContainerPort(name="web", container_port=9300),))
    pods = [
        present("search-0", "10.44.0.10", "search", NAMED),
        present("search-1", "10.44.0.11", "search", other),
        present("search-2", "10.44.0.12", "search"),
    ]
    found = slices(publish.build([web], pods, {}))
    assert [([port.port for port in item.ports], len(item.endpoints)) for item in found] == [
        ([], 1),
        ([9200], 1),
        ([9300], 1),
    ]
    assert len({item.metadata.name for item in found}) == 3


def test_pods_of_a_headless_service_have_their_host_names():
    ledger = service("ledger", cluster_ip="None")
    pods = [present("ledger-0", "10.44.0.10", "ledger", hostname="ledger-0", subdomain="ledger")]
    (found,) = slices(publish.build([ledger], pods, {}))
    assert found.endpoints[0].hostname == "ledger-0"
    assert "service.kubernetes.io/headless" in found.metadata.labels


def test_a_service_without_a_selector_keeps_the_endpoints_of_the_manifests():
    outside = service("outside", selector={})
    assert slices(publish.build([outside], [present("cart-0", "10.44.0.10", "cart")], {})) == []


def test_a_selector_reaches_only_pods_of_its_namespace():
    pods = [present("cart-0", "10.44.0.10", "cart", namespace="other")]
    (found,) = slices(publish.build([service("cart")], pods, {}))
    assert found.endpoints == ()


def test_a_load_balancer_is_reached_at_its_ready_pods():
    gateway = service("gateway", type="LoadBalancer")
    pods = [present("gateway-0", "10.44.0.10", "gateway"), present("gateway-1", "10.44.0.11", "gateway", ready=False)]
    addressed = next(item for item in publish.build([gateway], pods, {}) if isinstance(item, Service))
    assert [item.ip for item in addressed.status.load_balancer.ingress] == ["10.44.0.10"]


def test_a_load_balancer_whose_manifest_says_an_address_keeps_it():
    given = LoadBalancerStatus(ingress=(LoadBalancerIngress(hostname="lb.example.com"),))
    gateway = replace(service("gateway", type="LoadBalancer"), status=ServiceStatus(load_balancer=given))
    addressed = publish.address_service(gateway, "", (present("gateway-0", "10.44.0.10", "gateway"),))
    assert addressed.status.load_balancer == given


def test_an_entry_carries_the_addresses_of_its_hosts_and_one_without_any_is_left_to_the_manifests():
    (found,) = publish.build_entries([ENTRY], {(entry_key(ENTRY), "b.example.com"): "240.240.0.1"})
    assert found.status is not None
    assert [(item.host, item.value) for item in found.status.addresses] == [("b.example.com", "240.240.0.1")]
    assert publish.build_entries([ENTRY], {}) == ()


def test_every_published_object_decodes_to_itself_without_a_problem():
    objects = (
        *publish.build([service("cart")], [present("cart-0", "10.44.0.10", "cart", NAMED)], {}),
        *publish.build_control_plane("10.44.0.1", "10.96.0.2"),
        publish.build_mesh_config("trustDomain: cluster.local"),
        publish.build_node("10.44.0.1"),
        *publish.build_entries([ENTRY], {(entry_key(ENTRY), "a.example.com"): "240.240.0.1"}),
    )
    for item in objects:
        decoded = decode_object(json.loads(publish.encode(item)))
        assert decoded.problems == ()
        assert decoded.object == item


def test_writing_touches_only_files_that_differ_and_removes_what_is_gone(tmp_path):
    objects = publish.build([service("cart"), service("front")], [], {})
    assert len(publish.write(objects, tmp_path)) == 4
    before = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
    assert publish.write(objects, tmp_path) == ()
    assert {path.name: path.stat().st_ino for path in tmp_path.iterdir()} == before
    changed = publish.write(publish.build([service("cart")], [present("c", "10.44.0.9", "cart")], {}), tmp_path)
    assert set(changed) == {
        "pod_shop_c.json",
        "endpointslice_shop_cart.json",
        "endpointslice_shop_front.json",
        "service_shop_front.json",
    }
    assert {path.name for path in tmp_path.iterdir()} == {
        "pod_shop_c.json",
        "service_shop_cart.json",
        "endpointslice_shop_cart.json",
    }
