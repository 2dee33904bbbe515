"""Where a proxy listens, and under which address it reaches a service."""

import pytest

from mizzen.api.meta import Key
from mizzen.compile.addresses import Bind, Network, service_bind
from mizzen.model.services import Service, ServiceId

V4 = Network(families="IPv4")
V6 = Network(families="IPv6")
DUAL = Network(families="dual")


def service(**fields):
    base = {
        "id": ServiceId(Key("Service", "ns", "s"), "s.ns"),
        "host": "s.ns",
        "namespace": "ns",
        "name": "s",
        "registry": "Kubernetes",
        "created": 0.0,
        "ports": (),
        "resolution": "client_side_lb",
    }
    return Service(**{**base, **fields})


def test_wildcards_follow_the_families():
    assert V4.wildcard == Bind("0.0.0.0")
    assert V6.wildcard == Bind("::")
    assert DUAL.wildcard == Bind("0.0.0.0", ("::",))
    assert V6.localhost == Bind("::1")


def test_virtual_listeners_have_a_second_family_only_in_a_dual_stack_mesh():
    assert DUAL.virtual_wildcard == Bind("0.0.0.0")
    assert Network(families="dual", dual_stack=True).virtual_wildcard == Bind("0.0.0.0", ("::",))


@pytest.mark.parametrize(
    ("network", "family"),
    [(V4, "V4_ONLY"), (V6, "V6_ONLY"), (DUAL, "V4_ONLY"), (Network(families="dual", dual_stack=True), "ALL")],
)
def test_names_are_resolved_to_the_proxys_families(network, family):
    assert network.dns_family == family


def test_a_service_is_reached_at_its_first_address_of_the_proxys_family():
    both = service(addresses=("10.0.0.1", "fd00::1"), address="10.0.0.1")
    assert service_bind(both, V4) == Bind("10.0.0.1")
    assert service_bind(both, V6) == Bind("fd00::1")
    assert service_bind(both, Network(families="dual", dual_stack=True)) == Bind("10.0.0.1", ("fd00::1",))
    assert service_bind(both, DUAL) == Bind("10.0.0.1")


def test_an_address_of_the_other_family_is_better_than_none():
    assert service_bind(service(addresses=("fd00::1",), address="fd00::1"), V4) == Bind("fd00::1")


def test_allocated_addresses_count_only_where_dns_gives_them_out():
    without = service(auto_addresses=("240.240.0.1", "2001:2::1"))
    assert service_bind(without, V4) == Bind("0.0.0.0")
    assert service_bind(without, Network(families="IPv4", use_allocated=True)) == Bind("240.240.0.1")
    assert service_bind(without, Network(families="IPv6", use_allocated=True)) == Bind("2001:2::1")
