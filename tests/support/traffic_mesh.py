"""The mesh of the traffic tests: its pods, and changes to it that are waited for until every Envoy has them.

Thirteen pods: `client`, `visitor` and `asker` (whose sidecar knows hosts on demand) call, `near`, `mid` and `far` answer
from three localities, `solo` has settings of its own, `scoped` sees little and may not leave, `kept` is guarded by
policies, `outer` stands outside the mesh, `ingress` and `egress` are gateways, and `door-istio-…` is what the mesh
deploys for a Gateway of the Gateway API. A file of manifests carries its revision as a host of its own on port 7; once
that host is among the routes of every Envoy, with the address that it is given last, and nothing is warming, the file
is in force. Nobody sleeps for it.
"""

import json
import pathlib
import shutil
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import traffic_app
import traffic_calls
import traffic_wasm
import whole_files
from eventually import eventually_blocking
from local_mesh import LocalMesh
from traffic_certificates import ROOT
from traffic_gateway_api import PARENT, build_door
from traffic_manifests import complete, fill, render
from traffic_programs import Program, Programs

from mizzen.errors import LocalError
from mizzen.local import observer, runtime

_IN_FORCE_SECONDS = 120.0
_GIVEN = "240.240."
_REFUSED = ("KubernetesGateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "BackendTLSPolicy")
"""Kinds whose tests have references refused on purpose."""
_WARMING = r"^(listener_manager\.total_listeners_warming|cluster_manager\.warming_clusters)$"
MODULE = traffic_wasm.build_module("x-wasm", "written")
"""A Wasm module that adds a header to answers."""
PORTS = (
    "http=8080",
    "http=8083",
    "http=8084",
    "http=8085",
    "http=8086",
    "greet=9000",
    "echo=9001",
    "tls=8443",
    "grpc=9090",
)
SNIFFED_PORTS = ("http=8081", "echo=9002", "grpc=9091")
"""For Services that leave the protocol out: a port that two Services share is what the first of them says."""
UNKNOWN_PORTS = ("http=8082",)
"""No Service has these."""

BASE = """
kind: Namespace
metadata: {name: traffic, labels: {istio-injection: enabled, welcome: at-the-door}}
---
kind: Namespace
metadata: {name: scoped, labels: {istio-injection: enabled}}
---
kind: Namespace
metadata: {name: kept, labels: {istio-injection: enabled}}
---
kind: Namespace
metadata: {name: gateways}
---
kind: Namespace
metadata: {name: outside}
---
kind: Namespace
metadata: {name: watched}
---
kind: Service
metadata: {name: a-first, namespace: traffic}
spec:
  selector: {app: echo}
  ports:
    - {name: http, port: 18080, targetPort: 8080}
    - {name: tcp, port: 19000, targetPort: 9000}
    - {name: tcp-echo, port: 19001, targetPort: 9001}
    - {name: grpc, port: 19090, targetPort: 9090}
---
kind: Node
metadata: {name: here, labels: {place: here, topology.kubernetes.io/region: r1, topology.kubernetes.io/zone: z1}}
---
kind: Node
metadata: {name: beside, labels: {place: beside, topology.kubernetes.io/region: r1, topology.kubernetes.io/zone: z2}}
---
kind: Node
metadata: {name: away, labels: {place: away, topology.kubernetes.io/region: r2, topology.kubernetes.io/zone: z3}}
---
kind: Service
metadata: {name: ingress, namespace: gateways}
spec:
  selector: {gateway: ingress}
  ports:
    - {name: probe, port: 7, targetPort: 7007}
    - {name: http, port: 80, targetPort: 8080}
    - {name: https, port: 443, targetPort: 8443}
    - {name: tcp, port: 9000, targetPort: 9000}
    - {name: tls, port: 15443, targetPort: 15443}
---
kind: Service
metadata: {name: egress, namespace: gateways}
spec:
  selector: {gateway: egress}
  ports:
    - {name: probe, port: 7, targetPort: 7007}
    - {name: http, port: 80, targetPort: 8080}
    - {name: https, port: 443, targetPort: 8443}
---
kind: Gateway
metadata: {name: probe, namespace: watched}
spec:
  selector: {traffic: gateway}
  servers: [{port: {number: 7, name: http, protocol: HTTP}, hosts: ["*"]}]
---
kind: Sidecar
metadata: {name: default, namespace: scoped}
spec:
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  egress: [{hosts: ["watched/*", "./*", "traffic/shown.traffic.svc.cluster.local", "traffic/shared.traffic.svc.cluster.local"]}]
"""
"""`a-first` comes before all Services of tests: what a port that they share takes in is limited by the first one's rule."""

_ON_DEMAND = """proxyMetadata: {ISTIO_META_MIZZEN_ON_DEMAND: "true"}"""
_ON_DEMAND_MESH = """
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data:
  mesh: |
    accessLogFile: /dev/stdout
    defaultConfig:
      concurrency: 1
      proxyMetadata:
        ISTIO_META_DNS_CAPTURE: "true"
        ISTIO_META_DNS_AUTO_ALLOCATE: "true"
        ISTIO_META_MIZZEN_ON_DEMAND: "true"
"""


def build_base(*, on_demand: bool = False) -> str:
    """Everything that is there before any test's own manifests."""
    echo = {"app": "echo", "version": "v1"}
    pods = [
        build_pod("client", "here", labels={"app": "client", "team": "red"}),
        build_pod("visitor", "here", labels={"app": "visitor", "team": "blue"}),
        build_pod("asker", "here", labels={"app": "asker"}, **{"proxy.istio.io/config": _ON_DEMAND}),
        build_pod("near", "here", labels={**echo, "place": "near"}, account="echo"),
        build_pod("mid", "beside", labels={**echo, "place": "mid"}, account="echo"),
        build_pod("far", "away", labels={**echo, "version": "v2", "place": "far"}, account="echo"),
        build_pod("solo", "here", labels={"app": "solo"}),
        build_pod("scoped", "here", "scoped", labels={"app": "scoped"}),
        build_pod("outer", "here", "outside", labels={"app": "outer"}),
        build_pod("kept", "here", "kept", labels={"app": "kept"}),
        build_gateway("ingress"),
        build_gateway("egress"),
    ]
    certificate, key = ROOT.issue("outer.example.com", "*.example.com", "*.traffic.svc.cluster.local")
    content = {"tls.crt": certificate, "tls.key": key, "ca.crt": ROOT.pem}
    secrets = [
        {"kind": "Secret", "metadata": {"name": "programs-tls", "namespace": namespace}, "stringData": content}
        for namespace in ("traffic", "scoped", "kept", "outside")
    ]
    settings = complete(_ON_DEMAND_MESH) if on_demand else []
    return render([*settings, *complete(BASE), *complete(build_door()), *pods, *map(fill, secrets)])


def build_pod(
    name: str,
    node: str,
    namespace: str = "traffic",
    *,
    labels: Mapping[str, str],
    account: str = "",
    **annotations: str,
) -> dict[str, Any]:
    """A pod with the program of `traffic_app`."""
    root = "$(MIZZEN_ROOT)"
    environ = {
        "POD_NAME": name,
        "VERSION": labels.get("version", ""),
        "TLS_CERTIFICATE": f"{root}/tls/tls.crt",
        "TLS_KEY": f"{root}/tls/tls.key",
        "TLS_CLIENT_CA": f"{root}/tls/ca.crt",
    }
    container = {
        "name": "app",
        "command": ["python3", "traffic_app.py", f"{root}/control/app.sock", *PORTS, *SNIFFED_PORTS, *UNKNOWN_PORTS],
        "env": [{"name": key, "value": value} for key, value in environ.items()],
        "ports": [{"containerPort": int(item.partition("=")[2])} for item in (*PORTS, *SNIFFED_PORTS, *UNKNOWN_PORTS)],
        "readinessProbe": {"tcpSocket": {"port": 8082}},
        "volumeMounts": [{"name": "control", "mountPath": "/control"}, {"name": "tls", "mountPath": "/tls"}],
    }
    spec = {
        "nodeSelector": {"place": node},
        "serviceAccountName": account or name,
        "hostname": name,
        "subdomain": "heads",
        "containers": [container],
        "volumes": [
            {"name": "control", "emptyDir": {}},
            {"name": "tls", "secret": {"secretName": "programs-tls"}},
        ],
    }
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels), "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def build_gateway(name: str) -> dict[str, Any]:
    labels = {"gateway": name, "istio": f"{name}gateway", "traffic": "gateway", "sidecar.istio.io/inject": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "gateways",
            "labels": labels,
            "annotations": {"inject.istio.io/templates": "gateway"},
        },
        "spec": {
            "nodeSelector": {"place": "here"},
            "serviceAccountName": name,
            "containers": [{"name": "istio-proxy", "image": "auto"}],
        },
    }


