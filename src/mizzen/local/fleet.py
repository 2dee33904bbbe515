"""The pods that exist: started, watched, retired.

In: the planner's actions. Out: the pods as the planner, the control plane and the state file want to see them. Owns
their addresses, their tasks and the sockets to their Envoys; a pod that ends for whatever reason of its own stays here,
not ready, until the planner lets it go.
"""

import asyncio
import contextlib
from pathlib import Path

from mizzen import observe
from mizzen.api.meta import Key
from mizzen.errors import MizzenError
from mizzen.local import publish, publishing, runtime, uncaptured
from mizzen.local.addresses import PodAddresses
from mizzen.local.plan import Action, RunningPod, Start
from mizzen.local.pods.sandbox import Sandbox
from mizzen.local.pods.world import World
from mizzen.local.workloads import PlannedPod

_LAST_GRACE_SECONDS = 2.0

_log = observe.scope("local")


class Fleet:
    """All pods of one mesh."""

    def __init__(self, world: World, tasks: asyncio.TaskGroup) -> None:
        self._world = world
        self._tasks = tasks
        self._pool = PodAddresses(world.subnets.pods)
        self._pods: dict[Key, Sandbox] = {}
        self._lives: dict[Key, asyncio.Task[None]] = {}
        self._sockets = publishing.UnixSockets()

    def running(self) -> list[RunningPod]:
        """The pods as the planner sees them."""
        return [
            RunningPod(
                key=key,
                owner=sandbox.planned.owner,
                ordinal=sandbox.planned.ordinal,
                revision=sandbox.planned.revision,
                ready=sandbox.ready,
                stopping=sandbox.terminating,
            )
            for key, sandbox in self._pods.items()
        ]

    def present(self) -> list[publish.PresentPod]:
        """The pods as a cluster would show them."""
        return [sandbox.present() for sandbox in self._pods.values()]

    def describe(self) -> tuple[runtime.Pod, ...]:
        """The pods for the state file."""
        return tuple(sandbox.describe(str(_admin_path(sandbox))) for _, sandbox in sorted(self._pods.items()))

    def act(self, action: Action) -> None:
        """Begins to do what the planner says."""
        if isinstance(action, Start):
            self._start(action.planned)
            return
        sandbox = self._pods[action.key]
        sandbox.terminating = True
        self._world.say(f"{sandbox.name} stops: {action.reason}")
        self._tasks.create_task(self._retire(sandbox), name=f"{sandbox.name}/stop")

    def _start(self, planned: PlannedPod) -> None:
        address, place = self._pool.take()
        sandbox = Sandbox(planned, address, place, self._world)
        self._pods[planned.key] = sandbox
        self._lives[planned.key] = self._tasks.create_task(self._live(sandbox), name=sandbox.name)

    async def _live(self, sandbox: Sandbox) -> None:
        """A pod from start to end; a bug in it is told and stays its own."""
        try:
            async with asyncio.TaskGroup() as tasks:
                sockets = tasks.create_task(self._open_sockets(sandbox), name=f"{sandbox.name}/sockets")
                await sandbox.run()
                sockets.cancel()
        except Exception as failed:
            sandbox.message = f"internal error: {failed!r}"
            self._world.say(f"{sandbox.name}: {sandbox.message}")
            _log.exception("pod %s", sandbox.name)
            self._world.changed()
        finally:
            self._sockets.close(sandbox.root)

    async def _open_sockets(self, sandbox: Sandbox) -> None:
        """The sockets are there once the pod's folder is."""
        await sandbox.laid.wait()
        if not sandbox.sidecar:
            return
        await self._sockets.open(_admin_path(sandbox), sandbox.namespace, sandbox.admin_address)
        if self._world.isolation.namespaces:
            return
        present = sandbox.present()
        for port in uncaptured.served_ports(present, self._world.services()):
            address = str(sandbox.program_address), port
            await self._sockets.open(sandbox.root / uncaptured.inlet(port), None, address)

    async def _retire(self, sandbox: Sandbox) -> None:
        await sandbox.stop()
        life = self._lives.pop(sandbox.key)
        life.cancel()
        await asyncio.wait([life])
        # Only then may a pod of the same name, and so with the same folder, begin.
        await sandbox.remove_files()
        del self._pods[sandbox.key]
        self._pool.give_back(sandbox.place)
        self._world.changed()

    async def refresh_files(self) -> None:
        """Lays what is mounted into pods once more: tokens are renewed, ConfigMaps and roots may have changed."""
        for sandbox in tuple(self._pods.values()):
            with contextlib.suppress(MizzenError):
                await sandbox.refresh_files()

    async def close(self) -> None:
        """Programs get a moment to end by themselves; then all pods end at once."""
        programs = [item for sandbox in self._pods.values() for item in sandbox.programs]
        await asyncio.gather(*(item.supervisor.stop(_LAST_GRACE_SECONDS) for item in programs))
        for life in self._lives.values():
            life.cancel()
        if self._lives:
            await asyncio.wait(self._lives.values())


def _admin_path(sandbox: Sandbox) -> Path:
    return sandbox.root / "admin.sock"
