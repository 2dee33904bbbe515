"""Control planes as processes: started over a folder of objects on ports that the system chooses, and what they use.

In: a folder that `mizzen discovery` watches. Out: its addresses, and CPU seconds and resident memory of it and its
children as the kernel counts them. Any other control plane is known by its process number alone (`measure_usage`).
"""

import contextlib
import glob
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

import grpc
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from mizzen.ca import certificates, store
from mizzen.ca.certificates import Signer
from mizzen.model.spiffe import Identity, format_spiffe

PLAIN, MUTUAL, MONITORING, READINESS = "--grpcAddr", "--mutualGRPCAddr", "--monitoringAddr", "--httpAddr"
"""The ports that are opened, by the flags that name them."""

_MIZZEN = pathlib.Path(sys.executable).with_name("mizzen")
_LISTENS = re.compile(r"(--\w+) listens on \S*:(\d+)")
_TICK = os.sysconf("SC_CLK_TCK")
_DOMAIN = "cluster.local"
_YEAR = 365 * 86400.0
_START_SECONDS = 600.0
_STOP_SECONDS = 30.0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a process and its descendants have used."""

    cpu_seconds: float
    resident_kb: int


def measure_usage(pid: int) -> Usage:
    """The usage of a process and its descendants until now; what ends meanwhile is passed over."""
    family = list(_family(pid))
    return Usage(cpu_seconds=sum(map(_cpu_seconds, family)), resident_kb=sum(map(_resident_kb, family)))


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in glob.iglob(f"/proc/{pid}/task/*/children"):
        for child in _read(task).split():
            yield from _family(int(child))


def _read(path: str) -> str:
    """A file of /proc; empty once the process or thread that it tells of has ended."""
    try:
        return pathlib.Path(path).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _cpu_seconds(pid: int) -> float:
    # The name in parentheses may hold spaces; utime and stime are fields 14 and 15 of all.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK if fields else 0.0


def _resident_kb(pid: int) -> int:
    status = _read(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found.group(1)) if found else 0


class Authority:
    """A root of trust that a control plane is given, and the credentials of clients that it has signed."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Makes the authority in a new folder, or takes the one that is there."""
        folder.mkdir(parents=True, exist_ok=True)
        found = store.find_plugged(folder)
        self._signer: Signer = found or certificates.build_root(_DOMAIN, _YEAR, 2048, time.time())
        if found is None:
            for name, data in store.encode_plugged(self._signer).items():
                (folder / name).write_bytes(data)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._made: dict[tuple[str, str], grpc.ChannelCredentials] = {}

    def credentials(self, namespace: str, account: str) -> grpc.ChannelCredentials:
        """A service account's: its certificate, and trust in the control plane."""
        made = self._made.get((namespace, account))
        if made is None:
            name = format_spiffe(Identity(_DOMAIN, namespace, account))
            now = time.time()
            leaf = certificates.build_leaf(self._signer, self._key.public_key(), (name,), now + _YEAR, now)
            made = grpc.ssl_channel_credentials(
                _encode(*self._signer.roots), certificates.encode_key(self._key), _encode(leaf)
            )
            self._made[namespace, account] = made
        return made


def _encode(*found: x509.Certificate) -> bytes:
    return certificates.encode(*found)


class ControlPlane:
    """One `mizzen discovery`, a child of this process."""

    def __init__(self, process: subprocess.Popen[bytes], log: pathlib.Path) -> None:
        self.process = process
        self.log = log
        """Where it writes its log."""
        self.ports: dict[str, int] = {}

    @property
    def pid(self) -> int:
        return self.process.pid

    def target(self, flag: str = PLAIN) -> str:
        """The address of one of its ports."""
        return f"127.0.0.1:{self.ports[flag]}"

    def is_ready(self) -> bool:
        """Whether proxies are served."""
        try:
            with urllib.request.urlopen(f"http://{self.target(READINESS)}/ready", timeout=60) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    def get(self, path: str) -> str:
        """The text of a page of the monitoring port."""
        with urllib.request.urlopen(f"http://{self.target(MONITORING)}{path}", timeout=60) as answer:
            text: str = answer.read().decode()
        return text

    def metric(self, name: str) -> float:
        """The sum of a metric's series."""
        lines = (each for each in self.get("/metrics").splitlines() if each.startswith((f"{name}{{", f"{name} ")))
        return sum(float(each.rpartition(" ")[2]) for each in lines)

    def usage(self) -> Usage:
        """What it has used until now."""
        return measure_usage(self.pid)

    def wait_until_ready(self) -> None:
        """Raises SystemExit with its log's end if it ends before."""
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            self.ports = {flag: int(port) for flag, port in _LISTENS.findall(self.log.read_text())}
            if {PLAIN, MUTUAL, MONITORING, READINESS} <= self.ports.keys() and self.is_ready():
                return
            time.sleep(0.05)
        raise SystemExit(f"the control plane did not get ready:\n{self.log.read_text()[-2000:]}")


@contextlib.contextmanager
def serve(
    config: pathlib.Path, state: pathlib.Path, environment: Mapping[str, str] | None = None, *arguments: str
) -> Iterator[ControlPlane]:
    """A control plane over `config` until the block ends. `state` holds its authority (`Authority`) and its log."""
    Authority(state)
    log = state / "control-plane.log"
    nowhere = "127.0.0.1:0"
    flags = [f"{flag}={nowhere}" for flag in (PLAIN, MUTUAL, MONITORING, READINESS)]
    command = [str(_MIZZEN), "discovery", f"--config={config}", f"--caDir={state}", *flags]
    command += ["--secureGRPCAddr=", "--ctrlz_port=0", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **(environment or {})})
    plane = ControlPlane(process, log)
    try:
        plane.wait_until_ready()
        yield plane
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
