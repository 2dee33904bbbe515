"""What can be seen of a running mesh from beside it: the counters of its Envoys, commands inside its pods.

In: the state file's word on pods. Out: numbers and outputs. The demo and the tests of the local mesh look through this;
it blocks, and changes nothing but what a command in a pod changes.
"""

import http.client
import re
import subprocess
from collections.abc import Iterable, Mapping

from mizzen.errors import LocalError
from mizzen.local import execution
from mizzen.local.net import unix
from mizzen.local.runtime import Pod, State

_TIMEOUT_SECONDS = 10.0
_COMMAND_SECONDS = 60.0
_METRICS = "http://localhost:15020/stats/prometheus"


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = unix.connect(self._path, _TIMEOUT_SECONDS)


def ask_envoy(pod: Pod, path: str, method: str = "GET") -> str:
    """The answer of the admin interface of a pod's Envoy."""
    connection = _Connection(pod.admin)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read().decode()
    except (OSError, http.client.HTTPException) as error:
        raise LocalError(f"the Envoy of {pod.name}.{pod.namespace} does not answer: {error}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise LocalError(f"the Envoy of {pod.name}.{pod.namespace} answers {response.status}: {body.strip()}")
    return body


def counters(pod: Pod, pattern: str) -> dict[str, int]:
    """The counters and gauges of an Envoy whose names match the regular expression."""
    wanted = re.compile(pattern)
    found = {}
    for line in ask_envoy(pod, "/stats").splitlines():
        name, _, value = line.rpartition(": ")
        if value.isdecimal() and wanted.search(name):
            found[name] = int(value)
    return found


def scrape(state: State, pod: Pod, environ: Mapping[str, str]) -> str:
    """What Prometheus would get from a pod with a sidecar: the agent's merged metrics."""
    script = f"import urllib.request as u; print(u.urlopen('{_METRICS}', timeout=10).read().decode())"
    done = run_in_pod(state, pod, ("python3", "-c", script), environ, "istio-proxy")
    if done.returncode != 0:
        raise LocalError(f"the agent of {pod.name}.{pod.namespace} does not answer: {done.stderr.strip()}")
    return done.stdout


def rejections(pods: Iterable[Pod]) -> dict[str, int]:
    """Configuration that Envoys have refused since they started: by `POD: counter`, only what is not zero."""
    return {
        f"{pod.name}.{pod.namespace}: {name}": count
        for pod in pods
        for name, count in counters(pod, r"\.update_rejected$").items()
        if count
    }


def run_in_pod(
    state: State, pod: Pod, command: tuple[str, ...], environ: Mapping[str, str], container: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a command inside a pod, as `mizzen exec` does; `environ` is the caller's own."""
    request = execution.Request(state=state, pod=pod, container=container, command=command)
    entry = execution.build_entry(request, environ)
    return subprocess.run(
        entry.argv, env=dict(entry.environ), capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
    )
