"""What stands in for capture where there are no namespaces."""

from ipaddress import IPv4Address

from local_objects import pod, service

from mizzen.api.kube.pods import Container
from mizzen.api.kube.services import ServicePort
from mizzen.api.meta import ObjectMeta
from mizzen.api.networking.gateway import Gateway, GatewaySpec, Server
from mizzen.api.networking.service_entry import ServiceEntry, ServiceEntrySpec
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.local import uncaptured
from mizzen.local.net.dns import Records
from mizzen.local.publish import PresentPod

APP, PROXY = Container(name="app"), Container(name="istio-proxy")


def present(name: str, address: str, app: str, *containers: Container) -> PresentPod:
    return PresentPod(pod=pod(name, address, app, *containers), ready=True)


def test_a_program_listens_beside_its_pod_and_calls_through_its_proxy():
    environ = uncaptured.build_program_environ(IPv4Address("127.44.0.12"), 12, sidecar=True)
    assert environ == {
        "MIZZEN_LISTEN_ADDRESS": "127.45.0.12",
        "http_proxy": "http://127.44.0.12:15080",
        "HTTP_PROXY": "http://127.44.0.12:15080",
    }


def test_a_program_without_a_sidecar_listens_at_its_pod_and_calls_directly():
    environ = uncaptured.build_program_environ(IPv4Address("127.44.0.12"), 12, sidecar=False)
    assert environ == {"MIZZEN_LISTEN_ADDRESS": "127.44.0.12"}


def test_a_sidecar_serves_its_pods_ports_and_one_proxy_port_for_everything_else():
    cart = service("cart", ServicePort(name="http", port=80, target_port=8080), ServicePort(name="tcp-x", port=9000))
    (built,) = uncaptured.build([cart], [], [present("cart-0", "127.44.0.12", "cart", APP, PROXY)], {})
    assert built.spec.workload_selector.labels == {"mizzen.dev/pod": "cart-0"}
    assert [
        (item.port.number, item.port.protocol, item.bind, item.default_endpoint) for item in built.spec.ingress
    ] == [
        (8080, "HTTP", "127.44.0.12", "unix://./in-8080.sock"),
        (9000, "TCP", "127.44.0.12", "unix://./in-9000.sock"),
    ]
    (egress,) = built.spec.egress
    assert (egress.port.number, egress.port.protocol, egress.bind, egress.hosts) == (
        15080,
        "HTTP_PROXY",
        "127.44.0.12",
        ("*/*",),
    )
    assert {item.capture_mode for item in (*built.spec.ingress, egress)} == {"NONE"}


def test_gateways_and_pods_without_a_proxy_get_no_sidecar():
    pods = [present("gateway-0", "127.44.0.10", "gateway", PROXY), present("plain-0", "127.44.0.11", "plain", APP)]
    assert uncaptured.build([service("plain")], [], pods, {}) == ()


def test_a_protocol_is_read_from_the_port_as_istio_reads_it():
    ports = (
        ServicePort(name="grpc-api", port=1),
        ServicePort(name="other", port=2, app_protocol="http2"),
        ServicePort(name="database", port=3),
    )
    item = present("cart-0", "127.44.0.12", "cart", APP, PROXY)
    assert uncaptured.served_ports(item, [service("cart", *ports)]) == {1: "GRPC", 2: "HTTP2", 3: "TCP"}


def test_a_gateway_keeps_to_the_address_of_its_pod():
    metadata = ObjectMeta(name="g", namespace="shop")
    gateway = Gateway(metadata=metadata, spec=GatewaySpec(selector={"app": "gateway"}, servers=(Server(), Server())))
    pods = [
        present("gateway-0", "127.44.0.10", "gateway", PROXY),
        present("gateway-1", "127.44.0.11", "gateway", PROXY),
    ]
    (built,) = uncaptured.build([], [gateway], pods, {})
    assert [server.bind for server in built.spec.servers] == ["127.44.0.10"] * 2
    assert uncaptured.build([], [gateway], [], {}) == ()


def test_names_of_the_mesh_become_addresses_where_nobody_could_resolve_them():
    zone = {"rates.outside.svc.cluster.local": Records(addresses=("127.44.0.11", "127.44.0.12"))}

    def entry(address: str, resolution: str) -> ServiceEntry:
        spec = ServiceEntrySpec(
            hosts=("rates.example.com",), resolution=resolution, endpoints=(WorkloadEntrySpec(address=address),)
        )
        return ServiceEntry(metadata=ObjectMeta(name="e", namespace="shop"), spec=spec)

    (built,) = uncaptured.build([], [entry("rates.outside.svc.cluster.local", "DNS")], [], zone)
    assert (built.spec.resolution, [item.address for item in built.spec.endpoints]) == (
        "STATIC",
        ["127.44.0.11", "127.44.0.12"],
    )
    assert uncaptured.build([], [entry("www.example.org", "DNS")], [], zone) == ()


def test_the_last_object_of_a_name_counts():
    metadata = ObjectMeta(name="g", namespace="shop")
    earlier = Gateway(metadata=metadata, spec=GatewaySpec(selector={"app": "gateway"}, servers=(Server(),)))
    later = Gateway(metadata=metadata, spec=GatewaySpec(selector={"app": "gateway"}, servers=(Server(), Server())))
    pods = [present("gateway-0", "127.44.0.10", "gateway", PROXY)]
    (built,) = uncaptured.build([], [earlier, later], pods, {})
    assert len(built.spec.servers) == 2
