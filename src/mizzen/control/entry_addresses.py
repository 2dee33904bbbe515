"""Virtual addresses of ServiceEntries, given by the leader and written to their statuses.

In: what ServiceEntries ask for and have, by the engine; who has which address, by `entry_pools`. Out: a merge patch of
`status.addresses` where it differs, decided on one resource version. The addresses that stand in statuses are all the
memory there is: a new leader reads them all before it gives the first.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from mizzen import observe
from mizzen.api.meta import Key
from mizzen.control.computed import Computed
from mizzen.control.entry_pools import Plan, Pools
from mizzen.control.leader_requests import LeaderRequests
from mizzen.control.retries import Chores
from mizzen.incremental import Engine
from mizzen.model.entry_addresses import Wish, address_wish, entry_keys
from mizzen.sources.kube.source import KubeSource
from mizzen.words import Network

_WRITES = observe.Counter("mizzen_entry_address_writes", "ServiceEntries to which virtual addresses were written.")

MANAGER = "ip-autoallocate"
_EVERY = 0.1


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Address(msgspec.Struct, frozen=True):
    value: str = ""
    host: str = ""


class _Status(msgspec.Struct, frozen=True):
    addresses: tuple[_Address, ...] = ()


class _Entry(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class EntryAddresses:
    """Gives addresses during one term; somebody runs it."""

    def __init__(
        self,
        db: Engine,
        source: KubeSource,
        requests: LeaderRequests,
        networks: Iterable[Network],
    ) -> None:
        self._source, self._requests = source, requests
        self._pools = Pools(networks)
        self._changed: set[Key] = set()
        self._computed: Computed[Wish] = Computed(db, entry_keys, address_wish, self._changed.add)
        self._chores: Chores[Key] = Chores(self._see_to, "virtual addresses cannot be written")

    async def run(self) -> None:
        """Ends only when cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._chores.run())
                while True:
                    await self._computed.look()
                    while self._changed:
                        self._assign()
                    await asyncio.sleep(_EVERY)
        finally:
            self._computed.release()

    def _assign(self) -> None:
        """Plan for all that are another, the oldest first."""
        changed = sorted(self._changed, key=self._age)
        self._changed.clear()
        wishes = {key: self._wish(key) for key in changed}
        self._changed |= self._pools.assign(wishes)
        for key, wish in wishes.items():
            if wish is not None and wish.hosts and wish.given != self._pools.plans[key]:
                self._chores.add(key)

    def _age(self, key: Key) -> tuple[float, str, str]:
        found = self._computed.values.get(key)
        return found[0].metadata.age_order if found is not None else (0.0, key.name, key.namespace)

    def _wish(self, key: Key) -> Wish | None:
        return self._computed.values[key][1] if key in self._computed.values else None

    async def _see_to(self, key: Key) -> None:
        wish, plan, resource = self._wish(key), self._pools.plans.get(key), self._source.resource(key.kind)
        if wish is None or not wish.hosts or plan is None or wish.given == plan or resource is None:
            return
        path = resource.path_to(key.namespace, key.name)
        read = _decode(await self._requests.get(path))
        given = tuple((each.host, each.value) for each in read.status.addresses)
        if given != wish.given or read.metadata.uid != self._computed.values[key][0].metadata.uid:
            return  # Not the one that was planned for; the engine will hear of it.
        await self._write(f"{path}/status", read.metadata.resource_version, plan)

    async def _write(self, path: str, version: str, plan: Plan) -> None:
        addresses: list[dict[str, Any]] = [{"value": value, "host": host} for host, value in plan]
        body = {"metadata": {"resourceVersion": version}, "status": {"addresses": addresses}}
        if await self._requests.write("PATCH", path, body, manager=MANAGER) is not None:
            _WRITES.inc()


def _decode(body: bytes) -> _Entry:
    return msgspec.json.decode(body, type=_Entry)
