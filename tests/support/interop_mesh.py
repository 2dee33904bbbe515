"""A mesh of Istio's own parts and Mizzen's over one API server: pods as the injector makes them, with either agent.

Pods are objects of the API server and namespaces of this machine. What their init container and sidecar run, with which
arguments and variables, is what Mizzen's injector wrote into them; the token is a service account's. The control plane's
name leads to a `Gate`, behind which one control plane can be exchanged for another.
"""

import contextlib
import json
import os
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import istio_programs
import kube_mesh_kinds
import msgspec
import plugged_authority
from claims import own_port
from eventually import eventually_blocking
from istio_programs import HOST, Plane
from kube_bed import Answer, Bed
from kube_objects import path_of, service
from pod_net import PROXY_UID, Network, Pod, Process
from tcp_gate import Gate

from mizzen.agent.binaries import find_envoy
from mizzen.api.kube.data import ConfigMap
from mizzen.api.kube.pods import Container
from mizzen.api.kube.pods import Pod as PodObject
from mizzen.api.scalars import decode_scalar
from mizzen.inject.pod import inject_pod
from mizzen.inject.values import InjectionConfig
from mizzen.install.config_maps import mesh_config
from mizzen.install.values import lay_over
from mizzen.local.pods import containers, volumes

NAMESPACE = "shop"
ROOTS = "istio-ca-root-cert"
APP = pathlib.Path(__file__).with_name("interop_app.py")
_MACHINE = containers.Machine(cpus=1, memory_bytes=1 << 30)
_PLURALS = {
    "Pod": "pods",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "EndpointSlice": "endpointslices",
}


class Workload:
    """A pod at work: its namespace, its sidecar and its application."""

    def __init__(self, mesh: "Mesh", name: str, injected: PodObject, place: Pod) -> None:
        self._mesh, self.name, self.injected, self.place = mesh, name, injected, place
        self.sidecar: Process | None = None
        self.application: Process | None = None

    def container(self, name: str) -> Container:
        spec = self.injected.spec
        return next(one for one in (*spec.init_containers, *spec.containers) if one.name == name)

    def program(self, name: str) -> containers.Program:
        return containers.build_program(self.container(name), self.injected, {}, lambda _: None, _MACHINE)

    def lay_volumes(self) -> None:
        """The files that a kubelet would lay, with a token of this moment."""
        files = volumes.build_files(self.injected, self._mesh.lookup, lambda audience: self._mesh.token(self, audience))
        volumes.Folder(self.place.folder).lay(files, (PROXY_UID, PROXY_UID))

    def capture(self, *excluded: str) -> None:
        """Lead the traffic through Envoy by Istio's own program, as the init container asks for."""
        arguments = list(self.program("istio-init").argv)
        if excluded:
            arguments[arguments.index("-x") + 1] = ",".join(f"{address}/32" for address in excluded)
        self.place.run(istio_programs.AGENT, *arguments)

    def start_istio_agent(self, **variables: str) -> None:
        """Istio's agent as the sidecar."""
        template = self.place.folder / "var/lib/istio/envoy/envoy_bootstrap_tmpl.json"
        template.parent.mkdir(parents=True, exist_ok=True)
        template.write_bytes(istio_programs.TEMPLATE.read_bytes())
        program = self.program("istio-proxy")
        self.sidecar = self.place.start(
            istio_programs.AGENT, *program.argv, uid=PROXY_UID, environ={**program.environ, **variables}
        )

    def start_mizzen_agent(self, **variables: str) -> None:
        """Mizzen's agent as the sidecar; it is root, as the interpreter here is root's alone, and its Envoy is not."""
        program = self.program("istio-proxy")
        environ = {**program.environ, "MIZZEN_PROXY_UID": str(PROXY_UID), **variables}
        command = (sys.executable, "-m", "mizzen", "agent", *program.argv)
        self.sidecar = self.place.start(*command, environ=environ, log="mizzen-agent")

    def end_sidecar(self) -> None:
        if self.sidecar is not None:
            self.sidecar.end()

    @property
    def is_ready(self) -> bool:
        assert self.sidecar is not None
        assert self.sidecar.is_running, self.sidecar.log
        return self.place.get(15021, "/healthz/ready")[0] == 200

    def until_ready(self) -> None:
        eventually_blocking(lambda: self.is_ready, 120, every=0.2)

    def admin(self, path: str) -> Any:
        code, text = self.place.get(15000, path)
        assert code == 200, text
        return json.loads(text)

    def dynamic(self, field: str) -> dict[str, Any]:
        """What Envoy has of clusters (`dynamic_active_clusters`), listeners (`dynamic_listeners`) and so on, by name."""
        found = [one for dump in self.admin("/config_dump")["configs"] for one in dump.get(field, ())]
        return {one.get("name") or one["cluster"]["name"]: one for one in found}

    def get(self, host: str, path: str = "/", port: int = 80) -> dict[str, Any]:
        """What the application behind a Service tells of a request from here; code 0 where nobody answers."""
        code, text = self.place.get(port, path, self._mesh.address(host))
        return {"code": code, **(json.loads(text) if code == 200 else {"text": text})}


