"""Where a mesh keeps its files, what it says about itself there, and how the remains of a killed one are swept.

Each mesh has one folder: `/run/mizzen/NAME` for root, `$XDG_RUNTIME_DIR/mizzen/NAME` or `/tmp/mizzen-UID/NAME` for
others. Whoever holds the lock on it is the mesh. `state.json` tells the command line which processes run, where they
are reached and where they log; it is replaced as a whole. Sweeping goes by the folder's name in the environment of
every process that a mesh starts, so it finds also those that nobody wrote down.
"""

import contextlib
import fcntl
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from mizzen.errors import LocalError, UsageError
from mizzen.local.processes import MESH_VARIABLE

_SWEEP_SECONDS = 10.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container of a pod; `pid` 0 means that it is not running now."""

    name: str
    pid: int = 0
    uid: int | None = None
    gid: int | None = None
    capabilities: tuple[str, ...] = ()
    ready: bool = False
    restarts: int = 0
    message: str = ""
    """Why it does not run, or how it ended last."""


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of the running mesh."""

    name: str
    namespace: str
    address: str
    ready: bool
    sidecar: bool
    revision: str
    directory: str
    admin: str = ""
    """Unix socket that leads to Envoy's admin interface in the pod; empty without a sidecar."""
    containers: tuple[Container, ...] = ()
    message: str = ""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A port of a Service that the host can reach."""

    service: str
    namespace: str
    port: int
    address: str
    """host:port on this machine."""


class ControlPlane(msgspec.Struct, frozen=True, kw_only=True):
    """The control plane's process and how it is reached from the host."""

    pid: int = 0
    ready: bool = False
    restarts: int = 0
    plain: str = ""
    """host:port of the plain discovery server."""
    secure: str = ""
    """host:port of the discovery server that wants TLS and a token."""
    monitoring: str = ""
    """host:port of metrics and debug pages."""
    introspection: str = ""
    """host:port of the levels of its log scopes."""
    token: str = ""
    """File with a token for the command line; readable by the mesh's user only."""
    root: str = ""
    """File with the mesh's root certificate."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a running mesh says about itself."""

    mesh: str
    isolation: str
    pid: int
    """The process that the user started."""
    inner: int
    """The process that supervises; the hub's network namespace is its own."""
    manifests: tuple[str, ...] = ()
    ready: bool = False
    control_plane: ControlPlane = ControlPlane()
    published: tuple[Published, ...] = ()
    pods: tuple[Pod, ...] = ()


class Layout(msgspec.Struct, frozen=True):
    """The paths of one mesh."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def config(self) -> Path:
        """Generated objects, the control plane's second source."""
        return self.root / "config"

    @property
    def control(self) -> Path:
        """The control plane's own files: authority, keys, token; closed to others."""
        return self.root / "control"

    @property
    def resolv(self) -> Path:
        return self.root / "resolv"

    @property
    def pods(self) -> Path:
        return self.root / "pods"

    def pod(self, namespace: str, name: str) -> Path:
        """The folder that stands in for the pod's file system."""
        return self.pods / f"{name}.{namespace}"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def log(self, namespace: str, pod: str, container: str) -> Path:
        return self.logs / f"{pod}.{namespace}" / f"{container}.log"

    @property
    def control_log(self) -> Path:
        return self.logs / "control-plane.log"

    def create(self) -> None:
        """Makes the folders of a mesh that starts."""
        for directory in (self.root, self.config, self.pods, self.logs, self.resolv):
            directory.mkdir(parents=True, exist_ok=True)
        self.control.mkdir(mode=0o700, exist_ok=True)


def find_base(uid: int, environ: Mapping[str, str]) -> Path:
    """The folder that holds the folders of this user's meshes."""
    if uid == 0:
        return Path("/run/mizzen")
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "mizzen"
    return Path(f"/tmp/mizzen-{uid}")


