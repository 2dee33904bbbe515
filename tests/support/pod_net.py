"""Pods without Kubernetes: each a network namespace with a folder of its own, all on one bridge of this machine.

Out: addresses, and processes that run inside, with names that only they know. It needs root. Whatever a test made is
gone when its network ends, processes too.
"""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping

from claims import claim
from eventually import eventually_blocking

PROXY_UID = 1337
_ROOM = f"""
mount -t tmpfs none /var/lib && mkdir -p /var/lib/istio/data && chown {PROXY_UID} /var/lib/istio/data && exec "$@"
"""
"""A volume at the place where Istio's agent keeps data, which no option moves; only the process itself sees it."""
_ASK = """
import json, sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=10)
except urllib.error.HTTPError as error:
    answer = error
except OSError as error:
    print(json.dumps([0, {}, str(error)]))
    sys.exit()
headers = {name.lower(): value for name, value in answer.headers.items()}
print(json.dumps([answer.status, headers, answer.read().decode(errors="replace")]))
"""
_numbers = itertools.count()


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True)


class Process:
    """One that writes to a log."""

    def __init__(self, command: list[str], log: pathlib.Path, environ: Mapping[str, str], folder: pathlib.Path) -> None:
        self._log = log
        with log.open("ab") as stream:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environ,
                cwd=folder,
                process_group=0,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """The exit code stays where it is: until it is taken, no other process or group can have the number."""
        if self._process.returncode is not None:
            return False
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def end(self, number: int = signal.SIGTERM, seconds: float = 60.0) -> int:
        """Send a signal and wait; the exit code."""
        if self.is_running:
            os.kill(self.pid, number)
        eventually_blocking(lambda: not self.is_running, seconds=seconds)
        return self.kill()

    def kill(self) -> int:
        """End it and its children; the exit code."""
        if self._process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()


class Pod:
    """A namespace with one address."""

    def __init__(self, network: "Network", name: str, address: str) -> None:
        self.name, self.address = name, address
        self.folder = network.folder / name
        self.folder.mkdir()
        os.chown(self.folder, PROXY_UID, PROXY_UID)
        self._namespace = f"{network.name}-{name}"
        self._processes: list[Process] = []
        self._hosts = pathlib.Path("/etc/netns") / self._namespace
        cable = f"{network.name}{address.rpartition('.')[2]}"
        _ip("netns", "add", self._namespace)
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", self._namespace)
        _ip("link", "set", cable, "master", network.name, "up")
        for link in ("lo", "eth0"):
            _ip("-n", self._namespace, "link", "set", link, "up")
        _ip("-n", self._namespace, "address", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", self._namespace, "route", "add", "default", "via", network.host)
        self.name_hosts({"localhost": "127.0.0.1"})

    def name_hosts(self, names: Mapping[str, str]) -> None:
        """What processes that start from now on find in /etc/hosts."""
        self._hosts.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **names}.items())
        (self._hosts / "hosts").write_text(lines)
        (self._hosts / "resolv.conf").write_text("nameserver 127.0.0.1\n")

    def _command(self, command: tuple[object, ...], uid: int) -> list[str]:
        become = ("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups") if uid else ()
        return ["ip", "netns", "exec", self._namespace, "sh", "-c", _ROOM, "sh", *become, *map(str, command)]

    def start(self, *command: object, uid: int = 0, environ: Mapping[str, str] | None = None, log: str = "") -> Process:
        """A process that runs until it ends, or the network does."""
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **(environ or {})}
        path = self.folder / f"{log or pathlib.Path(str(command[0])).name}.log"
        process = Process(self._command(command, uid), path, variables, self.folder)
        self._processes.append(process)
        return process

    def run(self, *command: object, uid: int = 0, environ: Mapping[str, str] | None = None) -> str:
        """What a command prints that must not fail."""
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **(environ or {})}
        done = subprocess.run(
            self._command(command, uid), cwd=self.folder, env=variables, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{command}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def get(self, port: int, path: str = "/", host: str = "127.0.0.1") -> tuple[int, str]:
        """Status and body of a request from inside; (0, reason) where nobody answers."""
        code, _, text = self.ask(f"http://{host}:{port}{path}")
        return code, text

    def ask(self, url: str) -> tuple[int, dict[str, str], str]:
        """Status, headers by small names, and body of a request from inside."""
        code, headers, text = json.loads(self.run(sys.executable, "-I", "-c", _ASK, url))
        return code, headers, text

    def end(self) -> None:
        for process in self._processes:
            process.kill()
        _ip("netns", "delete", self._namespace, check=False)
        shutil.rmtree(self._hosts, ignore_errors=True)


class Network:
    """The bridge; `host` and `other` are addresses of whoever runs on this machine."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        number, self._claim = claim("network", range(20 * 250))
        self.name = f"mzt{os.getpid() % 100000}{chr(ord('a') + next(_numbers) % 26)}"
        self._prefix = f"10.{211 + number // 250}.{number % 250}"
        self.host, self.other = f"{self._prefix}.1", f"{self._prefix}.2"
        self.pods: dict[str, Pod] = {}

    def pod(self, name: str) -> Pod:
        """A new pod."""
        pod = self.pods[name] = Pod(self, name, f"{self._prefix}.{len(self.pods) + 10}")
        return pod

    def start(self) -> None:
        _ip("link", "add", self.name, "type", "bridge")
        for address in (self.host, self.other):
            _ip("address", "add", f"{address}/24", "dev", self.name)
        _ip("link", "set", self.name, "up")

    def end(self) -> None:
        for pod in self.pods.values():
            pod.end()
        _ip("link", "delete", self.name, check=False)
        self._claim.close()


@contextlib.contextmanager
def network(folder: pathlib.Path) -> Iterator[Network]:
    """A network for the length of a block; `folder` must be one that every user may pass."""
    made = Network(folder)
    try:
        made.start()
        yield made
    finally:
        made.end()
