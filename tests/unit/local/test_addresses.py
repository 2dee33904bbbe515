"""Addresses of pods and Services."""

from ipaddress import IPv4Network

import pytest
from local_objects import service

from mizzen.api.meta import ObjectMeta
from mizzen.api.networking.service_entry import AllocatedAddress, ServiceEntry, ServiceEntrySpec, ServiceEntryStatus
from mizzen.errors import LocalError
from mizzen.local.addresses import (
    PodAddresses,
    assign_cluster_ips,
    assign_entry_addresses,
    entry_key,
    service_key,
)

NETWORK = IPv4Network("10.96.0.0/16")


def test_a_pod_address_is_not_given_again_at_once():
    pool = PodAddresses(IPv4Network("10.44.0.0/24"))
    first, place = pool.take()
    pool.give_back(place)
    second, _ = pool.take()
    assert (str(first), str(second)) == ("10.44.0.10", "10.44.0.11")


def test_the_pool_begins_again_when_it_is_through_and_says_when_it_is_empty():
    pool = PodAddresses(IPv4Network("10.44.0.0/28"))
    taken = [pool.take() for _ in range(5)]
    assert len({address for address, _ in taken}) == 5
    with pytest.raises(LocalError, match="in use"):
        pool.take()
    pool.give_back(taken[0][1])
    assert pool.take() == taken[0]


def test_a_service_has_the_same_address_whatever_else_there_is():
    alone = assign_cluster_ips([service("cart")], {}, NETWORK)
    together = assign_cluster_ips([service("cart"), service("front"), service("catalog")], {}, NETWORK)
    assert together[service_key(service("cart"))] == alone[service_key(service("cart"))]
    assert len(set(together.values())) == 3


def test_stated_addresses_stay_and_headless_and_external_services_have_none():
    stated = service("a", cluster_ip="10.96.7.7")
    services = [stated, service("b", cluster_ip="None"), service("c", type="ExternalName", external_name="x.org")]
    assert assign_cluster_ips(services, {}, NETWORK) == {service_key(stated): "10.96.7.7"}


def test_a_held_address_stays_unless_a_manifest_now_states_it_for_another():
    key = service_key(service("cart"))
    assert assign_cluster_ips([service("cart")], {key: "10.96.9.9"}, NETWORK)[key] == "10.96.9.9"
    rival = service("rival", cluster_ip="10.96.9.9")
    assert assign_cluster_ips([service("cart"), rival], {key: "10.96.9.9"}, NETWORK)[key] != "10.96.9.9"


def test_a_newcomer_gives_way_to_those_that_hold_their_place():
    tiny = IPv4Network("10.96.0.0/27")
    services = [service(f"s{number:02}") for number in range(15)]
    full = assign_cluster_ips(services, {}, tiny)
    assert len(set(full.values())) == 15
    with pytest.raises(LocalError, match="in use"):
        assign_cluster_ips([*services, service("more")], full, tiny)
    held = {key: address for key, address in full.items() if key.name != "s07"}
    newcomer = service("a-newcomer")
    later = assign_cluster_ips([newcomer, *(item for item in services if service_key(item) in held)], held, tiny)
    assert held.items() <= later.items()
    assert later[service_key(newcomer)] == full[service_key(services[7])]


def entry(name: str, *hosts: str, labels: dict[str, str] | None = None, **spec: object) -> ServiceEntry:
    fields = {"resolution": "DNS", **spec}
    metadata = ObjectMeta(name=name, namespace="shop", labels=labels or {})
    return ServiceEntry(metadata=metadata, spec=ServiceEntrySpec(hosts=hosts, **fields))


def test_hosts_of_entries_get_addresses_that_stay():
    rates = entry("rates", "a.example.com", "b.example.com")
    key = entry_key(rates)
    given = assign_entry_addresses([rates], {})
    assert set(given) == {(key, "a.example.com"), (key, "b.example.com")}
    assert len(set(given.values())) == 2
    assert all(address.startswith("240.240.") for address in given.values())
    assert assign_entry_addresses([entry("other", "c.example.com"), rates], given).items() >= given.items()


@pytest.mark.parametrize(
    "without",
    [
        entry("stated", "a.example.com", addresses=("10.1.1.1",)),
        entry("none", "a.example.com", resolution="NONE"),
        entry("wild", "*.example.com"),
        entry("unwilling", "a.example.com", labels={"networking.istio.io/enable-autoallocate-ip": "false"}),
        ServiceEntry(
            metadata=ObjectMeta(name="brought"),
            spec=ServiceEntrySpec(hosts=("a.example.com",), resolution="DNS"),
            status=ServiceEntryStatus(addresses=(AllocatedAddress(host="a.example.com", value="240.240.0.1"),)),
        ),
    ],
    ids=lambda item: item.metadata.name,
)
def test_entries_that_have_or_need_no_address_get_none(without):
    assert assign_entry_addresses([without], {}) == {}


def test_a_wildcard_whose_names_are_resolved_one_by_one_has_an_address():
    assert len(assign_entry_addresses([entry("wild", "*.example.com", resolution="DYNAMIC_DNS")], {})) == 1