def lay_out(base: Path, name: str) -> Layout:
    """The paths of a mesh that is to start; its folder is swept, so a name must not lead anywhere else."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a mesh: choose one of at most 63 letters, digits, '.', '_' and '-' that"
            " begins with a letter or digit, with --name"
        )
    return Layout(base / name)


def list_meshes(base: Path) -> tuple[Layout, ...]:
    """The meshes that run, or died without sweeping."""
    if not base.is_dir():
        return ()
    return tuple(Layout(path) for path in sorted(base.iterdir()) if path.is_dir())


def select_mesh(base: Path, name: str | None) -> Layout:
    """The mesh of that name, or the only one that runs."""
    meshes = list_meshes(base)
    if name is not None:
        chosen = _named(meshes, name, "start one with `mizzen up DIR`")
        _require_running(chosen)
        return chosen
    running = [mesh for mesh in meshes if is_locked(mesh)]
    if not running:
        for dead in meshes:
            _require_running(dead)
        raise LocalError("no mesh is running; start one with `mizzen up DIR`")
    return _only(running, "running", "with --mesh")


def select_remains(
    base: Path, name: str | None, choice: str = "by `mizzen down MESH`, or all of them by --all"
) -> Layout:
    """The mesh of that name, or the only one, whether it runs or was killed; `choice` tells how to name one."""
    meshes = list_meshes(base)
    if name is not None:
        return _named(meshes, name, "nothing is left to take down")
    if not meshes:
        raise LocalError("no mesh is running, and none has left anything")
    return _only(meshes, "there", choice)


def _only(meshes: Sequence[Layout], state: str, choice: str) -> Layout:
    if len(meshes) > 1:
        names = ", ".join(mesh.name for mesh in meshes)
        raise UsageError(f"several meshes are {state} ({names}): choose one {choice}")
    return meshes[0]


def _named(meshes: Sequence[Layout], name: str, none: str) -> Layout:
    """The one of that name; `none` is the advice where there are no others to choose from."""
    chosen = next((mesh for mesh in meshes if mesh.name == name), None)
    if chosen is None:
        names = ", ".join(mesh.name for mesh in meshes)
        others = f"there are {names}" if len(meshes) > 1 else f"there is {names}" if meshes else none
        raise LocalError(f"there is no mesh {name}; {others}")
    return chosen


def _require_running(mesh: Layout) -> None:
    if not is_locked(mesh):
        raise LocalError(f"the mesh {mesh.name} was killed; take away what it left with `mizzen down {mesh.name}`")


def read_state(layout: Layout) -> State:
    """The state as it was last written."""
    try:
        return msgspec.json.decode(layout.state.read_bytes(), type=State)
    except FileNotFoundError as error:
        raise LocalError(f"the mesh {layout.name} has not come up yet, or is gone") from error
    except msgspec.MsgspecError as error:
        raise LocalError(f"{layout.state} cannot be read: {error}") from error


def write_state(layout: Layout, state: State) -> None:
    partial = layout.state.with_suffix(".partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=2))
    partial.rename(layout.state)


def find_pod(state: State, reference: str) -> Pod:
    """A pod by `name`, `name.namespace`, or `beginning.namespace` where one pod alone begins so there.

    A beginning without a namespace names no pod: what is meant would depend on what else the mesh runs.
    """
    exact = [pod for pod in state.pods if reference in (pod.name, f"{pod.name}.{pod.namespace}")]
    if len(exact) == 1:
        return exact[0]
    beginning, _, namespace = reference.rpartition(".")
    begun = [pod for pod in state.pods if beginning and pod.name.startswith(beginning) and pod.namespace == namespace]
    if len(begun) == 1 and not exact:
        return begun[0]
    if several := exact or begun:
        raise LocalError(f"{reference} is ambiguous; it could be: {_list_pods(several)}")
    similar = [pod for pod in state.pods if pod.name.startswith(beginning or reference)]
    if similar:
        raise LocalError(f"{reference} is not a pod of this mesh; those whose names begin so: {_list_pods(similar)}")
    raise LocalError(f"{reference} is not a pod of this mesh; there are: {_list_pods(state.pods) or 'none'}")


def first_pod(state: State, reference: str) -> Pod:
    """The first pod, by name, of the workload `name` or `name.namespace`: pods are named after their owner."""
    name, dot, namespace = reference.rpartition(".")
    if not dot:
        name, namespace = reference, ""
    found = sorted(
        (pod for pod in state.pods if pod.name.startswith(f"{name}-") and namespace in ("", pod.namespace)),
        key=lambda pod: (pod.namespace, pod.name),
    )
    if not found:
        raise LocalError(f'no pods match "{reference}"')
    if found[0].namespace != found[-1].namespace:
        raise LocalError(f"{reference} is ambiguous; it could be of: {_list_pods(found)}")
    return found[0]


def _list_pods(pods: Sequence[Pod]) -> str:
    return ", ".join(f"{pod.name}.{pod.namespace}" for pod in pods)


def lock(layout: Layout) -> int:
    """Takes the mesh's folder for this process as long as the returned descriptor stays open.

    The folder of a mesh that ended meanwhile may have been taken away between opening and locking; then again.
    """
    while True:
        try:
            layout.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(layout.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise LocalError(f"cannot make {layout.root}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise LocalError(
                f"the mesh {layout.name} is already running; stop it with `mizzen down {layout.name}`, or choose"
                " another name with --name"
            ) from error
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == layout.root.stat().st_ino:
                return descriptor
        os.close(descriptor)


def is_locked(layout: Layout) -> bool:
    """Whether a process is this mesh now."""
    descriptor = os.open(layout.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def sweep_processes(layout: Layout) -> int:
    """Kills what an earlier life of the mesh left running, and waits until it is gone; returns how many there were."""
    swept: set[int] = set()
    deadline = time.monotonic() + _SWEEP_SECONDS
    while left := set(_find_processes(layout)):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        swept |= left
        if time.monotonic() > deadline:
            raise LocalError(f"processes of an earlier run of {layout.name} do not end: {sorted(left)}")
        time.sleep(0.02)
    return len(swept)


def _find_processes(layout: Layout) -> Iterator[int]:
    marker = f"{MESH_VARIABLE}={layout.root}".encode()
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            # A zombie's environment is empty: it is dead already, and its parent's to bury.
            if marker in Path(entry.path, "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
