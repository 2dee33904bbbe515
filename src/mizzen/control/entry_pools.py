"""Who has which virtual address: one of each family for a host, from pools that are walked forward.

In: what ServiceEntries ask for and have, in batches. Out: a plan for each. What was given stays given; of two that have
the same the older keeps it, and one that a user wrote down is that user's. An address that was given up is not given
again before the pool has been walked to its end. Nothing is written here.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mizzen.api.meta import Key
from mizzen.model.entry_addresses import Wish
from mizzen.words import Network

Plan = tuple[tuple[str, str], ...]
"""Hosts and their addresses, in the order of the hosts."""


class _Owner(NamedTuple):
    key: Key
    host: str
    """Empty where a user wrote the address."""


class Pools:
    """All addresses there are."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._pools = tuple(_Pool(network) for network in networks)
        self._owners: dict[str, _Owner] = {}
        self._held: dict[Key, dict[str, str]] = {}
        """Addresses and hosts of each ServiceEntry."""
        self.plans: dict[Key, Plan] = {}

    def assign(self, wishes: Mapping[Key, Wish | None]) -> set[Key]:
        """Plan for these ServiceEntries, the oldest first; others that lose an address by it are to be planned anew."""
        evicted: set[Key] = set()
        before = {key: self._forget(key) for key in wishes}
        for key, wish in wishes.items():
            for address in wish.stated if wish is not None else ():
                evicted |= self._claim(address, key) - wishes.keys()
        for key, wish in wishes.items():
            if wish is not None:
                self._keep(key, wish, before[key])
        for key, wish in wishes.items():
            if wish is not None:
                self.plans[key] = tuple(self._complete(key, wish))
        return evicted

    def _forget(self, key: Key) -> Plan:
        for address in self._held.pop(key, {}):
            del self._owners[address]
        return self.plans.pop(key, ())

    def _own(self, address: str, key: Key, host: str) -> None:
        self._owners[address] = _Owner(key, host)
        self._held.setdefault(key, {})[address] = host

    def _claim(self, address: str, key: Key) -> set[Key]:
        """A user's address; whoever was given it has to look for another."""
        value = _normal(address)
        had = self._owners.get(value)
        if not any(pool.holds(value) for pool in self._pools) or (had is not None and not had.host):
            return set()
        if had is not None:
            del self._held[had.key][value]
        self._own(value, key, "")
        return {had.key} if had is not None else set()

    def _keep(self, key: Key, wish: Wish, planned: Plan) -> None:
        """What hosts have, or were promised, as far as nobody else has it."""
        for host, address in (*wish.given, *planned):
            value = _normal(address)
            pool = next((one for one in self._pools if one.holds(value)), None)
            if host not in wish.hosts or pool is None or value in self._owners:
                continue
            if self._find(key, host, pool) is None:
                self._own(value, key, host)

    def _complete(self, key: Key, wish: Wish) -> Iterator[tuple[str, str]]:
        for host in wish.hosts:
            for pool in self._pools:
                own = self._find(key, host, pool)
                if own is None and (own := pool.take(self._owners)) is not None:
                    self._own(own, key, host)
                if own is not None:
                    yield host, own

    def _find(self, key: Key, host: str, pool: "_Pool") -> str | None:
        held = self._held.get(key, {})
        return next((address for address, whose in held.items() if whose == host and pool.holds(address)), None)


class _Pool:
    """One network, walked forward."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._next = 1

    def holds(self, address: str) -> bool:
        try:
            return ipaddress.ip_address(address) in self._network
        except ValueError:
            return False

    def take(self, taken: Mapping[str, object]) -> str | None:
        """The next free address; None when there is none."""
        last = self._network.num_addresses - 2
        for _ in range(min(last, len(taken) + 1)):
            address = str(self._network[self._next])
            self._next = self._next + 1 if self._next < last else 1
            if address not in taken:
                return address
        return None


def _normal(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
