"""The life of one pod: network, injection, files, capture, sidecar, programs, and its end.

In: a planned pod and the `World`. Out: processes, and what the rest of the mesh may know of them: address, readiness,
and a message where something is wrong. The order is a cluster's: init containers one after the other, the sidecar,
and, once that is ready, the programs. What cannot be done now (a ConfigMap that is not there yet, an init container
that fails) is tried again until it can; nothing in one pod stops another.
"""

import asyncio
import os
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import msgspec

from mizzen.api.kube.cluster import Namespace
from mizzen.api.kube.pods import Container, Pod, PodCondition, PodIP, PodStatus
from mizzen.api.meta import Key, Object
from mizzen.api.scalars import decode_scalar, encode_scalar
from mizzen.errors import LocalError, MizzenError
from mizzen.inject import pod as injection
from mizzen.inject.workload import PROXY
from mizzen.local import isolation as users
from mizzen.local import publish, runtime, uncaptured
from mizzen.local.isolation import Isolation
from mizzen.local.net import network
from mizzen.local.pods import capture, containers, volumes
from mizzen.local.pods.running import Running, run_once
from mizzen.local.pods.world import World
from mizzen.local.processes import Command, Identity
from mizzen.local.workloads import PlannedPod

_RETRY_SECONDS = 1.0
_WITHDRAWN_SECONDS = 1.0
"""Between the end of a pod's endpoints and that of its programs, for callers to hear of it."""
_GRACE_SECONDS = 10.0
_ADMIN_PORT = 15000


