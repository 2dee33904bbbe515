"""The mesh of the disruption test: a hundred WebSockets through its Envoys, and states of it that are waited for.

Pods: `client` and `caller` keep WebSockets to `ws` and `side`, over HTTP routes and over plain TCP; `outer` stands
outside and comes through the gateway, in plain text and in TLS. A state of the manifests carries its number as a header of the routes to a host
of its own. It is in force once every Envoy has that route, nothing warms, and all that drains has gone: the drain time
is one second, so that whatever an edit cuts is cut by then.
"""

import json
import pathlib
import shutil
import socket
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import disruption_app
import msgspec
import whole_files
from eventually import eventually_blocking
from local_mesh import LocalMesh

from mizzen.diagnose import sync
from mizzen.errors import MizzenError
from mizzen.local import observer, runtime

_SETTLED = r"^(listener_manager\.total_listeners_warming|cluster_manager\.warming_clusters|listener_manager\.total_listeners_draining|listener_manager\.total_filter_chains_draining)$"
_IN_FORCE_SECONDS = 120.0
_ORDER_SECONDS = 60.0
_LOOK_SECONDS = 0.25
_CALM_LOOKS = 3
"""One push is several messages, of which each waits for the answer to the one before: one calm look proves nothing."""


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """WebSockets that go the same way."""

    name: str
    keeper: str
    """The pod that keeps them."""
    host: str
    port: int
    count: int
    source: str
    """As probes name it."""
    door: int = 0
    """The port of the gateway's pod that is connected to in place of the host."""
    tls: bool = False

    def probe(self) -> dict[str, Any]:
        """The request by which the forecast is asked about this flow."""
        url = f"{'https' if self.tls else 'http'}://{self.host}:{self.port}/socket"
        headers = {"connection": "Upgrade", "upgrade": "websocket"}
        return {"name": self.name, "from": self.source, "url": url, "headers": headers}


FLOWS = (
    Flow(name="http", keeper="client", source="client.apps", host="ws.apps", port=80, count=20),
    Flow(name="tcp", keeper="client", source="client.apps", host="ws.apps", port=9000, count=20),
    Flow(name="side", keeper="client", source="client.apps", host="side.apps", port=8090, count=20),
    Flow(name="gateway", keeper="outer", source="outside", host="ws.example", port=80, count=20, door=8080),
    Flow(name="secured", keeper="outer", source="outside", host="ws.example", port=443, count=10, door=8443, tls=True),
    Flow(name="other", keeper="caller", source="caller.other", host="ws.apps", port=80, count=10),
)


def marker(number: int) -> str:
    """The manifests by which a state is known to be in force."""
    return f"""
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: marker, namespace: watched}}
spec:
  hosts: [marker.test]
  ports: [{{number: 7, name: http, protocol: HTTP}}]
  resolution: STATIC
  endpoints: [{{address: 192.0.2.7}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{name: marker, namespace: watched}}
spec:
  selector: {{app: gateway}}
  servers: [{{port: {{number: 7, name: http, protocol: HTTP}}, hosts: ["*"]}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: marker, namespace: watched}}
spec:
  hosts: [marker.test]
  gateways: [mesh, marker]
  http:
    - headers: {{request: {{set: {{x-state: "state-{number}-"}}}}}}
      route: [{{destination: {{host: marker.test, port: {{number: 7}}}}}}]
"""


def write(folder: pathlib.Path, files: Mapping[str, str], number: int) -> None:
    """A state of the manifests as a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.yaml"):
        if path.stem not in files and path.stem != "marker":
            path.unlink()
    for name, text in {**files, "marker": marker(number)}.items():
        path = folder / f"{name}.yaml"
        if not path.exists() or path.read_text() != text:
            whole_files.put(path, text)


def lay_program(folder: pathlib.Path) -> None:
    """The pods' program beside the manifests."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(str(disruption_app.__file__), folder)


