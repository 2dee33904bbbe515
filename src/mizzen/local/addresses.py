"""Gives addresses to pods and Services.

Pods take the next free address in turn, so that an address that was just given up is not at once somebody else's.
Services get theirs by the hash of their name: the same in every run and whatever else the manifests hold; only when
two meet in one place does the one move on that came later. `cable` is a pod's place in the pool and names its wiring.
"""

import hashlib
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network

from mizzen.api.kube.services import Service
from mizzen.api.meta import Key
from mizzen.errors import LocalError

HEADLESS = "None"
_FIRST_POD = 10
_RESERVED_SERVICES = 16


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
    taken = set(given.values())
    for key in sorted(needy, key=lambda key: (key not in held, key)):
        address = held.get(key, "")
        if not address or address in taken:
            address = _find_free(str(key), taken, network)
        given[key] = address
        taken.add(address)
    return given


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
