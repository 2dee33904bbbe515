"""Starts, watches and restarts the processes of a mesh.

In: a `Command`, which says what to run, as whom and in which namespace. Out: a running `Process` whose end can be
awaited, or, with `Supervisor`, one that is started again whenever it ends, sooner at first and later each time.
What a process prints goes straight into its log file, so nobody has to keep reading. Every process carries the mesh's
folder in its environment, by which a later start finds what a killed one left (`runtime.sweep`).
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from mizzen.errors import LocalError, MizzenError
from mizzen.local.net import namespaces

MESH_VARIABLE = "MIZZEN_LOCAL_MESH"
"""Names, in the environment of every process of a mesh, the mesh's folder."""

LARGEST_LOG_BYTES = 64 * 1024 * 1024
FIRST_DELAY_SECONDS = 0.1
LONGEST_DELAY_SECONDS = 10.0
_HEALTHY_SECONDS = 10.0
_LAST_BYTES = 4096
_LONGEST_LINE = 300
_OWN_CHILDREN = 0x20000000
"""What `__WNOTHREAD` is to `waitid`: children of other threads are left out."""
_BIND_RESOLV_CONF = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """As whom a process runs; None keeps the user of the mesh, where only that one is mapped."""

    uid: int | None = None
    gid: int | None = None
    capabilities: tuple[str, ...] = ()
    """Rights kept in spite of an unprivileged user, such as `dac_read_search`."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One program with all that surrounds it."""

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    directory: Path
    log: Path
    identity: Identity = Identity()
    namespace: int | None = None
    """Descriptor of the network namespace; None is the mesh's own."""
    resolv_conf: Path | None = None
    """Replaces /etc/resolv.conf in a mount namespace of the process's own."""
    bound_to_parent: bool = False
    """Whether the kernel kills it when the mesh's process dies: where no process namespace does so."""


def build_argv(command: Command) -> tuple[str, ...]:
    """The command with the small tools in front that change file system and user, each replacing itself by the next."""
    argv = command.argv
    options = build_identity_options(command.identity)
    if command.bound_to_parent:
        options += ["--pdeathsig=KILL"]
    argv = ("setpriv", "--no-new-privs", *options, "--", *argv)
    if command.resolv_conf is not None:
        binding = ("sh", "-c", _BIND_RESOLV_CONF, "sh", str(command.resolv_conf))
        argv = ("unshare", "--mount", "--propagation=private", *binding, *argv)
    return argv


def build_identity_options(identity: Identity) -> list[str]:
    """The options of setpriv that make a process this user, with these rights and no other."""
    if identity.uid is None:
        return []
    options = [f"--reuid={identity.uid}", f"--regid={identity.gid}", "--clear-groups"]
    if identity.capabilities:
        listed = ",".join(f"+{name}" for name in identity.capabilities)
        options += [f"--inh-caps={listed}", f"--ambient-caps={listed}"]
    return options


class Process:
    """One started program; always awaited by whoever started it, or it stays as a zombie."""

    awaited: ClassVar[set[int]] = set()
    """The processes whose exit codes somebody will ask for."""

    def __init__(self, command: Command) -> None:
        self._log = command.log
        self._popen, self._log_start = _start(command)
        self.awaited.add(self._popen.pid)
        self._watch = os.pidfd_open(self._popen.pid)
        self.started = time.monotonic()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def host_pid(self) -> int:
        """The process's number as the host's /proc has it, which a process namespace does not change."""
        for line in Path(f"/proc/self/fdinfo/{self._watch}").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Pid":
                return int(value)
        return self.pid

    async def wait(self) -> int:
        """The exit code, once it has ended, and its group with it; minus the signal's number if one ended it."""
        if self._popen.returncode is None:
            loop = asyncio.get_running_loop()
            ended = asyncio.Event()
            watch = os.dup(self._watch)
            loop.add_reader(watch, ended.set)
            try:
                await ended.wait()
            finally:
                loop.remove_reader(watch)
                os.close(watch)
            self.kill_group()
        return self._popen.wait()

    def last_line(self) -> str:
        """What it printed last, and no line of an earlier process in the same log; shortened where it is long."""
        try:
            with self._log.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                own = self._log_start if self._log_start <= size else 0  # `trim_log` began it anew
                log.seek(max(own, size - _LAST_BYTES))
                lines = log.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip()[:_LONGEST_LINE] for line in reversed(lines) if line.strip()), "")

    def signal(self, number: int) -> None:
        """Signals the process alone; one that has ended is left in peace."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._watch, number)

    async def stop(self, grace: float) -> None:
        """Asks it to end, and kills it with all that it started when `grace` seconds are over."""
        self.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self.wait()
        self.kill_group()
        await self.wait()

    def kill_group(self) -> None:
        """Kills the process and its descendants that did not leave its session.

        Once its exit code has been taken, its number may be another's.
        """
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def close(self) -> None:
        """After its end has been awaited."""
        self.awaited.discard(self._popen.pid)
        os.close(self._watch)


def _start(command: Command) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and where in the log its own words begin."""
    argv = build_argv(command)
    log = open_log(command)
    try:
        begin = os.fstat(log).st_size
        with namespaces.inside(command.namespace):
            opened = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=command.directory,
                env=dict(command.environ),
                start_new_session=True,
            )
        return opened, begin
    except OSError as error:
        raise LocalError(f"cannot start {command.argv[0]}: {error.strerror}: {error.filename}") from error
    finally:
        os.close(log)