class DisruptionMesh:
    """The running mesh with its WebSockets."""

    def __init__(self, local: LocalMesh) -> None:
        self.local = local

    def pod(self, name: str) -> runtime.Pod:
        """The pod of that name, or the one pod of that workload."""
        return next(pod for pod in self.local.state.pods if pod.name == name or pod.name.startswith(f"{name}-"))

    # -- states -------------------------------------------------------------------------------------------------------

    def apply(self, files: Mapping[str, str], number: int, gone: tuple[str, ...] = ()) -> None:
        """Makes the manifests be this state, and waits until every Envoy has it and these pods are no more."""
        write(self.local.manifests, files, number)
        end, calm = time.monotonic() + _IN_FORCE_SECONDS, 0
        while calm < _CALM_LOOKS:
            behind = self._behind(number, gone)
            assert time.monotonic() < end, f"state {number} is not in force: {behind}; {self.local.text[-2000:]}"
            calm = 0 if behind else calm + 1
            time.sleep(_LOOK_SECONDS)

    def _behind(self, number: int, gone: tuple[str, ...]) -> list[str]:
        pods = self.local.state.pods
        left = [f"{p.name}.{p.namespace}" for p in pods if f"{p.name}.{p.namespace}" in gone]
        return [*left, *(f for pod in self.local.proxies() for f in _unsettled(pod, number)), *self._unanswered()]

    def _unanswered(self) -> list[str]:
        """What Envoys were sent and have not acknowledged."""
        address = self.local.state.control_plane.monitoring
        with urllib.request.urlopen(f"http://{address}/debug/syncz", timeout=10) as answer:
            proxies = sync.read_syncz(json.load(answer), address)
        stale = [(proxy, one) for proxy in proxies for one in proxy.types if one.state == "STALE"]
        return [f"{proxy.name} owes an answer for {sync.short_name(one.type_url)}" for proxy, one in stale]

    # -- WebSockets ---------------------------------------------------------------------------------------------------

    def fill(self, flow: Flow, have: int) -> None:
        """Opens what is missing of a flow."""
        missing = flow.count - have
        opened = 0

        def try_again() -> bool:
            nonlocal opened
            order = {"open": flow.name, "count": missing - opened, **self._target(flow)}
            opened += int(self._order(flow.keeper, order)["opened"])
            return opened == missing

        if missing:
            eventually_blocking(try_again, _ORDER_SECONDS)

    def _target(self, flow: Flow) -> dict[str, Any]:
        if flow.door:
            return {"host": self.pod("gateway").address, "port": flow.door, "authority": flow.host, "tls": flow.tls}
        return {"host": flow.host, "port": flow.port, "authority": flow.host, "tls": False}

    def check(self, flow: Flow) -> tuple[int, int]:
        """How many are alive, and how many were cut since the last time."""
        answer = self._order(flow.keeper, {"check": flow.name})
        return answer["alive"], answer["cut"]

    def _order(self, keeper: str, order: Mapping[str, Any]) -> dict[str, Any]:
        path = pathlib.Path(self.pod(keeper).directory) / "control" / "app.sock"
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(_ORDER_SECONDS)
            control.connect(str(path))
            control.sendall(json.dumps(order).encode() + b"\n")
            with control.makefile("rb") as answer:
                return dict(json.loads(answer.readline()))


def _unsettled(pod: runtime.Pod, number: int) -> Iterator[str]:
    """Why a proxy is not done with this state."""
    try:
        routes = observer.ask_envoy(pod, "/config_dump?resource=dynamic_route_configs&name_regex=^(http[.])?7(007)?$")
        if f"state-{number}-" not in routes:
            yield f"{pod.name} has other routes"
        busy = {name: value for name, value in observer.counters(pod, _SETTLED).items() if value}
        if busy:
            yield f"{pod.name} is busy: {busy}"
    except MizzenError as failed:
        yield f"{pod.name}: {failed}"
