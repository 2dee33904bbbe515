"""The process that the user starts: checks the machine, starts the mesh's own process, and stays at its side.

In: what the user asked for. Out: an exit code, when the mesh has ended. Everything that can fail because of the machine
fails here, before anything runs: tools, rights, manifests, Envoy, a mesh of the same name. Meanwhile it hands out
sockets of the host; Ctrl-C or SIGTERM closes the pair, which tells the mesh to end; a second one does not wait. Should
it be killed, the kernel ends the mesh with it.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from mizzen.errors import LocalError
from mizzen.local import isolation as ways
from mizzen.local import runtime
from mizzen.local.isolation import Isolation
from mizzen.local.net import broker
from mizzen.local.options import EXPLAINED, Options, PortRequest
from mizzen.local.processes import describe_exit
from mizzen.local.runtime import Layout

_DETACH_SECONDS = 120.0
_SAME_WISH_SECONDS = 0.5
_FATAL = (signal.SIGTERM, signal.SIGINT)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of `mizzen up`."""

    manifests: tuple[str, ...]
    name: str = ""
    """Empty means the first directory's name."""
    capture: bool = True
    ports: tuple[PortRequest, ...] = ()


def launch(request: Request, environ: Mapping[str, str], *, terminal: bool) -> int:
    """Runs a mesh until it is told to end; returns the exit code."""
    started = time.monotonic()
    require_readable(request.manifests)
    uid = os.getuid()
    isolation = ways.choose(capture=request.capture, uid=uid, environ=environ)
    layout = runtime.lay_out(runtime.find_base(uid, environ), request.name or default_name(request.manifests))
    held = runtime.lock(layout)
    try:
        sweep(layout, isolation)
        options = Options(
            name=layout.name,
            root=str(layout.root),
            manifests=tuple(str(Path(path).resolve()) for path in request.manifests),
            isolation=str(isolation),
            ports=request.ports,
            outer=os.getpid(),
            terminal=terminal,
            started=started,
        )
        return _accompany(options, isolation, environ)
    finally:
        sweep(layout, isolation)
        with contextlib.suppress(OSError):
            layout.root.rmdir()
        os.close(held)


def require_readable(paths: tuple[str, ...]) -> None:
    """Manifests that cannot be read at all are fatal before anything starts."""
    for path in paths:
        if not os.path.exists(path):
            raise LocalError(f"{path} does not exist: name a directory of manifests, such as samples/shop")
        if not os.access(path, os.R_OK):
            raise LocalError(f"{path} may not be read by this user")


def default_name(manifests: tuple[str, ...]) -> str:
    path = Path(manifests[0]).resolve()
    return path.name if path.is_dir() else path.stem


def sweep(layout: Layout, isolation: Isolation) -> None:
    """Takes away what an earlier life left: processes first, then files, some of which may belong to mapped users."""
    runtime.sweep_processes(layout)
    if isolation is Isolation.MAPPED:
        find = ("find", str(layout.root), "-mindepth", "1", "-delete")
        subprocess.run((*ways.build_prefix(isolation), *find), check=False, capture_output=True, timeout=60)
        return
    for entry in layout.root.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _accompany(options: Options, isolation: Isolation, environ: Mapping[str, str]) -> int:
    """Starts the mesh's process and waits for its end."""
    outer, inner = broker.make_pair()
    command = (sys.executable, "-m", "mizzen.local.mesh", msgspec.json.encode(options).decode(), str(inner.fileno()))
    with outer, _until_told(outer) as kill:
        try:
            child = subprocess.Popen(
                (*ways.build_prefix(isolation), *command),
                stdin=subprocess.DEVNULL,
                pass_fds=(inner.fileno(),),
                start_new_session=True,
                env={**environ, "XTABLES_LOCKFILE": f"{options.root}/xtables.lock"},
            )
        except OSError as error:
            raise LocalError(f"cannot start the mesh: {error.strerror}: {error.filename}") from error
        finally:
            inner.close()
        kill.append(child)
        threading.Thread(target=broker.serve, args=(outer,), name="broker", daemon=True).start()
        code = child.wait()
    if code not in (0, EXPLAINED):
        sys.stderr.write(f"Error: the mesh's process {describe_exit(code)}; all that it ran is gone\n")
    return 0 if code == 0 else 1


@contextlib.contextmanager
def _until_told(pair: socket.socket) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Meanwhile the first signal asks the mesh to end, and a later one ends it.

    One wish may come as several signals at once, to the process and to its group.
    """
    children: list[subprocess.Popen[bytes]] = []
    told = 0.0

    def stop(*_: object) -> None:
        nonlocal told
        now = time.monotonic()
        if told and now - told > _SAME_WISH_SECONDS:
            for child in children:
                child.kill()
        told = told or now
        with contextlib.suppress(OSError):
            pair.shutdown(socket.SHUT_RDWR)

    before = {number: signal.signal(number, stop) for number in _FATAL}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def detach(arguments: list[str], layout: Layout, environ: Mapping[str, str]) -> runtime.State:
    """Runs `mizzen up` in the background and waits until its mesh is ready; `LocalError` with its last words if not."""
    log = detached_log(layout)
    log.parent.mkdir(parents=True, exist_ok=True)
    if layout.root.exists():
        os.close(runtime.lock(layout))  # Refuses a second mesh of this name before the first one's log is replaced.
    log.unlink(missing_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            (sys.executable, "-m", "mizzen", "up", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=dict(environ),
        )
    end = time.monotonic() + _DETACH_SECONDS
    while child.poll() is None and time.monotonic() < end:
        with contextlib.suppress(LocalError):
            state = runtime.read_state(layout)
            if state.ready and state.pid == child.pid:
                return state
        time.sleep(0.1)
    words = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
    if child.poll() is None:
        raise LocalError(f"the mesh is not ready after {_DETACH_SECONDS:g} s and goes on trying; see {log}: {words[0]}")
    _drop_told(log)
    raise LocalError(words[0].removeprefix("Error: "))


def _drop_told(log: Path) -> None:
    """The log of a start that failed stays only if it says more than the one line that the user is told."""
    with contextlib.suppress(OSError):
        if len(log.read_bytes().splitlines()) <= 1:
            log.unlink()


def detached_log(layout: Layout) -> Path:
    """Where a detached `mizzen up` writes; beside the folder, which is swept when a mesh starts."""
    return layout.root.with_name(f"{layout.name}.log")


def stop(layout: Layout, seconds: float = 30.0) -> None:
    """Ends a mesh of this user, running or dead, and waits until nothing of it is left."""
    end = time.monotonic() + seconds
    if runtime.is_locked(layout):
        os.kill(runtime.read_state(layout).pid, signal.SIGTERM)
        while layout.root.exists() and runtime.is_locked(layout):
            if time.monotonic() > end:
                raise LocalError(f"the mesh {layout.name} does not end within {seconds:g} s")
            time.sleep(0.05)
    detached_log(layout).unlink(missing_ok=True)
    if layout.root.exists():
        held = runtime.lock(layout)
        sweep(layout, _isolation_of(layout))
        with contextlib.suppress(OSError):
            layout.root.rmdir()
        os.close(held)


def _isolation_of(layout: Layout) -> Isolation:
    """How a dead mesh ran, as far as it matters for its files."""
    try:
        return Isolation(runtime.read_state(layout).isolation)
    except (LocalError, ValueError):
        return Isolation.ROOT
