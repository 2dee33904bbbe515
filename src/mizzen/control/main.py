"""The composition root of `mizzen discovery`: sources, engine, authority and servers, started, run and stopped.

    sources ─> Inputs ─> Pusher ─> engine ─> streams          authority ─> certificates of callers and servers
                                                                  │
    gRPC 15010 15012 15011: discovery, certificate service        └─> HTTP 15014 8080: metrics, debug, readiness
                                                                      HTTP 9876: levels of log scopes
    HTTPS 15017: admission webhooks, on Kubernetes

In: `Options` and `Settings`. Out: a process that serves until it is told to stop. Ports open early and say that they
are not ready; proxies are served once every source has delivered its first list. A failure of any part ends the
process with one error, for its supervisor to start it again.
"""

import asyncio
import contextlib
import importlib.metadata
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from mizzen import observe, settings
from mizzen.ca import serving
from mizzen.ca.identity import Authenticator
from mizzen.ca.service import watch_expiry
from mizzen.compile import resource, snapshot
from mizzen.control import callers, controlz, http
from mizzen.control.authority import KeptAuthority, RunningAuthority, keep_serving_certificate, open_authority
from mizzen.control.cluster import Cluster
from mizzen.control.debug.access import Access
from mizzen.control.debug.pages import build_console
from mizzen.control.debug.streams import DebugStreams
from mizzen.control.garbage import collect_in_quiet
from mizzen.control.in_force import InForce
from mizzen.control.inputs import Inputs
from mizzen.control.issuing import build_certificate_service
from mizzen.control.machines.entries import Entries, KubeEntries, OwnEntries
from mizzen.control.machines.registrar import Registrar
from mizzen.control.mesh import MeshSettings
from mizzen.control.mesh_state import MeshState
from mizzen.control.options import Options
from mizzen.control.peer_records import PeerRecords
from mizzen.control.ports import Ports
from mizzen.control.release import Release, this_release
from mizzen.control.ui import site
from mizzen.control.ui.tracing import Tracer
from mizzen.control.webhooks.webhooks import Webhooks
from mizzen.control.writers import Writers
from mizzen.errors import MizzenError
from mizzen.incremental import Engine
from mizzen.model.proxy import parse_node
from mizzen.sources.kube.client import Client
from mizzen.sources.watch import FileSource
from mizzen.xds import metrics
from mizzen.xds.discovery import Discovery
from mizzen.xds.generator import EngineGenerator
from mizzen.xds.server import Server

_log = observe.scope()
_LAG = observe.Histogram(
    "mizzen_loop_lag_seconds",
    "How late the event loop wakes a sleeper.",
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, 5),
)
_BUILD = observe.Gauge("istio_build", "The build that runs.", ("component", "tag"))
_INFO = observe.Gauge("pilot_info", "The version that runs.", ("version",))
_UPTIME = observe.Gauge("istiod_uptime_seconds", "Seconds since the start.")
_CLUSTERS = observe.Gauge("istiod_managed_clusters", "Clusters whose objects are read.", ("cluster_type",))

TYPES = (
    resource.CLUSTER,
    resource.ENDPOINT,
    resource.LISTENER,
    resource.ROUTE,
    resource.VIRTUAL_HOST,
    resource.SECRET,
    resource.EXTENSION,
    resource.NAME_TABLE,
    resource.TRUST_BUNDLE,
)
"""The types that are served."""

_FILES, _KUBERNETES = "files", "kubernetes"
_LAG_EVERY = 0.05
"""Seconds between readings: a push that holds the loop for a tenth of a second is seen."""
_LAG_REPORTED = 0.5
_MESH_LOOK_EVERY = 0.5


class _Stopping(Exception):
    """Ends the task group from within."""


