"""Envoy's life: found, started, drained, stopped.

In: the bootstrap's path, the command line's options, and the orders to drain and to stop. Out: one Envoy process,
whose end is the agent's end too: whoever runs the agent starts both again together.

An order to stop first lets Envoy drain: its listeners turn new connections away and ask clients to close; after
the termination drain duration, or with `exit_on_zero_connections` when the last connection has gone, Envoy is asked
to end, and killed if it does not.
"""

import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from mizzen import observe
from mizzen.agent import launch
from mizzen.agent.admin import Admin
from mizzen.errors import AgentError

_MOST_FAILED_LOOKS = 4

_log = observe.scope("supervisor")


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """How Envoy is called."""

    binary: Path
    bootstrap: Path
    drain_seconds: int = 45
    parent_shutdown_seconds: int = 60
    ipv6: bool = False
    log_level: str = "warning"
    component_log_level: str = "misc:error"
    concurrency: int | None = None
    """Worker threads; None means one for each core."""
    override: Path | None = None
    """A file that is merged over the bootstrap."""

    def arguments(self) -> list[str]:
        """The whole command line."""
        options = [
            *("-c", str(self.bootstrap)),
            *("--drain-time-s", str(self.drain_seconds)),
            *("--drain-strategy", "immediate"),
            *("--parent-shutdown-time-s", str(self.parent_shutdown_seconds)),
            *("--local-address-ip-version", "v6" if self.ipv6 else "v4"),
            *("--file-flush-interval-msec", "1000"),
            "--disable-hot-restart",
            "--allow-unknown-static-fields",
            *("-l", self.log_level),
        ]
        if self.component_log_level:
            options += ["--component-log-level", self.component_log_level]
        if self.override is not None:
            options += ["--config-yaml", self.override.read_text(encoding="utf-8")]
        if self.concurrency is not None:
            options += ["--concurrency", str(self.concurrency)]
        return [str(self.binary), *options]


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How Envoy is let go."""

    inbound_only: bool
    """Whether only listeners for inbound traffic drain: a sidecar's application may still call out."""
    drain_seconds: float = 5.0
    on_zero_connections: bool = False
    minimum_seconds: float = 5.0
    """Before the first look at open connections."""
    look_seconds: float = 1.0
    """Between two looks at open connections."""
    end_seconds: float = 5.0
    """That Envoy has to end before it is killed."""


class Supervisor:
    """One Envoy process."""

    def __init__(self, command: Command, ending: Ending, admin: Admin) -> None:
        self._command = command
        self._ending = ending
        self._admin = admin
        self._drained = False
        self._ended = False
        self._process: asyncio.subprocess.Process | None = None

    async def run(self, *, environ: Mapping[str, str], uid: int | None, gid: int | None) -> int:
        """Start Envoy and wait for its end; the result is its exit status, negative for a signal."""
        arguments = self._command.arguments()
        _log.info("starting %s", " ".join(arguments))
        if uid is not None:
            _give_output_to(uid)
        prefix = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        prefix += ["-" if number is None else str(number) for number in (uid, gid)]
        try:
            process = await asyncio.create_subprocess_exec(
                *prefix, *arguments, env=dict(environ), stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
        except OSError as failed:
            raise AgentError(f"cannot start Envoy: {failed}") from failed
        self._process = process
        try:
            if self._ended:
                await self.end()
            return await process.wait()
        finally:
            await self.end()

    async def drain(self, *, skip_exit: bool = False) -> bool:
        """Let connections end, and say whether Envoy does; without `skip_exit` this is the beginning of the end."""
        try:
            await self._admin.drain(inbound_only=self._ending.inbound_only, skip_exit=skip_exit)
        except AgentError as failed:
            _log.warning("draining: %s", failed)
            return False
        self._drained = True
        return True

    async def stop(self) -> None:
        """Drain, wait for connections as long as it is set, and let Envoy end."""
        if not self._drained and await self.drain():
            await self._wait_for_connections()
        await self.end()

    async def end(self) -> None:
        """Let Envoy end now, in whatever way it takes."""
        self._ended = True
        process = self._process
        for order in (signal.SIGTERM, signal.SIGKILL):
            if process is None or process.returncode is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(order)
            # `wait_for` of Python 3.11 loses a cancellation that meets the end of the process.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._ending.end_seconds):
                    await process.wait()

    async def _wait_for_connections(self) -> None:
        if not self._ending.on_zero_connections:
            await asyncio.sleep(self._ending.drain_seconds)
            return
        await asyncio.sleep(self._ending.minimum_seconds)
        failures = 0
        while failures <= _MOST_FAILED_LOOKS:
            try:
                active = await self._admin.active_connections()
            except AgentError as failed:
                failures += 1
                _log.warning("active connections: %s", failed)
            else:
                failures = 0
                if not active:
                    return
                _log.info("%d connections are still open", active)
            await asyncio.sleep(self._ending.look_seconds)


def choose_concurrency(explicit: int | None, configured: int | None, cpu_limit: str) -> int | None:
    """Worker threads: as told, as ProxyConfig says, or the CPU limit; None, or 0 in ProxyConfig, means all cores."""
    if explicit is not None:
        return explicit or None
    if configured is not None:
        return configured or None
    try:
        return int(cpu_limit) or None
    except ValueError:
        return None


def _give_output_to(uid: int) -> None:
    """Let Envoy's user open `/dev/stdout` and `/dev/stderr` again, as access logs do: pipes and files allow it to
    their owner only."""
    for stream in (1, 2):
        with contextlib.suppress(OSError):
            mode = os.fstat(stream).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISREG(mode):
                os.fchown(stream, uid, -1)