def open_log(command: Command) -> int:
    """The log, appended to; it belongs to the process's user, as Envoy opens /dev/stdout again by its name."""
    command.log.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(command.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    if command.identity.uid is not None:
        os.fchown(log, command.identity.uid, command.identity.gid if command.identity.gid is not None else -1)
    return log


def bury_orphans() -> None:
    """Takes the exit codes of ended processes that were left to this one, the first of its namespace, by others.

    Those are children of its first thread, which has to call this; what another thread started is its to wait for.
    """
    while os.getpid() == 1:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _OWN_CHILDREN)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in Process.awaited:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, os.WNOHANG)


def trim_log(path: Path, limit: int = LARGEST_LOG_BYTES) -> bool:
    """Sets a log aside that has grown too large, and begins it anew; writers go on at its start."""
    if path.stat().st_size <= limit:
        return False
    shutil.copyfile(path, path.with_suffix(".log.1"))
    os.truncate(path, 0)
    return True


class Supervisor:
    """Keeps one program running until it is stopped."""

    def __init__(
        self,
        command: Callable[[], Awaitable[Command]],
        changed: Callable[[], None],
        restarts: Callable[[int], bool] = lambda _code: True,
        ended: Callable[[str], None] = lambda _reason: None,
    ) -> None:
        """`restarts` decides by the exit code; `ended` hears why a life ended that will be followed by another."""
        self._command = command
        self._changed = changed
        self._restarts_after = restarts
        self._ended = ended
        self._ending = False
        self.process: Process | None = None
        self.restarts = 0
        self.failure = ""
        """Why it could not be started, or how it ended last."""

    async def run(self) -> None:
        """Ends only when cancelled, or when the exit code says that it need not run again; leaves no process."""
        delay = FIRST_DELAY_SECONDS
        while True:
            code, seconds = await self._run_once()
            if self._ending or (code is not None and not self._restarts_after(code)):
                return
            self._ended(self.failure)
            delay = FIRST_DELAY_SECONDS if seconds > _HEALTHY_SECONDS else delay
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY_SECONDS)
            self.restarts += 1

    async def _run_once(self) -> tuple[int | None, float]:
        """One life: its exit code, None if it never began, and how long it lasted."""
        try:
            process = Process(await self._command())
        except MizzenError as error:
            self.failure = f"cannot be started: {error}"
            self._changed()
            return None, 0.0
        self.process = process
        self._changed()
        try:
            code = await process.wait()
        finally:
            process.kill_group()
            await process.wait()
            process.close()
            self.process = None
        self.failure = describe_exit(code, process.last_line())
        self._changed()
        return code, time.monotonic() - process.started

    async def stop(self, grace: float) -> None:
        """Ends the present life in an orderly way, and with it `run`."""
        self._ending = True
        if self.process:
            await self.process.stop(grace)


def describe_exit(code: int, last_line: str = "") -> str:
    """An exit code in words; a program that ends by itself, and not well, has mostly said why in its last line."""
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"exited with code {code} ({last_line})" if code and last_line else f"exited with code {code}"
