"""The agent's composition root: makes every part from the options, and runs them until Envoy has ended.

In: `Options`. Out: an exit status. The order matters once: sockets and ports are there before Envoy looks for them.
A part that fails ends all others; so does Envoy's own end. The first order to stop lets Envoy drain, the second does
not wait any longer.
"""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import aiohttp

from mizzen import observe
from mizzen.agent import files, supervisor
from mizzen.agent.admin import Admin
from mizzen.agent.binaries import find_envoy
from mizzen.agent.bootstrap import document, node
from mizzen.agent.dns import proxy as dns_proxy
from mizzen.agent.dns import resolvers
from mizzen.agent.identity import certificates, sds
from mizzen.agent.options import Options
from mizzen.agent.relay import server as relay
from mizzen.agent.relay.exchange import Tap
from mizzen.agent.relay.journal import Journal
from mizzen.agent.status.probes import Prober, parse_probes
from mizzen.agent.status.readiness import Application, Watcher, parse_readiness_probe
from mizzen.agent.status.scrape import Scraper, parse_targets
from mizzen.agent.status.server import Orders, Ready, Status, run_status
from mizzen.agent.wasm import rewriting
from mizzen.agent.wasm.downloads import Downloads
from mizzen.agent.wasm.modules import Modules
from mizzen.errors import AgentError, MizzenError
from mizzen.protos import TYPE_PREFIX

NAME_TABLE = TYPE_PREFIX + "istio.networking.nds.v1.NameTable"

_SDS_SOCKET = Path(document.SDS_SOCKET)
_WASM_FOLDER = Path("./var/lib/istio/data")
_RESOLVER_FILES = (Path("./var/lib/istio/resolv.conf"), Path("/etc/resolv.conf"))
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_log = observe.scope("agent")

Part = Callable[[asyncio.Event], Awaitable[None]]


