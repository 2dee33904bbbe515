"""The mesh's own process: everything that runs is its child.

In: `Options` as JSON on the command line, and the inherited end of the broker's socket pair. It makes the hub of the
namespaces that it was started in, starts control plane and pods, and then goes round one loop: whenever manifests, a
process or a probe change, it plans, starts and stops pods, publishes, and writes the state file. It ends in an orderly
way when it is told to, or when the process that the user started is gone.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping

import msgspec

from mizzen.errors import MizzenError
from mizzen.local import managed, publishing, runtime
from mizzen.local.advice import Advice
from mizzen.local.control_plane import ControlPlane
from mizzen.local.fleet import Fleet
from mizzen.local.net import dns, network
from mizzen.local.net.broker import Client
from mizzen.local.net.forward import Forwarder
from mizzen.local.options import EXPLAINED, Options
from mizzen.local.plan import plan
from mizzen.local.processes import bury_orphans, trim_log
from mizzen.local.publication import Publication
from mizzen.local.remarks import News, Remarks, describe_emptiness
from mizzen.local.surroundings import Surroundings
from mizzen.local.timeline import Timeline
from mizzen.local.workloads import Admitted, admit
from mizzen.sources.origins import Finding, Origin
from mizzen.sources.watch import FileSource

_SETTLE_SECONDS = 0.03
_REFRESH_SECONDS = 1800.0
_BURY_SECONDS = 5.0


class Mesh:
    """One running mesh."""

    def __init__(
        self, surroundings: Surroundings, broker: Client, timeline: Timeline, tasks: asyncio.TaskGroup
    ) -> None:
        self._surroundings = surroundings
        self._layout = surroundings.layout
        self._broker = broker
        self._timeline = timeline
        self._tasks = tasks
        self._wake = asyncio.Event()
        self._source = FileSource(surroundings.options.manifests)
        self._credentials = surroundings.make_credentials()
        self._inventory = surroundings.make_inventory(self._credentials)
        self._publication = Publication(surroundings, self._inventory, broker)
        self._resolver = dns.Resolver(lambda: self._publication.zone)
        self._control_plane = surroundings.make_control_plane(self._credentials, self._wake.set, timeline.say)
        self._fleet = Fleet(
            surroundings.make_world(self._inventory, self._credentials, self._wake.set, timeline.say), tasks
        )
        self._control_addresses: Mapping[str, str] = {}
        self._forwarders: list[Forwarder] = []
        self._admitted = Admitted()
        self._remarks = Remarks()
        self._trouble = Remarks()
        self._advice = Advice()
        self._was_ready = False

    async def run(self) -> None:
        """Until told to end; everything that was started has ended then."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._broker.gone.set)
        parts = [
            self._tasks.create_task(self._follow_manifests(), name="manifests"),
            self._tasks.create_task(self._keep_house(), name="housekeeping"),
        ]
        await self._broker.gone.wait()
        self._timeline.progress("")
        self._timeline.say("stopping")
        for part in parts:
            part.cancel()
        for forwarder in self._forwarders:
            forwarder.close()
        self._publication.ports.close()
        self._resolver.close()
        await self._fleet.close()

    # -- manifests ------------------------------------------------------------------------------------------------

    async def _follow_manifests(self) -> None:
        """The first batch starts the mesh, every later one changes it."""
        async with asyncio.TaskGroup() as parts:
            async for _ in self._source.watch():
                first = not self._inventory.taken
                self._take()
                if first:
                    await self._begin(parts)
                self._wake.set()

    def _take(self) -> None:
        self._inventory.take(self._source.contents.objects)
        remarks = self._deploy_gateways()
        self._admitted = admit(self._inventory.objects.values())
        self._tell(self._remarks.update([*remarks, *self._judge()]))

    def _tell(self, news: News) -> None:
        for line in news.new:
            self._timeline.line(f"         {line}")
        for line in news.gone:
            self._timeline.line(f"         resolved: {line}")

    def _judge(self) -> Iterator[str]:
        """All that is wrong with the manifests now."""
        contents = self._source.contents
        yield from (f"{finding.problem.level}: {finding}" for finding in contents.findings)
        yield from self._advice.errors(contents.objects, contents.origins)
        for problem in self._admitted.problems:
            origin = contents.origins.get(problem.key, Origin("")) if problem.key is not None else Origin("")
            yield f"{problem.level}: {Finding(origin, problem)}"
        yield from (f"warning: {key}: a local mesh does not run it" for key in self._inventory.unrun())

    def _deploy_gateways(self) -> tuple[str, ...]:
        """Adds what Gateways want that nobody deploys, and tells what is in the way of others.

        They listen on ports that only pods of their own can have.
        """
        if not self._surroundings.isolation.namespaces:
            return ()
        known = self._inventory
        found = managed.with_gateways(known.objects, self._surroundings.injection, known.mesh_config())
        known.take(found.objects)
        return found.remarks

    async def _begin(self, parts: asyncio.TaskGroup) -> None:
        """Hub, resolver, objects, control plane, ports, and then the loop that does the rest."""
        surroundings, options = self._surroundings, self._surroundings.options
        wishes = publishing.select_wishes(self._inventory.services(), options.ports)
        publishing.require_all(wishes, options.ports)
        self._tell(News(tuple(surroundings.remarks()), ()))
        if surroundings.isolation.namespaces:
            await asyncio.to_thread(network.lay_hub, surroundings.subnets)
            for address in (surroundings.subnets.resolver, surroundings.subnets.hub):
                await self._resolver.listen(str(address))
        await self._publication.publish(())
        parts.create_task(self._control_plane.run(), name="control-plane")
        parts.create_task(self._announce(self._control_plane), name="control-plane/ready")
        self._control_addresses, self._forwarders = await self._publication.ports.open_control_plane(
            self._control_plane.addresses.by_name
        )
        parts.create_task(self._reconcile(), name="reconcile")

    async def _announce(self, control_plane: ControlPlane) -> None:
        await control_plane.wait_ready()
        self._timeline.say("control plane ready")

    # -- the loop -------------------------------------------------------------------------------------------------

    async def _reconcile(self) -> None:
        """Again and again: plan, act, publish, tell. Changes that come close together are one."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(_SETTLE_SECONDS)
            wanted = self._admitted.pods
            for action in plan(wanted, self._fleet.running()):
                self._fleet.act(action)
            trouble = []
            try:
                await self._publication.publish(self._fleet.present())
            except MizzenError as failed:
                trouble.append(f"error: {failed}")
            self._tell(self._trouble.update(trouble))
            self._report(len(wanted))

    def _report(self, wanted: int) -> None:
        pods = self._fleet.describe()
        ready = sum(pod.ready for pod in pods)
        complete = self._control_plane.ready and ready == len(pods) == wanted
        if complete and not self._was_ready and not self._publication.settled:
            asyncio.get_running_loop().call_later(_SETTLE_SECONDS * 10, self._wake.set)
            complete = False
        state = self._describe(pods, ready=complete)
        runtime.write_state(self._layout, state)
        if complete and not self._was_ready:
            self._was_ready = True
            self._timeline.progress("")
            self._announce_ready(state)
        elif not self._was_ready:
            self._timeline.progress(f"{ready} of {wanted} pods ready")

    def _announce_ready(self, state: runtime.State) -> None:
        sidecars = sum(pod.sidecar for pod in state.pods)
        self._timeline.say(f"mesh {state.mesh} ready: {len(state.pods)} pods, {sidecars} of them with a proxy")
        if not state.pods:
            self._timeline.line(f"         {describe_emptiness(state.manifests)}")
        for item in state.published:
            self._timeline.line(f"         {item.address} leads to {item.service}.{item.namespace}:{item.port}")

    def _describe(self, pods: tuple[runtime.Pod, ...], *, ready: bool) -> runtime.State:
        supervisor = self._control_plane.supervisor
        return runtime.State(
            mesh=self._layout.name,
            isolation=str(self._surroundings.isolation),
            pid=self._surroundings.options.outer,
            inner=int(os.readlink("/proc/self")),
            manifests=self._surroundings.options.manifests,
            ready=ready,
            control_plane=runtime.ControlPlane(
                pid=supervisor.process.host_pid if supervisor.process else 0,
                ready=self._control_plane.ready,
                restarts=supervisor.restarts,
                token=str(self._credentials.client_token),
                root=str(self._credentials.root_file),
                **self._control_addresses,
            ),
            published=self._publication.ports.describe(),
            pods=pods,
        )

    async def _keep_house(self) -> None:
        """Buries orphans and trims logs often, renews files now and then, and at once when the authority says so."""
        renewed, told = time.monotonic(), self._credentials.distributed
        while True:
            await asyncio.sleep(_BURY_SECONDS)
            bury_orphans()
            await asyncio.to_thread(self._trim_logs)
            if time.monotonic() - renewed > _REFRESH_SECONDS or self._credentials.distributed != told:
                renewed, told = time.monotonic(), self._credentials.distributed
                await self._fleet.refresh_files()

    def _trim_logs(self) -> None:
        for path in self._layout.logs.rglob("*.log"):
            with contextlib.suppress(FileNotFoundError):
                trim_log(path)


async def run(options: Options, pair: socket.socket, environ: Mapping[str, str]) -> None:
    """One mesh from start to end."""
    timeline = Timeline(sys.stdout, time.monotonic, start=options.started, terminal=options.terminal)
    surroundings = Surroundings.of(options, environ)
    surroundings.layout.create()
    async with asyncio.TaskGroup() as tasks:
        await Mesh(surroundings, Client(pair), timeline, tasks).run()


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """The process's entry; says what failed in one line."""
    options = msgspec.json.decode(arguments[1], type=Options)
    pair = socket.socket(fileno=int(arguments[2]))
    try:
        asyncio.run(run(options, pair, environ))
    except* MizzenError as failed:
        sys.stderr.write(f"Error: {_first(failed)}\n")
        return_code = EXPLAINED
    else:
        return_code = 0
    return return_code


def _first(failed: BaseException) -> BaseException:
    while isinstance(failed, BaseExceptionGroup):
        failed = failed.exceptions[0]
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv, dict(os.environ)))