def build_revision(file: str, number: int) -> list[dict[str, Any]]:
    """The host by which Envoys are known to have this revision of a file."""
    return complete(f"""
kind: ServiceEntry
metadata: {{name: {file}, namespace: watched}}
spec:
  hosts: [r{number}.{file}.in-force]
  ports: [{{number: 7, name: http, protocol: HTTP}}]
  resolution: STATIC
  endpoints: [{{address: 192.0.2.7}}]
---
kind: VirtualService
metadata: {{name: {file}, namespace: watched}}
spec:
  hosts: [r{number}.{file}.in-force]
  gateways: [mesh, probe]
  http: [{{route: [{{destination: {{host: r{number}.{file}.in-force}}}}]}}]
---
kind: HTTPRoute
metadata: {{name: {file}, namespace: watched}}
spec:
  parentRefs: [{PARENT[:-1]}, sectionName: probe}}]
  hostnames: [r{number}.{file}.in-force]
  rules: [{{backendRefs: [{{group: networking.istio.io, kind: Hostname, name: r{number}.{file}.in-force, port: 7}}]}}]
""")


class TrafficMesh:
    """The running mesh."""

    def __init__(self, local: LocalMesh, *, on_demand: bool = False) -> None:
        """`on_demand`: no sidecar knows a host before it is asked for it."""
        self.local = local
        self._on_demand = on_demand
        self._revisions: dict[str, int] = {}
        self._programs: dict[str, Program] = {}

    def __getitem__(self, name: str) -> Program:
        """A pod's program."""
        if name not in self._programs:
            pod = self.pod(name)
            self._programs[name] = Program(name, pathlib.Path(pod.directory) / "control" / "app.sock", pod.address)
        return self._programs[name]

    @property
    def echoes(self) -> Programs:
        return Programs(self[name] for name in ("near", "mid", "far"))

    def pod(self, name: str) -> runtime.Pod:
        return self.local.pod(name)

    def logged(self, name: str, part: str, count: int = 1) -> list[str]:
        """The lines of a pod's access log that hold that part, once there are so many; Envoy writes them in batches."""
        pod = self.pod(name)
        path = self.local.layout.log(pod.namespace, pod.name, "istio-proxy")

        def find() -> list[str]:
            lines = [line for line in path.read_text(errors="replace").splitlines() if part in line]
            return lines if len(lines) >= count else []

        return eventually_blocking(find)

    def hosts(self, name: str, cluster: str) -> dict[str, dict[str, Any]]:
        """What the Envoy of a pod says of a cluster's hosts, by pod where the address is one's, numbers as such."""
        pods = {pod.address: pod.name for pod in self.local.state.pods}
        found: dict[str, dict[str, Any]] = {}
        for line in observer.ask_envoy(self.pod(name), "/clusters").splitlines():
            parts = line.split("::")
            if len(parts) == 4 and parts[0] == cluster:
                address = parts[1].rpartition(":")[0]
                value: Any = int(parts[3]) if parts[3].isdecimal() else parts[3]
                found.setdefault(pods.get(address, address), {})[parts[2]] = value
        return found

    # -- changes ------------------------------------------------------------------------------------------------------

    def apply(self, file: str, manifests: Iterable[str]) -> None:
        """Makes a file of the watched directory hold these manifests and waits until they are in force.

        `$(POD)` in them is the address of a pod.
        """
        documents = [document for text in manifests for document in complete(self._with_addresses(text))]
        number = self._revisions[file] = self._revisions.get(file, 0) + 1
        text = render([*documents, *build_revision(file, number)])
        whole_files.put(self.local.manifests / f"{file}.yaml", text)
        host = f"r{number}.{file}.in-force"
        self._wait_for(host)

    def _with_addresses(self, text: str) -> str:
        for pod in self.local.state.pods:
            text = text.replace(f"$({pod.name})", pod.address)
        return text

    def _wait_for(self, host: str) -> None:
        end = time.monotonic() + _IN_FORCE_SECONDS
        while behind := self.behind(host):
            assert time.monotonic() < end, f"{host} is not in force at {behind}: {self.problems()}\n{self.local.text}"
            time.sleep(0.1)

    def behind(self, host: str) -> list[str]:
        """The Envoys that do not have that revision yet, or that say nothing, as while they are started again."""
        return [pod.name for pod in self.local.proxies() if not self._is_settled(pod, host)]

    def _is_settled(self, pod: runtime.Pod, host: str) -> bool:
        try:
            return self._has_revision(pod, host) and not is_warming(pod)
        except LocalError:
            return False

    def _has_revision(self, pod: runtime.Pod, host: str) -> bool:
        if pod.name != "asker" and (not self._on_demand or _is_gateway(pod)):
            return has_route(pod, host)
        program = self[pod.name]
        if not any(address.startswith(_GIVEN) for address in program.resolve(host)):
            return False
        return holds_host(pod, host) or (program.get(f"http://{host}:7/", timeout=0.2) and holds_host(pod, host))

    def problems(self) -> Mapping[str, Any]:
        """What the control plane says is not, or not wholly, in force."""
        address = self.local.state.control_plane.monitoring
        with urllib.request.urlopen(f"http://{address}/debug/problems", timeout=60) as answer:
            return dict(json.load(answer))

    def errors(self) -> list[str]:
        """Objects that are not in force, and what Envoys refused."""
        problems = self.problems()
        serious = (item for item in problems["objects"] if item["level"] == "error" and item["kind"] not in _REFUSED)
        objects = [f"{item}" for item in serious]
        return [*objects, *map(str, problems["rejections"])]