class ControlPlane:
    """One control plane."""

    def __init__(
        self,
        options: Options,
        config: settings.Settings,
        clock: Callable[[], float] = time.time,
        *,
        kept_authority: KeptAuthority | None = None,
    ) -> None:
        """Reads the mesh config's file and keys; raises MizzenError for what would make it useless.

        Without a `kept_authority` the authority is that of the files that the options name.
        """
        self._options = options
        self._config = config
        self._mesh = MeshSettings(options.mesh_config)
        self._stopping = asyncio.Event()
        verifier = callers.load_verifier(options.token_keys, options.token_issuer, config.authority.audiences, clock)
        issuer = callers.load_issuer(config, clock)
        access = options.kubernetes
        self.cluster = Cluster(access, options, config, self._mesh, clock) if access is not None else None
        _CLUSTERS.labels("local").set(self.cluster is not None)
        _CLUSTERS.labels("remote").set(0)
        reviews = self.cluster.token_reviews if self.cluster else None
        self._kept_authority = kept_authority or RunningAuthority(
            config.authority, options.ca_dir, self._mesh.config.trust_domain, clock
        )
        self.authority = self._kept_authority.authority
        authenticator = callers.build_authenticator(
            lambda: self._mesh.config, self._kept_authority.revocations, issuer, verifier, reviews
        )
        names = serving.control_plane_names(
            config.instance.namespace, config.instance.revision, config.authority.custom_hosts
        )
        self._certificate = serving.ServingCertificate(self.authority, names, clock)
        self._webhooks = (
            Webhooks(self.cluster, self._mesh, self.authority, self._certificate, config.instance)
            if self.cluster is not None and options.https is not None
            else None
        )
        watch_expiry(self.authority)
        self.engine = Engine()
        self.discovery = Discovery(
            generator=EngineGenerator(self.engine, snapshot.resources, TYPES),
            parse_node=parse_node,
            authenticator=callers.StreamAuthenticator(authenticator),
            settings=config,
        )
        self.inputs = Inputs(self.discovery.pusher, self._mesh, options, config)
        self.inputs.take_roots(self.authority.bundle)
        self.authority.on_change(lambda _: self.inputs.take_roots(self.authority.bundle))
        self._in_force = InForce(self.engine, self.discovery.connections, self.inputs.take_compiled, self.is_ready)
        if self.cluster is not None:
            Writers(
                self.cluster,
                self.engine,
                config,
                mesh=self._mesh,
                authority=self._kept_authority,
                findings=lambda: self.inputs.findings,
                is_ready=self.is_ready,
            )
        self._registrar = self._open_registrar()
        self.source = FileSource(options.config) if options.config else None
        self._pages = self._open_console(authenticator, this_release(config.instance))
        self._tracer = Tracer(self.engine, self.discovery.connections, self.inputs.places)
        self._site = site.Site(site.build_console(self.discovery, lambda: self.inputs.findings), self._tracer)
        describe = PeerRecords(self.engine, lambda: self.discovery.pusher.ready).describe
        certificates = build_certificate_service(
            self.authority,
            authenticator,
            describe,
            cluster=self.cluster,
            mesh=lambda: self._mesh.config,
            config=config.authority,
            clock=clock,
        )
        self._server = Server([self.discovery.handler(), certificates.handler()], config.xds)
        self._ports = Ports()
        if not (verifier or issuer or reviews) and options.secure is not None:
            _log.warning("neither --tokenKey nor JWT_RULE is given: callers on %s prove nothing", options.secure)

    def _open_console(self, authenticator: Authenticator, release: Release) -> http.Pages:
        """Let the debug console be asked over HTTP and over ADS."""
        config, connections = self._config, self.discovery.connections
        access = Access(config)
        console = build_console(
            self.engine,
            self.discovery,
            lambda: self.inputs.findings,
            {_KUBERNETES: self.cluster.source} if self.cluster is not None else {},
            administrate=config.http.unsafe_administration,
        )
        self.discovery.console = DebugStreams(console, connections, access, release.identifier)
        refresh = MeshState(self.engine, connections, self.discovery.responses).refresh
        return http.Pages(console, access, authenticator, config.http, release, self.is_ready, refresh)

    def _open_registrar(self) -> Registrar:
        """Register workloads outside Kubernetes: in the cluster, else among the objects of this process."""
        cluster, engine, pusher = self.cluster, self.engine, self.discovery.pusher
        entries: Entries
        if cluster is not None:
            entries = KubeEntries(cluster.client, cluster.source)
        else:
            entries = OwnEntries(lambda key, value: pusher.feed(key, value, "config"), engine.peek)
        instance = this_release(self._config.instance).instance
        registrar = self.discovery.registrar = Registrar(entries, engine.peek, self._config, instance=instance)
        if cluster is not None:
            cluster.writers.append(registrar.run)
        return registrar

    @property
    def ports(self) -> Mapping[str, int]:
        """The ports that are open, by flag."""
        return self._ports.numbers

    def is_ready(self) -> bool:
        """Whether proxies are served."""
        return self.discovery.pusher.ready and not self._stopping.is_set()

    def stop(self) -> None:
        """End `run`, gracefully."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop`. Raises MizzenError when a part cannot be started or has failed."""
        try:
            async with self._http(), self._grpc(), asyncio.TaskGroup() as tasks:
                for name, source in {_FILES: self.source, _KUBERNETES: self.cluster}.items():
                    if source is not None:
                        self.inputs.expect(name)
                for name, part in {
                    "push": self.discovery.pusher.run(),
                    "authority": self._kept_authority.run(),
                    "certificate": keep_serving_certificate(self._certificate),
                    "files": self._follow_files(),
                    "kubernetes": self._follow_kubernetes(),
                    "webhooks": self._keep_webhooks(),
                    "machines": self._keep_machines(),
                    "mesh": self._follow_mesh(),
                    "key sets": self.inputs.key_sets.run(),
                    "bundles": self.inputs.spiffe_bundles.run(),
                    "in force": self._in_force.run(),
                    "lag": _watch_lag(),
                    "garbage": collect_in_quiet(self._count_work),
                    "stop": self._wait_for_stop(),
                }.items():
                    tasks.create_task(part, name=name)
        except ExceptionGroup as group:
            failures = [error for error in _leaves(group) if not isinstance(error, _Stopping)]
            if failures and isinstance(failures[0], MizzenError):
                raise failures[0] from None
            if failures:
                raise
        _log.info("stopped")

    def _count_work(self) -> tuple[int, float]:
        """Rises with every commit and every response."""
        return self.discovery.pusher.count, metrics.PUSHES.total()

    async def _wait_for_stop(self) -> None:
        await self._stopping.wait()
        _log.info("stopping")
        raise _Stopping

    # -- parts ----------------------------------------------------------------------------------------------------

    async def _follow_files(self) -> None:
        if self.source is not None:
            async for batch in self.source.watch():
                self.inputs.take(_FILES, batch, self.source.contents.origins)

    async def _follow_kubernetes(self) -> None:
        if self.cluster is not None:
            await self.cluster.run(lambda batch: self.inputs.take(_KUBERNETES, batch, {}))

    async def _keep_webhooks(self) -> None:
        if self._webhooks is not None:
            await self._webhooks.run()

    async def _keep_machines(self) -> None:
        if self.cluster is None:
            await self._registrar.run()

    async def _follow_mesh(self) -> None:
        """Read the mesh config's file again whenever it changes."""
        while self._options.mesh_config:
            await asyncio.sleep(_MESH_LOOK_EVERY)
            if self._mesh.has_changed():
                self._mesh.reload()
                self.inputs.take_mesh()
                if self.cluster is not None:
                    self.cluster.select_namespaces()

    @contextlib.asynccontextmanager
    async def _http(self) -> AsyncIterator[None]:
        options, ports, webhooks = self._options, self._ports, self._webhooks
        monitoring = self._pages.monitoring()
        self._site.add_to(monitoring.router, self._pages.limit)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._tracer.close)
            await ports.open_http(stack, "--httpAddr", options.http, self._pages.readiness())
            await ports.open_http(stack, "--monitoringAddr", options.monitoring, monitoring)
            if webhooks is not None:
                await ports.open_http(stack, "--httpsAddr", options.https, webhooks.application(), webhooks.context())
            try:
                await ports.open_http(stack, "--ctrlz_port", options.introspection, controlz.application())
            except MizzenError as error:
                # Proxies do not suffer from its absence.
                _log.warning("levels of log scopes cannot be changed: %s", error)
            yield

    @contextlib.asynccontextmanager
    async def _grpc(self) -> AsyncIterator[None]:
        options, ports, certificate = self._options, self._ports, self._certificate
        ports.open_grpc(self._server, "--grpcAddr", options.plain)
        ports.open_grpc(self._server, "--secureGRPCAddr", options.secure, certificate.credentials(mutual=False))
        ports.open_grpc(self._server, "--mutualGRPCAddr", options.mutual, certificate.credentials(mutual=True))
        await self._server.start()
        try:
            yield
        finally:
            await self._server.stop(self.discovery.connections)


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _watch_lag() -> None:
    """Measure how late the loop is; ends only when cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_EVERY
        await asyncio.sleep(_LAG_EVERY)
        lag = max(0.0, loop.time() - due)
        _LAG.observe(lag)
        if lag > _LAG_REPORTED:
            _log.warning("the event loop was held for %.2f s", lag)


def _tell_build(clock: Callable[[], float] = time.monotonic) -> None:
    version, start = importlib.metadata.version("mizzen"), clock()
    _BUILD.labels("pilot", version).set(1)
    _INFO.labels(version).set(1)
    _UPTIME.set_function(lambda: clock() - start)


async def run(options: Options, config: settings.Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    _tell_build()
    async with contextlib.AsyncExitStack() as stack:
        opening = asyncio.ensure_future(keep_authority(options, config, stack))
        stopping = asyncio.Event()

        def stop() -> None:
            stopping.set()
            opening.cancel()

        _on_signals(stop)
        kept_authority: KeptAuthority | None = None
        try:
            kept_authority = await opening
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not stopping.is_set() or (task is not None and task.cancelling()):
                raise  # Not by a signal.
        if stopping.is_set():
            _log.info("stopped before there was a control plane")
            return
        control_plane = ControlPlane(options, config, kept_authority=kept_authority)
        _on_signals(control_plane.stop)
        await control_plane.run()


async def keep_authority(
    options: Options, config: settings.Settings, stack: contextlib.AsyncExitStack
) -> KeptAuthority | None:
    """The authority in Secrets of the cluster; None where files keep it."""
    if options.kubernetes is None or options.ca_dir:
        return None
    client = await stack.enter_async_context(Client(options.kubernetes))
    return await open_authority(client, options, config)


def _on_signals(stop: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
