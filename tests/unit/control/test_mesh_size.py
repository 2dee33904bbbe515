"""Gauges of the mesh's size follow its objects."""

from mizzen.api.kube.services import Service
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.networking.destination_rule import DestinationRule, DestinationRuleSpec, Subset
from mizzen.api.networking.service_entry import ServiceEntry, ServiceEntrySpec
from mizzen.api.networking.virtual_service import VirtualService
from mizzen.control import mesh_size
from mizzen.control.mesh_size import MeshSize

META = ObjectMeta(name="a", namespace="n")


def sizes() -> tuple[float, ...]:
    gauges = (mesh_size.SERVICES, mesh_size.VIRTUAL_SERVICES, mesh_size.SUBSETS)
    return tuple(gauge._value.get() for gauge in gauges)


def test_services_are_services_and_hosts_of_service_entries() -> None:
    size = MeshSize()
    assert sizes() == (0, 0, 0)
    entry = Key("ServiceEntry", "n", "a")
    size.take(Key("Service", "n", "a"), Service(metadata=META))
    size.take(entry, ServiceEntry(metadata=META, spec=ServiceEntrySpec(hosts=("x", "y", "z"))))
    assert sizes() == (4, 0, 0)
    size.take(entry, ServiceEntry(metadata=META, spec=ServiceEntrySpec(hosts=("x",))))
    size.take(Key("Service", "n", "a"), Service(metadata=META))
    assert sizes() == (2, 0, 0)
    size.take(entry, None)
    size.take(entry, None)
    assert sizes() == (1, 0, 0)


def test_rules_are_counted_by_their_own_measure() -> None:
    size = MeshSize()
    subsets = (Subset(name="v1"), Subset(name="v2"))
    size.take(Key("VirtualService", "n", "a"), VirtualService(metadata=META))
    size.take(
        Key("DestinationRule", "n", "a"), DestinationRule(metadata=META, spec=DestinationRuleSpec(subsets=subsets))
    )
    size.take(Key("Gateway", "n", "a"), None)
    assert sizes() == (0, 1, 2)
