"""Who of the connected proxies stands for a workload outside Kubernetes, and its WorkloadEntry.

In: connections as they come and go, what their agents say of health, the objects as the engine knows them. Out: proxies
refused that may not have their entry; entries created, taken over, given up and removed. What to do about an entry is
decided by what is true when it is done, so that nothing depends on the order in which anything is heard. Each replica
sees to its own connections: of two that an entry names, the one with the newer connection looks after it.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

import msgspec

from mizzen import observe, settings
from mizzen.api.meta import Key, Object
from mizzen.control.machines import contents
from mizzen.control.machines.contents import Machine
from mizzen.control.machines.entries import Entries, Entry
from mizzen.control.retries import Budget, Chores
from mizzen.control.times import parse_time
from mizzen.xds.identity import Refused
from mizzen.xds.registration import Health
from mizzen.xds.status import Connection

_log = observe.scope("autoregister")

_SUCCESS = observe.Counter("auto_registration_success_total", "WorkloadEntries created for proxies that connected.")
_UPDATES = observe.Counter("auto_registration_updates_total", "WorkloadEntries of proxies that came back.")
_UNREGISTERED = observe.Counter("auto_registration_unregister_total", "Proxies with a WorkloadEntry that went away.")
_DELETES = observe.Counter("auto_registration_deletes_total", "WorkloadEntries removed after their grace period.")
_ERRORS = observe.Counter("auto_registration_errors_total", "Proxies whose WorkloadEntry could not be made.")

_LOOK_EVERY = 0.5
_PATIENCE, _PATIENCE_LOOK = 2.0, 0.05
"""A proxy that is new waits for its entry, so that its first configuration is whole; it does not wait for a server that
is away."""
_REMOVALS = 20.0
"""Entries removed a second, at most."""
_SWEEP_GRACES = 10
"""Grace periods between two looks at all entries."""
_AGES = 1.5
"""How many times the longest life of a connection an entry is believed to be connected."""
_MARGIN = 0.05


class _Held(msgspec.Struct):
    """A connection of an entry."""

    connection: Connection
    machine: Machine
    health: Health | None = None


class Registrar:
    """Lets proxies in, and keeps entries; somebody runs it."""

    def __init__(
        self,
        entries: Entries,
        peek: Callable[[Key], Object | None],
        config: settings.Settings,
        *,
        instance: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`peek` gives objects as they are known now; `instance` names this replica in entries."""
        self._entries, self._peek, self._instance, self._clock = entries, peek, instance, clock
        self._settings = config.machines
        self._longest = _AGES * config.xds.max_connection_age
        self._held: dict[Key, dict[str, _Held]] = {}
        self._gone: dict[Key, tuple[float, float]] = {}
        """Entries whose last connection went: when it began, and when it ended."""
        self._chores: Chores[Key] = Chores(self._see_to, "a WorkloadEntry cannot be written")
        self._removals = Budget(_REMOVALS, int(_REMOVALS))

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._chores.run())
            tasks.create_task(self._keep_registered())
            tasks.create_task(self._keep_sweeping())

    # -- proxies --------------------------------------------------------------------------------------------------

    async def admit(self, connection: Connection) -> None:
        """Refuse a proxy that may not have the entry that it asks for; see to the entry of any other."""
        machine = self._read(connection)
        if machine is None:
            return
        account = self._account(machine)
        if account is None:
            return
        self._refuse_liars(connection, machine, account)
        key = machine.key
        self._held.setdefault(key, {})[connection.id] = _Held(connection, machine)
        self._chores.add(key)
        for _ in range(round(_PATIENCE / _PATIENCE_LOOK)):
            if self._peek(key) is not None:
                break
            await asyncio.sleep(_PATIENCE_LOOK)

    def leave(self, connection: Connection) -> None:
        """Give its entry up, unless it has another connection."""
        machine = self._read(connection)
        held = self._held.get(machine.key) if machine is not None else None
        if machine is None or held is None or held.pop(connection.id, None) is None:
            return
        if not held:
            del self._held[machine.key]
            self._gone[machine.key] = connection.connected_at, self._clock()
        self._chores.add(machine.key)

    def hear(self, connection: Connection, health: Health) -> None:
        """Note how its workload is in its entry."""
        machine = self._read(connection) if self._settings.health else None
        held = self._held.get(machine.key, {}).get(connection.id) if machine is not None else None
        if machine is not None and held is not None:
            held.health = health
            self._chores.add(machine.key)

    def _read(self, connection: Connection) -> Machine | None:
        machine = contents.read_machine(connection.proxy)
        if machine is None or (machine.group and self._settings.register):
            return machine
        if not machine.entry or not self._settings.health:
            return None
        return msgspec.structs.replace(machine, group="")

    def _account(self, machine: Machine) -> str | None:
        """The account that its entry has, or will have; None where nobody looks after the entry."""
        entry = self._peek(machine.key)
        if not machine.group:
            if entry is None:
                raise Refused("FAILED_PRECONDITION", f"the proxy is to be {machine.key}, which is not found")
            if entry.metadata.annotations.get(contents.HEALTH_CHECKS) != "true":
                return None
        if entry is not None:
            return getattr(getattr(entry, "spec", None), "service_account", "")
        group = self._peek(machine.group_key)
        if group is None:
            _ERRORS.inc()
            raise Refused("FAILED_PRECONDITION", f"cannot register {machine.key}: {machine.group_key} is not found")
        return contents.group_account(group)  # type: ignore[arg-type]

    def _refuse_liars(self, connection: Connection, machine: Machine, account: str) -> None:
        why = self._why_not(connection, machine, account)
        if why:
            _ERRORS.inc()
            raise Refused("PERMISSION_DENIED", why)

    def _why_not(self, connection: Connection, machine: Machine, account: str) -> str:
        if not self._settings.validate_identity:
            return ""
        return contents.refusal(connection.identity, machine.namespace, account)

    # -- entries --------------------------------------------------------------------------------------------------

    async def _keep_registered(self) -> None:
        """See to entries that are not there once their group appears or is another, or after somebody removed them."""
        before: dict[Key, object] = {}
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            missing: dict[Key, object] = {}
            for key, held in self._held.items():
                machine = _newest(held).machine
                if machine.group and self._peek(key) is None:
                    missing[key] = self._peek(machine.group_key)
            for key, group in missing.items():
                if group is not None and (key not in before or before[key] != group):
                    self._chores.add(key)
            before = missing

    async def _keep_sweeping(self) -> None:
        """See to entries that nobody gave up, as whoever they were connected to is gone too."""
        while True:
            await asyncio.sleep(max(1.0, _SWEEP_GRACES * self._settings.grace))
            for entry in self._entries.known():
                key = Key("WorkloadEntry", entry.metadata.namespace, entry.metadata.name)
                if key not in self._held and self._is_abandoned(entry.metadata.annotations):
                    self._chores.add(key)

    def _is_abandoned(self, annotations: Mapping[str, str]) -> bool:
        return contents.is_abandoned(annotations, self._clock(), grace=self._settings.grace, longest=self._longest)

    async def _see_to(self, key: Key) -> None:
        read = await self._entries.read(key)
        if key in self._held:
            self._gone.pop(key, None)
            await self._keep(key, read, _newest(self._held[key]))
        elif read is None:
            self._gone.pop(key, None)
        else:
            await self._give_up(key, await self._note_end(key, read))

    async def _keep(self, key: Key, read: Entry | None, held: _Held) -> None:
        connection = held.connection
        if read is None:
            read = await self._create(key, held)
        elif self._why_not(connection, held.machine, read.account):
            _ERRORS.inc()
            _log.warning("%s is no longer %s's, which is disconnected", key, connection.id)
            connection.stream.close()
            return
        elif not contents.is_connected(self._instance, connection.connected_at, read.annotations):
            if contents.is_older(connection.connected_at, read.annotations):
                return  # It was seen elsewhere since, or has gone there.
            taken = contents.connected(self._instance, connection.connected_at)
            read = await self._entries.annotate(key, read, taken)
            _UPDATES.inc()
            _log.info("%s is connected again, by %s", key, connection.id)
        if read is not None and held.health is not None:
            await self._note_health(key, read, held.health)

    async def _create(self, key: Key, held: _Held) -> Entry | None:
        machine, connection = held.machine, held.connection
        group = self._peek(machine.group_key) if machine.group else None
        if group is None:
            return None  # It may come.
        if self._why_not(connection, machine, contents.group_account(group)):  # type: ignore[arg-type]
            connection.stream.close()
            return None
        document = contents.build_entry(machine, group, self._entries.version)  # type: ignore[arg-type]
        document["metadata"]["annotations"] |= {
            name: value
            for name, value in contents.connected(self._instance, connection.connected_at).items()
            if value is not None
        }
        try:
            created = await self._entries.create(key, document)
        except Exception:
            _ERRORS.inc()
            raise
        _SUCCESS.inc()
        _log.info("%s is registered, for %s", key, connection.id)
        return created

    async def _note_health(self, key: Key, read: Entry, health: Health) -> None:
        conditions = contents.merge_condition(read.conditions, health.healthy, health.message, self._clock())
        if conditions is not None:
            await self._entries.set_conditions(key, read, conditions)
            _log.info("%s is %s", key, "healthy" if health.healthy else f"not healthy: {health.message}")

    async def _note_end(self, key: Key, read: Entry) -> Entry:
        """Say in an entry that its machine has gone, unless it has gone on elsewhere."""
        known = self._gone.pop(key, None)
        if known is None:
            return read
        began, ended = known
        if not contents.is_connected(self._instance, began, read.annotations):
            return read
        try:
            read = await self._entries.annotate(key, read, contents.disconnected(ended))
        except Exception:
            self._gone.setdefault(key, known)
            raise
        _UNREGISTERED.inc()
        _log.info("%s is disconnected", key)
        return read

    async def _give_up(self, key: Key, read: Entry) -> None:
        """Remove an entry, or what is said of its health, once its machine had time to come back."""
        annotations = read.annotations
        registered = contents.GROUP in annotations
        if not registered and len(contents.without_health(read.conditions)) == len(read.conditions):
            return
        if not self._is_abandoned(annotations):
            left = parse_time(annotations.get(contents.DISCONNECTED_AT, ""))
            if left is not None and contents.CONNECTED_AT not in annotations:
                self._chores.add(key, max(0.0, left + self._settings.grace - self._clock()) + _MARGIN)
            return
        await self._removals.spend()
        if key in self._held:
            return
        if registered:
            await self._entries.delete(key, read)
            _DELETES.inc()
            _log.info("%s is removed: its proxy has not come back", key)
        else:
            await self._entries.set_conditions(key, read, contents.without_health(read.conditions))


def _newest(held: Mapping[str, _Held]) -> _Held:
    return max(held.values(), key=lambda each: each.connection.connected_at)