def has_route(pod: runtime.Pod, host: str) -> bool:
    """Whether an Envoy routes that host, and its given address unless it is a gateway, which knows no such."""
    answer = observer.ask_envoy(pod, "/config_dump?resource=dynamic_route_configs&name_regex=^(http[.])?7(007)?$")
    domains = next((found for found in _domains(json.loads(answer)) if host in found), [])
    return any(domain.startswith(_GIVEN) for domain in domains) or (bool(domains) and pod.namespace == "gateways")


def holds_host(pod: runtime.Pod, host: str) -> bool:
    """Whether an Envoy on demand has that host, and takes it for one of the mesh."""
    answer = observer.ask_envoy(pod, "/config_dump?resource=dynamic_route_configs&name_regex=^7$")
    configs = json.loads(answer).get("configs", ())
    hosts = [host for config in configs for host in config["route_config"].get("virtual_hosts", ())]
    return any(f"7/{host}:7" == each["name"] and f"outbound|7||{host}" in json.dumps(each) for each in hosts)


def _is_gateway(pod: runtime.Pod) -> bool:
    return pod.namespace == "gateways" or pod.name.startswith("door-")


def _domains(dump: Mapping[str, Any]) -> Iterator[list[str]]:
    for config in dump.get("configs", ()):
        for host in config.get("route_config", {}).get("virtual_hosts", ()):
            yield host["domains"]


def is_warming(pod: runtime.Pod) -> bool:
    return any(observer.counters(pod, _WARMING).values())


def lay_programs(folder: pathlib.Path) -> None:
    """The pods' programs, and what they hand out, beside the manifests, where pods find them."""
    for module in (traffic_app, traffic_calls):
        shutil.copy(str(module.__file__), folder)
    (folder / "module.wasm").write_bytes(MODULE)