class Agent:
    """All parts of one agent."""

    def __init__(self, options: Options, session: aiohttp.ClientSession, outside: aiohttp.ClientSession) -> None:
        """`session` is for what is in the pod, `outside` for what is not."""
        self._options = options
        self._rewriter = self._make_rewriter(outside)
        self._secrets = sds.Secrets()
        self._admin = Admin(session, options.loopback, options.config.proxy_admin_port)
        self._dns = self._make_dns()
        self._supervisor = supervisor.Supervisor(self._make_command(), self._make_ending(), self._admin)
        self._ready = Ready(self._admin, self._dns_is_ready)
        self._status = Status(
            self._ready,
            self._make_scraper(session),
            self._make_prober(),
            Orders(self._drain, self._quit),
        )
        self._ordered_to_stop = False
        self._orders: asyncio.Queue[bool] = asyncio.Queue()

    async def run(self) -> None:
        """Run until Envoy ends; raises AgentError if nobody told it to."""
        if not self._options.agent.delta:
            _log.warning("ISTIO_DELTA_XDS=false has no effect: Envoy speaks delta ADS")
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._orders.put_nowait, True)
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [await self._start(tasks, name, part) for name, part in self._parts().items()]
                running.append(tasks.create_task(self._obey(), name="orders"))
                self._write_bootstrap()
                code = await self._supervisor.run(
                    environ=self._envoy_environment(), uid=self._options.proxy_uid, gid=self._options.proxy_uid
                )
                for task in running:
                    task.cancel()
        finally:
            for number in _STOP_SIGNALS:
                loop.remove_signal_handler(number)
        if not self._ordered_to_stop:
            raise AgentError(f"Envoy ended by itself, {_describe_status(code)}")

    @staticmethod
    async def _start(tasks: asyncio.TaskGroup, name: str, part: Part) -> asyncio.Task[None]:
        """Run a part, and wait until it can be used."""
        ready = asyncio.Event()

        async def run() -> None:
            await part(ready)

        task = tasks.create_task(run(), name=name)
        await ready.wait()
        return task

    def _parts(self) -> Mapping[str, Part]:
        options = self._options
        uid = options.proxy_uid
        server = sds.Server(self._secrets)
        issued = self._make_certificates()
        relays = self._make_relay(Tap(type_url=certificates.TRUST_BUNDLE, deliver=issued.take_pushed))

        parts: dict[str, Part] = {
            "sds": lambda ready: server.run(_SDS_SOCKET, uid=uid, ready=ready),
            "certificates": lambda ready: _run_at_once(issued.run(), ready),
            "relay": lambda ready: relays.run(options.xds_socket, uid=uid, ready=ready),
            "status": self._run_status,
            "wasm": self._keep_modules,
        }
        watcher = self._make_watcher(relays)
        if watcher is not None:
            parts["health"] = lambda ready: _run_at_once(watcher.run(), ready)
        if self._dns is not None:
            proxy = self._dns
            parts["dns"] = lambda ready: dns_proxy.serve_dns(
                proxy, options.agent.dns_address, ready=ready, mark=options.socket_mark
            )
        return parts

    async def _run_status(self, ready: asyncio.Event) -> None:
        host = self._options.bind_address or ("::" if self._options.pod.ipv6_only else "0.0.0.0")
        await run_status(self._status.application(), host=host, port=self._options.config.status_port, ready=ready)

    async def _keep_modules(self, ready: asyncio.Event) -> None:
        ready.set()
        await self._rewriter.keep_house(self._options.agent.wasm_purge_interval)

    def _make_rewriter(self, session: aiohttp.ClientSession) -> rewriting.Rewriter:
        settings = self._options.agent
        downloads = Downloads(
            session,
            insecure=settings.wasm_insecure_servers,
            seconds=settings.wasm_timeout,
            retries=settings.wasm_retries,
        )
        return rewriting.Rewriter(Modules(_WASM_FOLDER, downloads, expiry=settings.wasm_expiry))

    def _make_certificates(self) -> certificates.Certificates:
        options = self._options
        output = options.agent.output_certificates
        return certificates.Certificates(
            spiffe_id=options.spiffe_id,
            ask=certificates.ask_authority(options.authority, options.agent.certificate_ttl),
            options=options.agent,
            places=certificates.Places(
                kept=options.identity_folder,
                output=Path(output) if output else None,
                mounted=options.mounted_certificate,
            ),
            secrets=self._secrets,
            further_roots=tuple(pem.encode() for pem in options.config.ca_certificates_pem),
        )

    def _make_relay(self, *taps: Tap) -> relay.Relay:
        options = self._options
        journal = Journal(options.folder / "last-good", options.pod.node_id)
        if self._dns is not None:
            taps += (Tap(type_url=NAME_TABLE, deliver=self._dns.update),)
        rewrites = {rewriting.EXTENSION: self._rewriter.rewrite}
        return relay.Relay(options.discovery, journal, taps=taps, rewrites=rewrites)

    def _make_dns(self) -> dns_proxy.Proxy | None:
        options = self._options
        if not options.captures_dns:
            return None
        config = resolvers.read_resolver_config(_RESOLVER_FILES)
        host, _, port = options.agent.dns_address.rpartition(":")
        own = {host, "127.0.0.1", "::1"} if port == "53" else set()
        servers = [server for server in config.servers if server not in own]
        asking = resolvers.Resolvers(servers, parallel=options.agent.dns_forward_parallel, mark=options.socket_mark)
        early = port == "53" and os.geteuid() == 0
        return dns_proxy.Proxy(asking, domain=options.pod.domain, search=config.search, forward_early=early)

    def _dns_is_ready(self) -> bool:
        return self._dns is None or self._dns.has_names

    def _make_scraper(self, session: aiohttp.ClientSession) -> Scraper:
        host = _bracketed(self._options.loopback)
        return Scraper(
            session,
            envoy=f"http://{host}:{self._options.config.proxy_admin_port}/stats/prometheus",
            host=host,
            targets=parse_targets(self._options.environ.get("ISTIO_PROMETHEUS_ANNOTATIONS", "")),
        )

    def _make_prober(self) -> Prober:
        probes = parse_probes(self._options.environ.get("ISTIO_KUBE_APP_PROBERS", ""))
        return Prober(probes, address=self._options.probed_address)

    def _make_watcher(self, relays: relay.Relay) -> Watcher | None:
        """Who probes the workload, where the control plane is to be told of its health."""
        options = self._options
        probe = parse_readiness_probe(options.config.raw)
        if probe is None:
            return None
        application = Application(probe, address=options.probed_address, environ=options.environ)
        return Watcher(probe, (application.check, self._ready.obstacle), relays.say_health)

    def _make_command(self) -> supervisor.Command:
        options = self._options
        flags, config = options.flags, options.config
        override = options.environ.get("ISTIO_BOOTSTRAP_OVERRIDE", "")
        return supervisor.Command(
            binary=find_envoy(flags.envoy_path or options.environ.get("ENVOY_PATH", ""), config.binary_path),
            bootstrap=options.folder / "envoy-rev.json",
            drain_seconds=round(config.drain_seconds),
            ipv6=options.pod.ipv6_only,
            log_level=flags.log_level,
            component_log_level=flags.component_log_level,
            concurrency=supervisor.choose_concurrency(
                flags.concurrency, config.concurrency, options.environ.get("ISTIO_CPU_LIMIT", "")
            ),
            override=Path(override) if override else None,
        )

    def _make_ending(self) -> supervisor.Ending:
        options = self._options
        return supervisor.Ending(
            inbound_only=options.pod.kind == "sidecar",
            drain_seconds=options.config.termination_drain_seconds,
            on_zero_connections=options.agent.exit_on_zero_connections,
            minimum_seconds=options.agent.drain_duration,
        )

    def _write_bootstrap(self) -> None:
        options = self._options
        facts = document.Facts(
            xds_socket=str(options.xds_socket),
            ipv6=options.pod.ipv6_only,
            bind_address=options.bind_address,
            annotations=options.pod.annotations,
            outlier_log=options.metadata.get("OUTLIER_LOG_PATH", ""),
            log_as_json=options.flags.log_as_json,
            count_connections=options.agent.exit_on_zero_connections,
            socket_mark=options.socket_mark,
        )
        identity = node.build_node(options.pod, options.metadata, options.config)
        content = json.dumps(document.build_bootstrap(identity, options.config, facts), indent=1).encode()
        files.write_file(options.folder / "envoy-rev.json", content, mode=0o644)

    def _envoy_environment(self) -> dict[str, str]:
        return {**self._options.environ, **node.build_identity_variables(self._options.pod, self._options.metadata)}

    async def _obey(self) -> None:
        """Let Envoy drain and end at the first order, end it at once at a second or at a hard one."""
        gentle = await self._orders.get()
        self._ordered_to_stop = True
        _log.info("stopping")
        async with asyncio.TaskGroup() as tasks:
            if gentle:
                stopping = tasks.create_task(self._supervisor.stop())
                waiting = tasks.create_task(self._orders.get())
                await asyncio.wait((stopping, waiting), return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()
                waiting.cancel()
            await self._supervisor.end()

    async def _drain(self) -> None:
        await self._supervisor.drain(skip_exit=True)

    def _quit(self) -> None:
        self._orders.put_nowait(False)


async def _run_at_once(work: Awaitable[None], ready: asyncio.Event) -> None:
    """A part that nobody has to wait for."""
    ready.set()
    await work


def _describe_status(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _make_connector(mark: int) -> aiohttp.TCPConnector:
    """For connections that leave the pod; marked, where the capture rules know the proxy's own ones by that."""

    def open_socket(address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        return opened

    return aiohttp.TCPConnector(force_close=True, socket_factory=open_socket if mark else None)


async def run_agent(options: Options) -> None:
    """Run one agent; the first expected failure among its parts is raised as itself."""
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
        aiohttp.ClientSession(connector=_make_connector(options.socket_mark)) as outside,
    ):
        try:
            await Agent(options, session, outside).run()
        except BaseExceptionGroup as several:
            expected = several.subgroup(MizzenError)
            if expected is None:
                raise
            first: BaseException = expected
            while isinstance(first, BaseExceptionGroup):
                first = first.exceptions[0]
            raise first from several
