"""A local mesh for tests: started by the real command, watched through its state file, loaded with requests.

`LocalMesh` runs `mizzen up` on a directory of manifests and waits until it is ready. `Traffic` sends requests from
threads until it is told to stop and keeps every outcome with its moment, so that a test can say "none failed while…".
Nothing here reaches around the product: pods are asked through `mizzen.local.observer`, as the demo does.
"""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import whole_files
from eventually import eventually_blocking

from mizzen.errors import MizzenError
from mizzen.local import observer, runtime
from mizzen.local.processes import MESH_VARIABLE

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOP = ROOT / "samples" / "shop"
MIZZEN = (sys.executable, "-m", "mizzen")
READY_SECONDS = 90.0
_ANSWER_SECONDS = 60.0


class LocalMesh:
    """One mesh of its own name and directory of manifests."""

    def __init__(
        self,
        manifests: pathlib.Path,
        name: str,
        *arguments: str,
        user: "PlainUser | None" = None,
    ) -> None:
        self.manifests = manifests
        self.name = name
        self.environ = dict(user.environ if user else os.environ)
        self.layout = runtime.Layout(runtime.find_base(user.uid if user else os.getuid(), self.environ) / name)
        self.output = manifests.parent / f"{name}.out"
        self._mizzen = (*user.prefix, user.python, "-m", "mizzen") if user else MIZZEN
        self._arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "LocalMesh":
        """Starts it without waiting."""
        command = (*self._mizzen, "up", str(self.manifests), "--name", self.name, *self._arguments)
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=self.environ, cwd="/", start_new_session=True
            )
        return self

    def wait_ready(self, seconds: float = READY_SECONDS) -> "LocalMesh":
        eventually_blocking(lambda: self._has_ended() or self.is_ready(), seconds)
        assert not self._has_ended(), self.text
        return self

    def wait_served(self) -> "LocalMesh":
        """Until what is published first answers: being ready does not wait for proxies to have all endpoints."""
        eventually_blocking(lambda: get(self.gateway()).status == 200)
        return self

    def _has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def is_ready(self) -> bool:
        with contextlib.suppress(MizzenError):
            state = self.state
            # Tools in front of the command become it, so its number stays the one that was started.
            return state.ready and self.process is not None and state.pid == self.process.pid
        return False

    @property
    def state(self) -> runtime.State:
        return runtime.read_state(self.layout)

    @property
    def text(self) -> str:
        """What it printed."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def pod(self, reference: str) -> runtime.Pod:
        """The pod of that name; else the only one whose name begins so, wherever it is."""
        state = self.state
        begun = [pod for pod in state.pods if f"{pod.name}.{pod.namespace}".startswith(reference)]
        exact = any(pod.name == reference for pod in begun)
        return begun[0] if len(begun) == 1 and not exact else runtime.find_pod(state, reference)

    def pods(self, prefix: str = "") -> list[runtime.Pod]:
        return [pod for pod in self.state.pods if pod.name.startswith(prefix)]

    def proxies(self) -> list[runtime.Pod]:
        return [pod for pod in self.state.pods if pod.sidecar]

    def published(self, service: str, port: int) -> list[str]:
        """host:port of what leads to a Service's port; empty while nothing does."""
        return [one.address for one in self.state.published if (one.service, one.port) == (service, port)]

    def gateway(self) -> str:
        """host:port of the first thing that is published."""
        return self.state.published[0].address

    def run(self, *arguments: str, check: bool = True, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Another `mizzen` command, as the user of the mesh."""
        done = subprocess.run(
            (*self._mizzen, *arguments), capture_output=True, text=True, env=self.environ, timeout=seconds, check=False
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def in_pod(self, reference: str, *command: str, container: str = "") -> subprocess.CompletedProcess[str]:
        return observer.run_in_pod(self.state, self.pod(reference), command, self.environ, container)

    def edit(self, file: str, before: str, after: str) -> None:
        """Replaces text in a manifest, the file as a whole, as editors do."""
        path = self.manifests / file
        text = path.read_text()
        assert before in text, f"{file} does not hold {before!r}"
        whole_files.put(path, text.replace(before, after))

    def kill(self) -> None:
        """kill -9 of the process that the user started."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 90.0) -> int:
        """Asks it to end and returns its exit code; what its pods printed stays beside its own output."""
        if self.process is None:
            return 0
        with contextlib.suppress(OSError):
            shutil.copytree(self.layout.logs, self.output.with_suffix(".logs"), dirs_exist_ok=True)
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def processes(self) -> list[int]:
        """Every process that belongs to this mesh, by the mark in its environment."""
        marker = f"{MESH_VARIABLE}={self.layout.root}".encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and marker in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


class PlainUser(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who is not root, and an interpreter that they may use."""

    uid: int
    python: str
    environ: Mapping[str, str]
    prefix: tuple[str, ...]
    """What becomes this user."""


@contextlib.contextmanager
def running(mesh: LocalMesh) -> Iterator[LocalMesh]:
    """A mesh that is ready inside the block and gone after it."""
    try:
        yield mesh.start().wait_ready()
    finally:
        mesh.stop()


def copy_shop(target: pathlib.Path, *without: str) -> pathlib.Path:
    """The sample's manifests, to be edited; some files may be left out."""
    return pathlib.Path(shutil.copytree(SHOP, target / "shop", ignore=shutil.ignore_patterns("__pycache__", *without)))


class Outcome(msgspec.Struct, frozen=True):
    """One request."""

    sent: float
    done: float
    status: int
    body: Any


class Traffic:
    """Requests without end from several threads, each with a connection of its own."""

    def __init__(
        self,
        address: str,
        path: str = "/",
        headers: Mapping[str, str] | None = None,
        *,
        workers: int = 3,
        pause: float = 0.01,
    ) -> None:
        self._address = address
        self._path = path
        self._headers = dict(headers or {})
        self._workers = workers
        self._pause = pause
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.outcomes: list[Outcome] = []

    def __enter__(self) -> "Traffic":
        self._threads = [threading.Thread(target=self._send_all, daemon=True) for _ in range(self._workers)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(_ANSWER_SECONDS)

    def _send_all(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=_ANSWER_SECONDS)
        while not self._over.is_set():
            self.outcomes.append(request(connection, self._path, self._headers))
            self._over.wait(self._pause)
        connection.close()

    @property
    def failures(self) -> list[str]:
        return [f"{item.status} {str(item.body)[:200]}" for item in tuple(self.outcomes) if item.status != 200]

    def wait_for(self, count: int, seconds: float = 60.0) -> None:
        """Until so many more requests have been answered."""
        wanted = len(self.outcomes) + count
        eventually_blocking(lambda: len(self.outcomes) >= wanted, seconds)


def request(connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str] | None = None) -> Outcome:
    """One GET; status 0 where no answer came."""
    sent = time.monotonic()
    try:
        connection.request("GET", path, headers=dict(headers or {}))
        response = connection.getresponse()
        status, content = response.status, response.read()
    except (OSError, http.client.HTTPException) as failed:
        connection.close()
        return Outcome(sent, time.monotonic(), 0, f"{type(failed).__name__}: {failed}")
    try:
        body = json.loads(content)
    except ValueError:
        body = content.decode(errors="replace")
    return Outcome(sent, time.monotonic(), status, body)


def get(address: str, path: str = "/", headers: Mapping[str, str] | None = None) -> Outcome:
    """One GET on a connection of its own."""
    connection = http.client.HTTPConnection(address, timeout=_ANSWER_SECONDS)
    try:
        return request(connection, path, headers)
    finally:
        connection.close()


def first_moment(outcomes: list[Outcome], holds: Callable[[Outcome], bool]) -> float | None:
    """When the first request was sent whose outcome is such."""
    return min((item.sent for item in outcomes if holds(item)), default=None)