class Mesh:
    """The API server's objects, the pods, and the control planes."""

    def __init__(self, bed: Bed, network: Network, folder: pathlib.Path) -> None:
        self.bed, self.network, self.folder = bed, network, folder
        self.workloads: dict[str, Workload] = {}
        self.planes: list[Plane] = []
        now = time.time()
        self.root = plugged_authority.make_node("the root of both", now)
        self._signer = plugged_authority.make_node("what both sign with", now, self.root)
        self.cacerts = folder / "control/etc/cacerts"
        plugged_authority.write_authority(self.cacerts, self._signer, [self._signer, self.root], [self.root])
        self.gate = Gate(network.host, 15012)

    def prepare(self) -> None:
        kube_mesh_kinds.install(self.bed)
        self.bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})

    # -- objects --------------------------------------------------------------------------------------------------

    def apply(self, document: dict[str, Any], plural: str = "") -> dict[str, Any]:
        return self.bed.apply(path_of(document, plural or _PLURALS[document["kind"]]), document)

    def remove(self, document: dict[str, Any], plural: str) -> None:
        self.bed.call("DELETE", path_of(document, plural))

    def lookup(self, key: Any) -> Any:
        """What volumes ask for: the roots that a control plane has told everybody."""
        if (key.kind, key.name) != ("ConfigMap", ROOTS):
            return None
        path = f"/api/v1/namespaces/{key.namespace}/configmaps/{key.name}"
        return msgspec.convert(eventually_blocking(lambda: self.find(path), 60, every=0.2), ConfigMap, strict=False)

    def find(self, path: str) -> dict[str, Any] | None:
        """What stands there; None where nothing does."""
        try:
            return self.bed.call("GET", path)
        except Answer as answer:
            if answer.status == 404:
                return None
            raise

    def token(self, workload: Workload, audience: str) -> str:
        return self.token_of(NAMESPACE, workload.injected.spec.service_account_name, audience)

    def token_of(self, namespace: str, account: str, audience: str) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        spec = {"audiences": [audience], "expirationSeconds": 3600}
        return str(self.bed.call("POST", path, {"spec": spec})["status"]["token"])

    def address(self, host: str) -> str:
        """The cluster's address of a Service."""
        return str(self.bed.call("GET", f"/api/v1/namespaces/{NAMESPACE}/services/{host}")["spec"]["clusterIP"])

    def workload(
        self,
        name: str,
        app: str,
        config: InjectionConfig | None = None,
        proxy_config: Mapping[str, Any] | None = None,
        **proxy_metadata: str,
    ) -> Workload:
        """A pod of an application, injected, with its Service; the proxy config is what its annotation says."""
        place = self.network.pod(name)
        place.name_hosts({HOST: self.network.host, f"istiod-mizzen.{HOST.partition('.')[2]}": self.network.other})
        settings = {
            "binaryPath": str(find_envoy("", "")),
            "concurrency": 1,
            "terminationDrainDuration": "1s",
            "proxyMetadata": proxy_metadata,
            **(proxy_config or {}),
        }
        probe = {"httpGet": {"path": "/healthy", "port": 80}}
        raw: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {"app": app},
                "annotations": {"proxy.istio.io/config": json.dumps(settings)},
            },
            "spec": {
                "serviceAccountName": app,
                "nodeName": "node",
                "containers": [{"name": app, "image": app, "ports": [{"containerPort": 80}], "readinessProbe": probe}],
            },
        }
        config = config or InjectionConfig()
        outcome = inject_pod(raw, config=config, mesh=mesh_config(lay_over([{"revision": config.revision}])))
        assert outcome.injected, outcome
        status = {"phase": "Running", "podIP": place.address, "podIPs": [{"ip": place.address}]}
        status["conditions"] = [{"type": "Ready", "status": "True"}]
        self._make(app, outcome.pod, status)
        injected = msgspec.convert({**outcome.pod, "status": status}, PodObject, dec_hook=decode_scalar)
        made = self.workloads[name] = Workload(self, name, injected, place)
        made.lay_volumes()
        made.application = place.start(sys.executable, APP, "serve", 80, name, log="application")
        self.apply(service(NAMESPACE, app))
        return made

    def _make(self, app: str, pod: dict[str, Any], status: dict[str, Any]) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": app, "namespace": NAMESPACE}}
        self.apply(account)
        self.apply(pod)
        path = path_of(pod, "pods") + "/status"
        self.bed.call("PATCH", path, {"status": status}, kind="application/merge-patch+json")

    def withdraw(self, workload: Workload) -> None:
        """Take a pod from its Service, as happens to one that ends."""
        del self.workloads[workload.name]
        self.tell_endpoints(workload.injected.metadata.labels["app"])

    def tell_endpoints(self, app: str) -> None:
        """That the application's pods are ready."""
        pods = [one for one in self.workloads.values() if one.injected.metadata.labels["app"] == app]
        endpoints = [
            {
                "addresses": [one.place.address],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "name": one.name, "namespace": NAMESPACE},
            }
            for one in pods
        ]
        labels = {"kubernetes.io/service-name": app}
        self.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": f"{app}-1", "namespace": NAMESPACE, "labels": labels},
                "addressType": "IPv4",
                "endpoints": endpoints,
                "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
            }
        )

    # -- control planes -------------------------------------------------------------------------------------------

    def mizzen(self, *, plugged: bool = True, **variables: str) -> Plane:
        """Mizzen's control plane, ready; without `plugged` its authority is that of the cluster's Secrets."""
        ports = {flag: own_port() for flag in istio_programs.PORTS}
        command = [sys.executable, "-m", "mizzen", "discovery", "--kubeconfig", str(self.bed.kubeconfig())]
        command += [f"--{flag}=127.0.0.1:{port}" for flag, port in ports.items()]
        command += ["--mutualGRPCAddr", "", "--ctrlz_port", "0", "--httpsAddr", ""]
        roots = self.cacerts if plugged else self.folder / "nothing"
        environ = {**os.environ, "ROOT_CA_DIR": str(roots), "POD_NAME": "mizzen-1", **variables}
        return self._start(Plane(Process(command, self.folder / "mizzen.log", environ, self.folder), ports))

    def istiod(self, *, plugged: bool = True, **variables: str) -> Plane:
        """Istio's control plane, ready; without `plugged` it makes itself a root."""
        ports = {flag: own_port() for flag in istio_programs.PORTS}
        folder = self.cacerts.parents[1] if plugged else self.folder
        return self._start(istio_programs.start_discovery(folder, self.bed.kubeconfig(), ports, **variables))

    def _start(self, plane: Plane) -> Plane:
        self.planes.append(plane)
        eventually_blocking(lambda: plane.is_ready, 180, every=0.2)
        return plane

    def end(self) -> None:
        self.gate.close()
        for plane in self.planes:
            plane.process.kill()


@contextlib.contextmanager
def running(bed: Bed, network: Network, folder: pathlib.Path) -> Iterator[Mesh]:
    """A mesh without pods or control planes yet."""
    mesh = Mesh(bed, network, folder)
    try:
        mesh.prepare()
        yield mesh
    finally:
        mesh.end()


class Calls:
    """Requests without end from a pod to the application behind an address, and what each of them met."""

    def __init__(self, workload: Workload, address: str) -> None:
        self._process = workload.place.start(sys.executable, APP, "call", f"http://{address}/", log="calls")

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._process.log.splitlines() if line.endswith("}")]

    @property
    def failures(self) -> list[dict[str, Any]]:
        return [one for one in self.all if one["code"] != 200]

    def last_names(self, count: int) -> set[str]:
        """Who answered the last requests."""
        return {one.get("name", "") for one in self.all[-count:]}

    def until_since(self, begun: float, count: int) -> None:
        """Wait until so many were made after a moment."""
        eventually_blocking(lambda: sum(one["at"] > begun for one in self.all) >= count, 120, every=0.2)

    def end(self) -> None:
        self._process.kill()
