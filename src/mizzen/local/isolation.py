"""How a mesh gets its namespaces on this machine, and what that means for its processes.

`ROOT` makes them as root. `MAPPED` enters a user namespace with subordinate ids, so that applications, sidecars and
the mesh are different users as in a cluster; it needs the `uidmap` tools. `SINGLE` enters one in which the user is the
only user: the sidecar's traffic is told by a socket mark. `NONE` has no namespaces at all. `choose` tries what it picks
with a throw-away command, because kernels, containers and AppArmor all have their own way to forbid it; what fails
there fails with the tool's reason and the remedy.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from mizzen.errors import LocalError
from mizzen.local.net import network
from mizzen.local.processes import Identity

PROXY_UID = 1337
APPLICATION_UID = 65532
"""The user of containers that ask for none: nobody's, as images without a root user have it."""
SOCKET_MARK = 1337
READ_ANYTHING = "dac_read_search"

_TOOLS = ("unshare", "setpriv", "mount", "ip", "iptables-restore")
_TRIAL = "ip link add t0 type veth peer name t1 && iptables -t nat -A OUTPUT -j RETURN"
_TRIAL_SECONDS = 20.0


class Isolation(StrEnum):
    """The way in which pods are kept apart."""

    ROOT = "root"
    MAPPED = "user"
    SINGLE = "single-user"
    NONE = "no-capture"

    @property
    def namespaces(self) -> bool:
        return self is not Isolation.NONE

    @property
    def users(self) -> bool:
        """Whether processes can run as users of their own."""
        return self in (Isolation.ROOT, Isolation.MAPPED)


def build_prefix(isolation: Isolation) -> tuple[str, ...]:
    """The command that runs another one in the mesh's namespaces; all of them end with it."""
    leash = ("setpriv", "--pdeathsig=KILL", "--")
    if isolation is Isolation.NONE:
        return leash
    user = {
        Isolation.ROOT: (),
        Isolation.MAPPED: ("--user", "--map-root-user", "--map-auto"),
        Isolation.SINGLE: ("--user", "--map-root-user"),
    }
    kept = ("--net", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child")
    return (*leash, "unshare", *user[isolation], *kept, "--")


def choose(*, capture: bool, uid: int, environ: Mapping[str, str]) -> Isolation:
    """The best isolation that works here; `LocalError` with the remedy if none does."""
    if sys.platform != "linux":
        raise LocalError("a local mesh needs Linux; run it in a Linux container or virtual machine")
    require_tools(_TOOLS if capture else ("setpriv",))
    if not capture:
        return Isolation.NONE
    candidates = [Isolation.ROOT] if uid == 0 else [Isolation.MAPPED, Isolation.SINGLE]
    if Isolation.MAPPED in candidates and not _has_subordinate_ids():
        candidates.remove(Isolation.MAPPED)
    reason = ""
    for isolation in candidates:
        reason = try_out(isolation, environ)
        if not reason:
            return isolation
    raise LocalError(_explain(candidates[-1], reason))


def require_tools(names: Iterable[str]) -> None:
    for name in names:
        if shutil.which(name) is None:
            raise LocalError(f"{name} is not installed: {network.remedy(name)}")


def _has_subordinate_ids() -> bool:
    """Whether unshare can map a range of ids: the set-uid tools, and an option that came with util-linux 2.38."""
    if shutil.which("newuidmap") is None or shutil.which("newgidmap") is None:
        return False
    done = subprocess.run(("unshare", "--help"), capture_output=True, text=True, timeout=_TRIAL_SECONDS, check=False)
    return "--map-auto" in done.stdout


def try_out(isolation: Isolation, environ: Mapping[str, str]) -> str:
    """Makes the namespaces once, with a cable and a rule in them; returns why not, empty when all went well."""
    argv = (*build_prefix(isolation), "sh", "-c", _TRIAL)
    try:
        done = subprocess.run(
            argv, env=dict(environ), capture_output=True, text=True, timeout=_TRIAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TRIAL_SECONDS:g} s"
    if done.returncode == 0:
        return ""
    return " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"


def _explain(isolation: Isolation, reason: str) -> str:
    if isolation is Isolation.ROOT:
        remedy = "run where root may make network namespaces (a container needs --privileged)"
    else:
        remedy = "run as root, or allow user namespaces (sysctl user.max_user_namespaces, AppArmor's restriction)"
    return f"network namespaces cannot be made here: {reason}. Either {remedy}, or use --no-capture"


def proxy_identity(isolation: Isolation, needed: Iterable[Path]) -> Identity:
    """As whom agents and Envoys run."""
    return _identity(isolation, PROXY_UID, PROXY_UID, needed)


def application_identity(isolation: Isolation, uid: int | None, gid: int | None, needed: Iterable[Path]) -> Identity:
    """As whom a container runs that asks for this user, or for none."""
    chosen = APPLICATION_UID if uid is None else uid
    return _identity(isolation, chosen, chosen if gid is None else gid, needed)


def _identity(isolation: Isolation, uid: int, gid: int, needed: Iterable[Path]) -> Identity:
    """Where root or the user keeps its programs to itself, its pods keep the right to read them, and no other."""
    if not isolation.users:
        return Identity()
    if uid == 0 or all(is_open_to_others(path) for path in needed):
        return Identity(uid=uid, gid=gid)
    return Identity(uid=uid, gid=gid, capabilities=(READ_ANYTHING,))


def is_open_to_others(path: Path) -> bool:
    """Whether every user may reach and read the file or folder."""
    resolved = path.resolve()
    try:
        if not all(parent.stat().st_mode & 0o001 for parent in resolved.parents):
            return False
        mode = resolved.stat().st_mode
    except OSError:
        return False
    needed = 0o005 if resolved.is_dir() else 0o004
    return mode & needed == needed


def interpreter_paths() -> tuple[Path, ...]:
    """What a process needs to read in order to run Mizzen: the interpreter, its library, and this package."""
    package = Path(__file__).resolve().parents[1]
    return (Path(sys.executable), Path(sys.prefix), Path(sys.base_prefix), package, Path(os.__file__))
