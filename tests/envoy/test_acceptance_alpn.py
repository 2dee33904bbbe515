"""What upstream Envoys tell each other by ALPN, with real requests from one sidecar to another.

A request in HTTP/1.1 and one in HTTP/2 (a gRPC call) must each reach the receiver's chain for HTTP of the mesh. Only
that chain says to the program who called; on a wrong word the receiver takes the chain for TCP, which says nothing, or
speaks another version of HTTP than the caller does. The versions meet on ports that are declared, on ports that are
sniffed, and where a rule says to speak as the client does.
"""

import os
import pathlib
import re
from collections.abc import Iterator

import pytest
import traffic_mesh
from eventually import eventually_blocking
from local_mesh import LocalMesh, running
from traffic_programs import Program, new_case

from mizzen.local import observer

pytestmark = [pytest.mark.envoy, pytest.mark.local]

CALLER = "spiffe://cluster.local/ns/words/sa/caller"

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: words, labels: {{app: {name}}}}}
spec:
  serviceAccountName: {name}
  containers:
    - name: app
      command: [python3, traffic_app.py, $(MIZZEN_ROOT)/control/app.sock, {ports}]
      env: [{{name: POD_NAME, value: {name}}}]
      readinessProbe: {{tcpSocket: {{port: 9093}}}}
      volumeMounts: [{{name: control, mountPath: /control}}]
  volumes: [{{name: control, emptyDir: {{}}}}]
---
"""
PORTS = "http=8080, http=8081, http=8082, grpc=9090, grpc=9091, grpc=9092, grpc=9093"
MESH = """
apiVersion: v1
kind: Namespace
metadata: {name: words, labels: {istio-injection: enabled}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: words}
spec: {mtls: {mode: STRICT}}
---
apiVersion: v1
kind: Service
metadata: {name: callee, namespace: words}
spec:
  selector: {app: callee}
  ports:
  - {name: http-declared, port: 80, targetPort: 8080}
  - {name: any-http, port: 81, targetPort: 8081}
  - {name: http-as-spoken-1, port: 82, targetPort: 8082}
  - {name: grpc-declared, port: 90, targetPort: 9090}
  - {name: any-grpc, port: 91, targetPort: 9091}
  - {name: http-as-spoken-2, port: 92, targetPort: 9092}
  - {name: any-split, port: 93, targetPort: 9093}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: callee, namespace: words}
spec:
  host: callee
  subsets: [{name: one, labels: {app: callee}}, {name: two, labels: {app: callee}}]
  trafficPolicy:
    portLevelSettings:
    - {port: {number: 82}, connectionPool: {http: {useClientProtocol: true}}}
    - {port: {number: 92}, connectionPool: {http: {useClientProtocol: true}}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: callee, namespace: words}
spec:
  hosts: [callee]
  http:
  - match: [{port: 93}]
    route:
    - {destination: {host: callee, subset: one, port: {number: 93}}, weight: 50}
    - {destination: {host: callee, subset: two, port: {number: 93}}, weight: 50}
  - route: [{destination: {host: callee}}]
"""


class Pods:
    """The two programs, and their mesh."""

    def __init__(self, mesh: LocalMesh) -> None:
        self.mesh = mesh
        self.caller, self.callee = (self._program(name) for name in ("caller", "callee"))

    def _program(self, name: str) -> Program:
        pod = self.mesh.pod(f"{name}.words")
        return Program(name, pathlib.Path(pod.directory) / "control" / "app.sock", pod.address)


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    folder = tmp_path_factory.mktemp("words") / "manifests"
    folder.mkdir()
    traffic_mesh.lay_programs(folder)
    text = "".join(POD.format(name=name, ports=PORTS) for name in ("caller", "callee")) + MESH
    (folder / "words.yaml").write_text(text)
    with running(LocalMesh(folder, f"test-words-{os.getpid()}")) as mesh:
        pods = Pods(mesh)
        eventually_blocking(lambda: pods.caller.get("http://callee/").status == 200)
        yield pods
        assert observer.rejections(mesh.proxies()) == {}


def caller_in(text: str) -> str:
    """Who called, as the receiver's sidecar says in x-forwarded-client-cert."""
    found = re.search(r"URI=([^;,]+)", text)
    return found[1] if found else ""


@pytest.mark.parametrize("port", [80, 81, 82])
def test_a_request_in_http_1_arrives_with_its_caller(pods: Pods, port: int) -> None:
    answer = pods.caller.get(f"http://callee:{port}/")
    assert answer.status == 200, answer
    assert answer.seen.caller == CALLER


@pytest.mark.parametrize("port", [90, 91, 92, 93])
def test_a_call_in_http_2_arrives_with_its_caller(pods: Pods, port: int) -> None:
    case = new_case()
    (call,) = pods.caller.grpc(f"callee:{port}", ["hello"], metadata=[("x-case", case)])
    assert (call.code, call.answers) == ("OK", ("callee hello",)), call
    (seen,) = pods.callee.received(case)
    assert caller_in(seen.metadata["x-forwarded-client-cert"]) == CALLER


def test_both_versions_in_turn_each_have_their_own_words(pods: Pods) -> None:
    """Connections are pooled by what was negotiated; no request goes out on one of the other version."""
    for _ in range(5):
        (call,) = pods.caller.grpc("callee:91", ["hello"])
        assert call.code == "OK", call
        answer = pods.caller.get("http://callee:81/")
        assert (answer.status, answer.seen.caller) == (200, CALLER), answer
