"""One container that should run all the time: its process, restarted when it ends, and the probes that judge it.

In: the container, how its command line is built, and the address that probes ask. Out: `ready`, which `changed`
announces, and what the state file says of it. A container without a readiness probe is ready while it runs. Until a
probe passes for the first time it is asked often, not at its own pace: nobody waits ten seconds for a local mesh.
"""

import asyncio
from collections.abc import Callable

import msgspec

from mizzen.api.kube.pods import Container, Probe
from mizzen.errors import LocalError
from mizzen.local import runtime
from mizzen.local.pods import probes
from mizzen.local.processes import Command, Identity, Process, Supervisor

_EAGER_SECONDS = 0.2
_STOP_SECONDS = 10.0


class Running:
    """A container and what watches it."""

    def __init__(
        self,
        container: Container,
        address: str,
        build: Callable[[], Command],
        changed: Callable[[], None],
        ended: Callable[[str], None],
        restart_policy: str,
    ) -> None:
        self.container = container
        self._address = address
        self._build = build
        self._changed = changed
        self._passing = container.readiness_probe is None
        self._was_ready = asyncio.Event()
        self._command: Command | None = None
        """How it was started last."""
        self.supervisor = Supervisor(self._begin, self._refresh, lambda code: restarts(restart_policy, code), ended)

    async def _begin(self) -> Command:
        self._command = self._build()
        return self._command

    @property
    def ready(self) -> bool:
        return self._passing and self.supervisor.process is not None

    def _refresh(self) -> None:
        if self.ready:
            self._was_ready.set()
        self._changed()

    async def wait_ready(self) -> None:
        """Until it is ready for the first time."""
        await self._was_ready.wait()

    def describe(self) -> runtime.Container:
        process = self.supervisor.process
        identity = self._command.identity if self._command else Identity()
        return runtime.Container(
            name=self.container.name,
            pid=process.host_pid if process else 0,
            uid=identity.uid,
            gid=identity.gid,
            capabilities=identity.capabilities,
            ready=self.ready,
            restarts=self.supervisor.restarts,
            message=self.supervisor.failure,
        )

    async def run(self) -> None:
        """Keeps it running and watches it; ends when it has ended for good."""
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._watch(), name=f"{self.container.name}/probes")
            await self.supervisor.run()
            watch.cancel()

    async def _watch(self) -> None:
        """First the probe of its start, then, side by side, readiness and liveness."""
        container = self.container
        if container.startup_probe is not None:
            await self._probe_start(container.startup_probe)
        async with asyncio.TaskGroup() as tasks:
            if container.readiness_probe is not None:
                tasks.create_task(self._probe_readiness(container.readiness_probe), name="readiness")
            if container.liveness_probe is not None:
                tasks.create_task(self._probe_liveness(container.liveness_probe), name="liveness")

    async def _probe_start(self, probe: Probe) -> None:
        await asyncio.sleep(probe.initial_delay_seconds)
        verdict = probes.Verdict.of(probe)
        while not verdict.passing:
            verdict.record(await self._ask(probe))
            await asyncio.sleep(0 if verdict.passing else _EAGER_SECONDS)

    async def _probe_readiness(self, probe: Probe) -> None:
        await asyncio.sleep(probe.initial_delay_seconds)
        verdict = probes.Verdict.of(probe)
        while True:
            if verdict.record(await self._ask(probe)):
                self._passing = verdict.passing is True
                self._refresh()
            await asyncio.sleep(probes.interval(probe) if verdict.passing else _EAGER_SECONDS)

    async def _probe_liveness(self, probe: Probe) -> None:
        """Ends a process that does not answer any more; the supervisor starts it again."""
        while True:
            await asyncio.sleep(probe.initial_delay_seconds)
            verdict = probes.Verdict.of(probe)
            while verdict.passing is not False:
                await asyncio.sleep(probes.interval(probe))
                if self.supervisor.process is not None:
                    verdict.record(await self._ask(probe))
            if process := self.supervisor.process:
                await process.stop(_STOP_SECONDS)

    async def _ask(self, probe: Probe) -> bool:
        command = self._command
        if self.supervisor.process is None or command is None:
            return False

        async def execute(argv: tuple[str, ...]) -> int:
            return await run_once(msgspec.structs.replace(command, argv=argv))

        try:
            return await probes.check(probe, self.container, self._address, execute)
        except LocalError:
            return False


async def run_once(command: Command) -> int:
    """Runs a command to its end, which comes with the caller's at the latest; returns its exit code."""
    process = Process(command)
    try:
        return await process.wait()
    finally:
        process.kill_group()
        await process.wait()
        process.close()


def restarts(policy: str, code: int) -> bool:
    """Whether a container that ended with this code runs again."""
    return policy != "Never" and (code != 0 or policy != "OnFailure")