class Sandbox:
    """One pod."""

    def __init__(self, planned: PlannedPod, address: IPv4Address, place: int, world: World) -> None:
        self.planned = planned
        self.address = address
        self.place = place
        self.namespace: int | None = None
        self.laid = asyncio.Event()
        """Set when the pod's folder is there."""
        self.terminating = False
        self.message = ""
        self._world = world
        self._running: list[Running] = []
        self._complete = False
        self.pod = self._placed(planned.pod)
        self._folder = volumes.Folder(world.layout.pod(self.key.namespace, self.key.name))

    @property
    def key(self) -> Key:
        return self.planned.key

    @property
    def root(self) -> Path:
        """The folder that stands in for the pod's file system."""
        return self._folder.root

    @property
    def name(self) -> str:
        return f"{self.key.name}.{self.key.namespace}"

    @property
    def sidecar(self) -> bool:
        return any(item.name == PROXY for item in _all_containers(self.pod))

    @property
    def ready(self) -> bool:
        return self._complete and bool(self._running) and all(item.ready for item in self._running)

    @property
    def programs(self) -> list[Running]:
        """What runs beside the sidecar."""
        return [item for item in self._running if item.container.name != PROXY]

    @property
    def program_address(self) -> IPv4Address:
        """Where the pod's programs listen, as the mesh's process reaches them."""
        if self._world.isolation is Isolation.NONE and self.sidecar:
            return uncaptured.program_address(self.place)
        return self.address

    @property
    def admin_address(self) -> tuple[str, int]:
        """Where Envoy's admin interface listens, inside the pod's network."""
        return (str(self.address) if self._world.isolation is Isolation.NONE else "127.0.0.1"), _ADMIN_PORT

    def present(self) -> publish.PresentPod:
        """The pod as a cluster would show it."""
        ready = self.ready and not self.terminating
        conditions = (PodCondition(type="Ready", status="True" if ready else "False"),)
        status = msgspec.structs.replace(self.pod.status or PodStatus(), conditions=conditions)
        pod = msgspec.structs.replace(self.pod, status=status)
        return publish.PresentPod(pod=pod, ready=self.ready, terminating=self.terminating)

    def describe(self, admin: str) -> runtime.Pod:
        """The pod for the state file."""
        return runtime.Pod(
            name=self.key.name,
            namespace=self.key.namespace,
            address=str(self.address),
            ready=self.ready,
            sidecar=self.sidecar,
            revision=self.planned.revision,
            directory=str(self.root),
            admin=admin if self.sidecar else "",
            containers=tuple(item.describe() for item in self._running),
            message=self.message,
        )

    # -- coming up ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Brings the pod up and keeps it running; ends when cancelled, or when all its containers ended for good."""
        try:
            while True:
                failure = await self._attempt()
                if not failure:
                    return
                self._fail(failure)
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            if self.namespace is not None:
                os.close(self.namespace)

    async def _attempt(self) -> str:
        """One try to bring the pod up and keep it running; returns why it cannot be, if a later one may do better."""
        failure = ""
        try:
            await self._prepare()
            async with asyncio.TaskGroup() as tasks:
                await self._start(tasks)
                self._complete = True
                self.message = ""
                self._world.changed()
        except* MizzenError as failed:
            failure = str(_first(failed))
        return failure

    def _fail(self, message: str) -> None:
        if message != self.message:
            self._world.say(f"{self.name}: {message}")
        self.message = message
        self._complete = False
        self._running.clear()
        self._world.changed()

    async def _prepare(self) -> None:
        """Everything before the first process: address, injection, files."""
        world = self._world
        if world.isolation.namespaces and self.namespace is None:
            self.namespace = await asyncio.to_thread(network.lay_pod, world.subnets, self.address, self.place)
        self.pod = self._inject()
        for container in _all_containers(self.pod):
            if container.name not in capture.CONTAINERS:
                self._command(container)  # A reference that leads nowhere shows before anything runs.
        await self.refresh_files()
        self.laid.set()

    async def refresh_files(self) -> None:
        """Lays the files of the pod's volumes, with new tokens and what ConfigMaps and Secrets hold now."""
        world, account = self._world, self.pod.spec.service_account_name
        namespace, name = self.key.namespace, self.key.name
        files = volumes.build_files(
            self.pod, world.lookup, lambda audience: world.issue_token(namespace, account, name, audience)
        )
        identity = users.proxy_identity(world.isolation, ())
        owner = (identity.uid, identity.gid or 0) if identity.uid is not None else None
        await asyncio.to_thread(self._folder.lay, files, owner)

    async def remove_files(self) -> None:
        """Takes the pod's folder away, for good."""
        await asyncio.to_thread(self._folder.remove)

    def _inject(self) -> Pod:
        """The pod as the injector makes it, decoded again; unchanged where it says no."""
        world = self._world
        namespace = world.lookup(Key("Namespace", "", self.key.namespace)) or Namespace()
        outcome = injection.inject_pod(
            _plain(self._placed(self.planned.pod)),
            namespace=_plain(namespace),
            mesh=world.mesh_config(),
            config=world.injection,
        )
        if outcome.problems:
            raise LocalError("; ".join(str(problem) for problem in outcome.problems))
        return msgspec.convert(outcome.pod, Pod, dec_hook=decode_scalar)

    def _placed(self, pod: Pod) -> Pod:
        """The pod with what a scheduler and a kubelet add."""
        address = str(self.address)
        node = self._world.node_of(pod.spec.node_selector, pod.spec.node_name)
        account = pod.spec.service_account_name or "default"
        spec = msgspec.structs.replace(pod.spec, node_name=node, service_account_name=account)
        status = PodStatus(
            phase="Running", pod_ip=address, pod_ips=(PodIP(ip=address),), host_ip=str(self._world.subnets.hub)
        )
        metadata = pod.metadata
        if self._world.isolation is Isolation.NONE:
            labels = {**metadata.labels, uncaptured.POD_LABEL: metadata.name}
            metadata = msgspec.structs.replace(metadata, labels=labels)
        return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)

    async def _start(self, tasks: asyncio.TaskGroup) -> None:
        """Init containers, sidecar, programs, in this order."""
        proxy = next((item for item in _all_containers(self.pod) if item.name == PROXY), None)
        for container in self.pod.spec.init_containers:
            if container.name == capture.INIT_CONTAINER:
                await self._capture(container)
            elif container.name not in capture.CONTAINERS and container is not proxy:
                await self._initialise(container)
        if proxy is not None:
            async with self._world.gate:
                await self._launch(proxy, tasks).wait_ready()
            self._world.say(f"{self.name} sidecar ready")
        for container in self.pod.spec.containers:
            if container is not proxy:
                self._launch(container, tasks)

    async def _capture(self, container: Container) -> None:
        if self.namespace is None:
            return
        world = self._world
        environ = containers.build_environ(container, self.pod, {}, world.lookup, world.machine)
        config = capture.build_config(
            container, environ, str(world.subnets.resolver), world.isolation, str(world.control_plane)
        )
        await asyncio.to_thread(capture.apply_rules, config, self.namespace)

    async def _initialise(self, container: Container) -> None:
        code = await run_once(self._command(container))
        if code != 0:
            raise LocalError(f"init container {container.name} exited with code {code}")

    def _launch(self, container: Container, tasks: asyncio.TaskGroup) -> Running:
        running = Running(
            container,
            str(self.address if container.name == PROXY else self.program_address),
            lambda: self._command(container),
            self._world.changed,
            lambda reason: self._world.say(f"{self.name}/{container.name} {reason} and is started again"),
            self.pod.spec.restart_policy,
        )
        self._running.append(running)
        tasks.create_task(running.run(), name=f"{self.name}/{container.name}")
        return running

    # -- processes ------------------------------------------------------------------------------------------------

    def _command(self, container: Container) -> Command:
        """The container as a process; `LocalError` if it cannot be one."""
        world, proxy = self._world, container.name == PROXY
        base = {**world.base_environ, "HOSTNAME": self.key.name, "MIZZEN_ROOT": str(self.root)}
        if proxy:
            base |= world.agent_environ
            if world.isolation is Isolation.NONE:
                base["MIZZEN_BIND_ADDRESS"] = str(self.address)
        elif world.isolation is Isolation.NONE:
            base |= uncaptured.build_program_environ(self.address, self.place, sidecar=self.sidecar)
        if not proxy and not container.command:
            raise LocalError(f"container {container.name} has no command: a local mesh runs programs, not images")
        program = containers.build_program(container, self.pod, base, world.lookup, world.machine)
        return Command(
            argv=(*world.agent, *program.argv) if proxy else program.argv,
            environ={**program.environ, **world.marker},
            directory=self.root if proxy else Path(container.working_dir or world.manifests),
            log=world.layout.log(self.key.namespace, self.key.name, container.name),
            identity=self._identity(container),
            namespace=self.namespace,
            resolv_conf=world.resolv_conf(self.key.namespace, proxy),
            bound_to_parent=not world.isolation.namespaces,
        )

    def _identity(self, container: Container) -> Identity:
        world = self._world
        if container.name == PROXY:
            return users.proxy_identity(world.isolation, world.needed)
        own, shared = container.security_context, self.pod.spec.security_context
        uid = own.run_as_user if own and own.run_as_user is not None else shared.run_as_user if shared else None
        gid = own.run_as_group if own and own.run_as_group is not None else shared.run_as_group if shared else None
        return users.application_identity(world.isolation, uid, gid, world.needed)

    # -- going down -----------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Withdraws the endpoints, lets callers hear of it, then ends programs and sidecar in this order."""
        was_ready = self.ready
        self.terminating = True
        self._world.changed()
        if was_ready:
            await asyncio.sleep(_WITHDRAWN_SECONDS)
        stated = self.pod.spec.termination_grace_period_seconds
        grace = _GRACE_SECONDS if stated is None else min(stated, _GRACE_SECONDS)
        proxies = [item for item in self._running if item.container.name == PROXY]
        for group in (self.programs, proxies):
            await asyncio.gather(*(item.supervisor.stop(grace) for item in group))


def _all_containers(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.init_containers
    yield from pod.spec.containers


def _plain(item: Object) -> dict[str, object]:
    """The object as the injector takes it: what its JSON would read as."""
    return msgspec.json.decode(msgspec.json.encode(item, enc_hook=encode_scalar), type=dict[str, object])


def _first(group: BaseExceptionGroup[MizzenError]) -> MizzenError:
    failed = group.exceptions[0]
    return _first(failed) if isinstance(failed, BaseExceptionGroup) else failed
