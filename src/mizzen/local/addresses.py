"""Gives addresses to pods, to Services and to hosts of ServiceEntries.

Pods take the next free address in turn, so that an address that was just given up is not at once somebody else's.
Services and hosts get theirs by the hash of their name: the same in every run and whatever else the manifests hold;
only when two meet in one place does the one move on that came later. `cable` is a pod's place in the pool and names its
wiring.
"""

import hashlib
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import TypeVar

from mizzen.api.kube.services import Service
from mizzen.api.meta import Key
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.errors import LocalError

HEADLESS = "None"
ENTRY_HOSTS = IPv4Network("240.240.0.0/16")
"""Where the reference's controller takes the addresses of hosts from."""

_FIRST_POD = 10
_RESERVED_SERVICES = 16
_ALLOCATES = "networking.istio.io/enable-autoallocate-ip"

EntryHost = tuple[Key, str]
"""A host of a ServiceEntry."""

Owner = TypeVar("Owner", Key, EntryHost)


class PodAddresses:
    """The pool of pod addresses."""

    def __init__(self, network: IPv4Network) -> None:
        self._network = network
        self._used: set[int] = set()
        self._next = _FIRST_POD

    def take(self) -> tuple[IPv4Address, int]:
        """An address that nobody has, and its place."""
        size = self._network.num_addresses - 1
        for step in range(size - _FIRST_POD):
            place = (self._next - _FIRST_POD + step) % (size - _FIRST_POD) + _FIRST_POD
            if place not in self._used:
                self._used.add(place)
                self._next = place + 1
                return self._network.network_address + place, place
        raise LocalError(f"all addresses of {self._network} are in use")

    def hold(self, address: str) -> None:
        """Keep this address for whoever has it already; one that is not of the pool is nobody's here."""
        if address and ip_address(address) in self._network:
            self._used.add(int(ip_address(address)) - int(self._network.network_address))

    def give_back(self, place: int) -> None:
        self._used.discard(place)


def assign_cluster_ips(services: Iterable[Service], held: Mapping[Key, str], network: IPv4Network) -> Mapping[Key, str]:
    """The address of every Service that has or needs one.

    What a manifest states and what a Service already holds stays; a headless or external Service has none.
    """
    given: dict[Key, str] = {}
    needy: list[Key] = []
    for service in services:
        key = service_key(service)
        stated = service.spec.cluster_ip
        if service.spec.type == "ExternalName" or stated == HEADLESS:
            continue
        if stated:
            given[key] = stated
        else:
            needy.append(key)
    return {**given, **_assign(needy, held, set(given.values()), network)}


def assign_entry_addresses(entries: Iterable[ServiceEntry], held: Mapping[EntryHost, str]) -> Mapping[EntryHost, str]:
    """An address for every host that states none, under which its sidecars' clients then find it.

    As in the reference hosts without a resolution have none, nor wildcards unless each name is resolved by itself, nor
    entries whose label says no.
    """
    needy: list[EntryHost] = []
    for entry in entries:
        wildcards = entry.spec.resolution == "DYNAMIC_DNS"
        if not _has_addresses(entry) and entry.spec.resolution != "NONE":
            needy += [(entry_key(entry), host) for host in entry.spec.hosts if wildcards or not host.startswith("*")]
    return _assign(needy, held, set(), ENTRY_HOSTS)


def _has_addresses(entry: ServiceEntry) -> bool:
    """Whether it states them, brings them from elsewhere, or wants none."""
    brought = entry.status.addresses
    return bool(entry.spec.addresses or brought) or entry.metadata.labels.get(_ALLOCATES) == "false"


def _assign(
    needy: Iterable[Owner], held: Mapping[Owner, str], taken: set[str], network: IPv4Network
) -> dict[Owner, str]:
    """Addresses outside `taken`, which grows by them; who holds one comes first."""
    given: dict[Owner, str] = {}
    for owner in sorted(needy, key=lambda owner: (owner not in held, owner)):
        address = held.get(owner, "")
        if not address or address in taken:
            address = _find_free(str(owner), taken, network)
        given[owner] = address
        taken.add(address)
    return given


def entry_key(entry: ServiceEntry) -> Key:
    return Key("ServiceEntry", entry.metadata.namespace or "default", entry.metadata.name)


def service_key(service: Service) -> Key:
    return Key("Service", service.metadata.namespace or "default", service.metadata.name)


def _find_free(seed: str, taken: set[str], network: IPv4Network) -> str:
    span = network.num_addresses - 1 - _RESERVED_SERVICES
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8])
    for step in range(span):
        address = str(network.network_address + _RESERVED_SERVICES + (start + step) % span)
        if address not in taken:
            return address
    raise LocalError(f"all addresses of {network} are in use")
