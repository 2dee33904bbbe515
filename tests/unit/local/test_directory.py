"""Names, Service rules and published ports from the objects of a mesh."""

from ipaddress import IPv4Address

from local_objects import pod, service

from mizzen.api.kube.services import ServicePort
from mizzen.api.meta import ObjectMeta
from mizzen.api.networking.service_entry import ServiceEntry, ServiceEntrySpec
from mizzen.api.networking.workload_entry import WorkloadEntrySpec
from mizzen.local import directory, publish
from mizzen.local.addresses import service_key
from mizzen.local.net.dns import Records, Service
from mizzen.local.net.vips import Target, VirtualPort, build_rules
from mizzen.local.publish import PresentPod


def mesh(*services, pods=(), entries=(), held=None):
    held = held or {service_key(item): f"10.96.1.{number}" for number, item in enumerate(services, start=1)}
    held = {
        key: address
        for key, address in held.items()
        if key not in {service_key(s) for s in services if s.spec.cluster_ip}
    }
    return directory.Directory.of([*publish.build(services, pods, held), *entries])


def entry(host: str, **spec: object) -> ServiceEntry:
    return ServiceEntry(metadata=ObjectMeta(name="e", namespace="shop"), spec=ServiceEntrySpec(hosts=(host,), **spec))


CART_PODS = [
    PresentPod(pod=pod("cart-0", "10.44.0.10", "cart"), ready=True),
    PresentPod(pod=pod("cart-1", "10.44.0.11", "cart"), ready=True),
    PresentPod(pod=pod("cart-2", "10.44.0.12", "cart"), ready=False),
]


def test_a_service_answers_under_its_full_name_and_for_its_ports():
    zone = directory.build_zone(mesh(service("cart"), pods=CART_PODS))
    assert zone["cart.shop.svc.cluster.local"] == Records(addresses=("10.96.1.1",))
    assert zone["_http._tcp.cart.shop.svc.cluster.local"].services == (Service(80, "cart.shop.svc.cluster.local"),)


def test_a_headless_service_answers_with_its_ready_pods_and_each_of_them_by_host_name():
    ledger = service("ledger", cluster_ip="None")
    pods = [
        PresentPod(pod=pod("ledger-0", "10.44.0.20", "ledger", hostname="ledger-0", subdomain="ledger"), ready=True),
        PresentPod(pod=pod("ledger-1", "10.44.0.21", "ledger", hostname="ledger-1", subdomain="ledger"), ready=False),
    ]
    zone = directory.build_zone(mesh(ledger, pods=pods))
    assert zone["ledger.shop.svc.cluster.local"].addresses == ("10.44.0.20",)
    assert zone["ledger-0.ledger.shop.svc.cluster.local"].addresses == ("10.44.0.20",)
    assert "ledger-1.ledger.shop.svc.cluster.local" not in zone


def test_an_external_name_is_an_alias():
    zone = directory.build_zone(mesh(service("db", type="ExternalName", external_name="DB.example.org.")))
    assert zone["db.shop.svc.cluster.local"] == Records(alias="db.example.org")


def test_a_host_outside_is_what_its_entry_says():
    stated = entry("a.example.com", addresses=("192.0.2.1", "198.51.100.0/24"))
    static = entry("b.example.com", endpoints=(WorkloadEntrySpec(address="192.0.2.2"),))
    named = entry("C.example.com", endpoints=(WorkloadEntrySpec(address="rates.outside.svc.cluster.local"),))
    unknown, wildcard = entry("d.example.com"), entry("*.example.com", addresses=("192.0.2.3",))
    zones = [directory.build_zone(mesh(entries=(item,))) for item in (stated, static, named, unknown, wildcard)]
    assert zones == [
        {"a.example.com": Records(addresses=("192.0.2.1",))},
        {"b.example.com": Records(addresses=("192.0.2.2",))},
        {"c.example.com": Records(alias="rates.outside.svc.cluster.local")},
        {},
        {},
    ]


def test_virtual_ports_lead_to_ready_endpoints_and_only_where_there_are_any():
    found = directory.build_virtual_ports(mesh(service("cart"), service("front"), pods=CART_PODS))
    targets = (Target(IPv4Address("10.44.0.10"), 8080), Target(IPv4Address("10.44.0.11"), 8080))
    assert found == (VirtualPort(IPv4Address("10.96.1.1"), "tcp", 80, targets),)


def test_rules_share_evenly_and_send_a_caller_back_to_itself_under_another_address():
    port = VirtualPort(
        IPv4Address("10.96.1.1"), "tcp", 80, tuple(Target(IPv4Address(f"10.44.0.{n}"), 8080) for n in (1, 2, 3))
    )
    rules = build_rules([port])
    assert [line.split("--probability ")[1].split()[0] for line in rules.splitlines() if "--probability" in line] == [
        "0.33333333",
        "0.50000000",
    ]
    assert rules.count("-j DNAT") == 3
    assert "-A POSTROUTING -s 10.44.0.2/32 -d 10.44.0.2/32 -j MASQUERADE" in rules
    assert rules.startswith("*nat\n")
    assert rules.endswith("COMMIT\n")


def test_udp_ports_are_served_and_sctp_is_not():
    ports = (ServicePort(name="dns", port=53, protocol="UDP"), ServicePort(name="odd", port=54, protocol="SCTP"))
    found = directory.build_virtual_ports(mesh(service("cart", *ports), pods=CART_PODS))
    assert [(item.protocol, item.port) for item in found] == [("udp", 53)]


def test_targets_of_a_port_are_found_by_its_name():
    known = mesh(service("cart"), pods=CART_PODS)
    key = service_key(service("cart"))
    assert [str(item.address) for item in directory.ready_targets(known, key, "http")] == ["10.44.0.10", "10.44.0.11"]
    assert directory.ready_targets(known, key, "grpc") == ()
