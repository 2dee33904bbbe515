"""The kinds of calls that attempts are made of, each performed by a program in a pod.

`Request` is HTTP as bytes, `Captured` HTTP through the caller's own sidecar, `Line` bare TCP, `Discovery` and `Signing`
speak to control planes. Every HTTP request bears a case of its own, in `x-case` for the program that answers and in
`user-agent` for access logs.
"""

import base64
import json
from collections.abc import Iterable
from typing import Any

import msgspec
from attack_attempts import Result
from attack_manifests import PLANE_ROOT, PLANE_TOKEN_KEY
from attack_material import Keyring, Stamp
from attack_mesh import AttackMesh
from certificate_requests import make_request
from cryptography import x509
from eventually import eventually_blocking
from traffic_programs import new_case

from mizzen import protos
from mizzen.ca.certificates import Signer
from mizzen.local import observer

Pairs = tuple[tuple[str, str], ...]

_discovery = protos.package("envoy.service.discovery.v3")
_auth = protos.package("istio.v1.auth")
_ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
_CSR = "/istio.v1.auth.IstioCertificateService/CreateCertificate"
SECRET = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
DEBUG = "istio.io/debug"
_CONTROL_PLANE = "istiod.istio-system.svc"
_SHORT = 160


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """HTTP in bytes: to a pod's address, past any Service, with the papers `by` where that is not empty."""

    pod: str
    port: int = 8080
    by: str = ""
    source: str = "mallory"
    protocol: str = "h1"
    method: str = "GET"
    path: str = "/"
    host: str = "anything.example"
    headers: Pairs = ()
    pseudo: Pairs = ()
    """HTTP/2: pseudo headers in place of the usual ones."""
    raw: str = ""
    """HTTP/1: the bytes, with {case} in them, in place of all of the above."""
    sni: str = ""
    answers: int = 1
    program: str = ""
    """The pod whose program must have got it, if not the one called."""
    marks: str = "{case}"
    """How the smuggled request's case is told from that of the request around it."""

    def perform(self, mesh: AttackMesh) -> Result:
        case = new_case()
        found = mesh[self.source].order(**_with_addresses(self.order(mesh, case), mesh))
        wanted = self.marks.format(case=case)
        arrived = bool(mesh[self.program or self.pod].received(wanted))
        answers = [f"{each['status']} {each['body'][:_SHORT]}".strip() for each in found["answers"]]
        text = " | ".join([*answers, *([found["error"]] if found["error"] else [])])
        return Result(let_in=arrived, answer=_shorten(text), case=case, pod=self.pod)

    def order(self, mesh: AttackMesh, case: str) -> dict[str, Any]:
        """What the program in the source's pod is told."""
        order: dict[str, Any] = {"address": f"{mesh.address(self.pod)}:{self.port}"}
        if self.by:
            order["tls"] = mesh.keyring.tls(self.by, self.protocol) | ({"sni": self.sni} if self.sni else {})
        marked = (("x-case", case), ("user-agent", case), *self.headers)
        if self.protocol == "h2":
            usual = ((":method", self.method), (":scheme", "http"), (":authority", self.host), (":path", self.path))
            return order | {"do": "h2", "headers": [*(self.pseudo or usual), *marked]}
        head = [f"{self.method} {self.path} HTTP/1.1", f"Host: {self.host}"]
        text = "\r\n".join([*head, *(f"{name}: {value}" for name, value in marked), "", ""])
        return order | {"do": "raw", "text": self.raw.replace("{case}", case) or text, "answers": self.answers}


class Observed(Request, frozen=True, kw_only=True):
    """A request that is let in anyway: what counts is whether the program saw what was forged."""

    forged: str
    """The text that must not reach the program in any header named below."""
    watched: tuple[str, ...]

    def perform(self, mesh: AttackMesh) -> Result:
        result = super().perform(mesh)
        seen = mesh[self.program or self.pod].received(result.case)
        assert seen, f"the request itself did not arrive: {result.answer}"
        headers = {name: seen[0].header(name) for name in self.watched}
        found = any(self.forged in value for value in headers.values())
        return Result(let_in=found, answer=f"arrived with {headers}", case=result.case, pod=self.pod)


class Attributed(Request, frozen=True, kw_only=True):
    """A request that is let in anyway: what counts is whether metrics take it for one of `account`."""

    account: str

    def perform(self, mesh: AttackMesh) -> Result:
        before = self._count(mesh)
        assert super().perform(mesh).let_in
        eventually_blocking(lambda: self._count(mesh)[0] > before[0])
        own = self._count(mesh)[1]
        return Result(let_in=own > before[1], answer=f"counted for others than {self.account}", pod=self.pod)

    def _count(self, mesh: AttackMesh) -> tuple[int, int]:
        """All requests that the Envoy counted, and those of the account."""
        text = observer.ask_envoy(mesh.pod(self.pod), "/stats/prometheus?filter=istio_requests_total")
        lines = [line for line in text.splitlines() if line.startswith("istio_requests_total{")]
        own = [line for line in lines if f"/sa/{self.account}" in line or f'"{self.account};' in line]
        return _sum(lines), _sum(own)


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """HTTP from a program with a sidecar, by a Service's name or by whatever address."""

    source: str
    url: str
    pod: str
    headers: Pairs = ()

    def perform(self, mesh: AttackMesh) -> Result:
        case = new_case()
        url = self.url.replace("$(pod)", mesh.address(self.pod))
        answer = mesh[self.source].get(url, headers=(("user-agent", case), *self.headers), case=case)
        arrived = bool(mesh[self.pod].received(case))
        text = f"{answer.status} {answer.body[:_SHORT]} {answer.error}".strip()
        return Result(let_in=arrived, answer=_shorten(text), case=case, pod=self.pod)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line over TCP, which the program sends back."""

    pod: str
    port: int
    source: str = "mallory"
    by: str = ""
    address: str = ""
    """Where to connect, if not to the pod."""

    def perform(self, mesh: AttackMesh) -> Result:
        case = new_case()
        more = {"tls": mesh.keyring.tls(self.by, "tcp")} if self.by else {}
        address = f"{self.address or mesh.address(self.pod)}:{self.port}"
        (line,) = mesh[self.source].connect(address, say=f"{case}\n", **more)
        arrived = bool(mesh[self.pod].received(case))
        return Result(let_in=arrived, answer=line.error or " ".join(line.lines), case=case, pod=self.pod)


# -- control planes ---------------------------------------------------------------------------------------------------


class _Plane(msgspec.Struct, frozen=True, kw_only=True):
    """Which control plane is called, and as whom."""

    plane: str = "mesh"
    """`mesh`: the mesh's own on its secure port; `mutual`, `plain` and `token`: ports of the one in the pod `plane`."""
    token: str = "good"
    token_of: tuple[str, str] = ("vault", "front")
    papers: str = ""
    """Client certificate by its name in the keyring; only for `mutual`."""

    @property
    def pod(self) -> str:
        return ""

    def order(self, mesh: AttackMesh) -> dict[str, Any]:
        order: dict[str, Any] = {"do": "rpc"}
        stamp = mesh.stamp if self.plane == "mesh" else Stamp(PLANE_TOKEN_KEY)
        token = stamp.token(self.token, *self.token_of)
        if token and self.plane != "mutual":
            order["metadata"] = [("authorization", f"Bearer {token}")]
        if self.plane == "mesh":
            tls = {"ca": mesh.roots, "name": _CONTROL_PLANE}
            return order | {"address": f"{_CONTROL_PLANE}:15012", "tls": tls}
        address = mesh.address("plane")
        if self.plane == "plain":
            return order | {"address": f"{address}:15010"}
        tls = {"ca": PLANE_ROOT.pem.decode(), "name": _CONTROL_PLANE}
        if self.plane == "token":
            return order | {"address": f"{address}:15012", "tls": tls}
        return order | {"address": f"{address}:15011", "tls": tls | dict(plane_keyring().papers(self.papers))}

    def shake_hands(self, mesh: AttackMesh) -> str:
        """How the port ends TLS with these papers: gRPC's servers close without an alert, and its clients say less."""
        tls = {"alpn": "h2", "sni": _CONTROL_PLANE, "settle": "5"} | dict(plane_keyring().papers(self.papers))
        found = mesh["mallory"].order("raw", address=f"{mesh.address('plane')}:15011", text="", tls=tls)
        return f"TLS {found['error']}"


def plane_keyring() -> Keyring:
    """Papers under the root of the control plane in the pod `plane`."""
    root = PLANE_ROOT.certificate
    return Keyring(Signer(certificate=root, key=PLANE_ROOT.key, intermediates=(), roots=(root,)))


class Discovery(_Plane, frozen=True, kw_only=True):
    """A discovery stream: whoever says it is `node` asks for resources; to get one of them is to get in."""

    node: tuple[str, str, str] = ("front", "vault", "front")
    """Pod, namespace and service account, as the node claims."""
    kind: str = "sidecar"
    labels: Pairs = ()
    type_url: str = CLUSTER
    names: tuple[str, ...] = ()

    sought: str = ""
    """The one resource that counts, where more are asked for."""
    id_namespace: str = ""
    """The namespace in the node's id, where it is not that of its metadata."""
    says_namespace: bool = True
    """Whether the node's metadata tell a namespace and an account at all."""
    delta: bool = True

    def perform(self, mesh: AttackMesh) -> Result:
        message = base64.b64encode(protos.encode(self._request(mesh))).decode()
        method = "DeltaAggregatedResources" if self.delta else "StreamAggregatedResources"
        order = self.order(mesh) | {"method": _ADS + method, "request": message, "streams": True}
        answer = mesh["mallory"].order(**order)
        if answer["code"] != "OK":
            ended = self.shake_hands(mesh) if self.papers and answer["code"] == "UNAVAILABLE" else answer["details"]
            return Result(let_in=False, answer=_shorten(f"{answer['code']} {ended}"))
        found, absent = self._read(base64.b64decode(answer["answer"]))
        let_in = self.sought in found if self.sought else bool(found)
        return Result(let_in=let_in, answer=f"OK {len(found)} resources, absent: {' '.join(absent)}".strip())

    def _read(self, data: bytes) -> tuple[list[str], list[str]]:
        """The names of what came and of what was said not to be there."""
        if self.delta:
            changes = _discovery.DeltaDiscoveryResponse.FromString(data)
            return [resource.name for resource in changes.resources], list(changes.removed_resources)
        state = _discovery.DiscoveryResponse.FromString(data)
        return [protos.unpack(packed).name for packed in state.resources], []

    def _request(self, mesh: AttackMesh) -> Any:
        name, namespace, account = self.node
        address = next((pod.address for pod in mesh.local.state.pods if pod.name == name), "10.9.9.9")
        claims = {"NAMESPACE": namespace, "SERVICE_ACCOUNT": account} if self.says_namespace else {}
        rest = {"ISTIO_VERSION": "1.32.0", "LABELS": dict(self.labels), "MIZZEN_DIALECT": "envoy"}
        where = self.id_namespace or namespace
        node_id = f"{self.kind}~{address}~{name}.{where}~{where}.svc.cluster.local"
        node = protos.from_json(
            protos.message_class("envoy.config.core.v3.Node"), {"id": node_id, "metadata": claims | rest}
        )
        if self.delta:
            return _discovery.DeltaDiscoveryRequest(
                node=node, type_url=self.type_url, resource_names_subscribe=self.names
            )
        return _discovery.DiscoveryRequest(node=node, type_url=self.type_url, resource_names=self.names)


class Signing(_Plane, frozen=True, kw_only=True):
    """A certificate request; to get a certificate for `wanted` is to get in."""

    wanted: str
    asked: tuple[str, ...] = ()
    """URIs in the request itself."""
    impersonated: str = ""
    life: int = 3600
    csr: str = ""
    """A request as text in place of a good one."""

    def perform(self, mesh: AttackMesh) -> Result:
        metadata = {"ImpersonatedIdentity": self.impersonated} if self.impersonated else {}
        request = _auth.IstioCertificateRequest(
            csr=self.csr or make_request(names=self.asked), validity_duration=self.life, metadata=metadata
        )
        message = base64.b64encode(protos.encode(request)).decode()
        answer = mesh["mallory"].order(**self.order(mesh) | {"method": _CSR, "request": message})
        if answer["code"] != "OK":
            return Result(let_in=False, answer=_shorten(f"{answer['code']} {answer['details']}"))
        response = _auth.IstioCertificateResponse.FromString(base64.b64decode(answer["answer"]))
        names = read_names(response.cert_chain[0])
        return Result(let_in=self.wanted in names, answer=f"OK a certificate for {' '.join(names)}")


def read_names(pem: str) -> list[str]:
    """The URIs in a certificate."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.UniformResourceIdentifier)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page of an HTTP server that is not a workload's; a good answer is to get in."""

    pod: str
    port: int
    path: str
    method: str = "GET"
    source: str = "mallory"
    address: str = ""
    token: str = "none"
    token_of: tuple[str, str] = ("istio-system", "admin")
    headers: Pairs = ()
    by: str = ""

    def perform(self, mesh: AttackMesh) -> Result:
        token = Stamp(PLANE_TOKEN_KEY).token(self.token, *self.token_of)
        pairs = [("Host", "page"), *self.headers, *([("Authorization", f"Bearer {token}")] if token else [])]
        head = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
        head.append("Content-Length: 0")
        order: dict[str, Any] = {"address": f"{self.address or mesh.address(self.pod)}:{self.port}"}
        if self.by:
            order["tls"] = mesh.keyring.tls(self.by)
        text = "\r\n".join([*head, "", ""])
        found = mesh[self.source].order("raw", text=text, **order)
        answers = [f"{each['status']} {each['body'][:_SHORT]}".strip() for each in found["answers"]]
        good = any(each["status"] == 200 for each in found["answers"])
        return Result(let_in=good, answer=_shorten(" ".join([*answers, found["error"]])), pod=self.pod)


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """A connection to a Unix socket of a pod's file system."""

    path: str
    of: str = "front"
    pod: str = ""

    def perform(self, mesh: AttackMesh) -> Result:
        error = mesh["mallory"].order("unix", path=f"{mesh.pod(self.of).directory}/{self.path}")
        return Result(let_in=not error, answer=error or "connected")


class Handshake(msgspec.Struct, frozen=True, kw_only=True):
    """TLS with a gateway; to be shown a certificate for `name` is to get in."""

    pod: str
    port: int
    name: str
    roots: str

    def perform(self, mesh: AttackMesh) -> Result:
        address = f"{mesh.address(self.pod)}:{self.port}"
        tls = {"ca": self.roots, "sni": self.name}
        (line,) = mesh["mallory"].connect(address, say="GET / HTTP/1.0\r\n\r\n", tls=tls, timeout=30.0)
        shown = line.peer.get("commonName", "")
        return Result(let_in=bool(shown) and shown == self.name, answer=line.error or f"certificate of {shown}")


def _sum(lines: Iterable[str]) -> int:
    return sum(int(line.rpartition(" ")[2]) for line in lines)


def _with_addresses(order: dict[str, Any], mesh: AttackMesh) -> dict[str, Any]:
    """The order with the addresses of pods in place of `$(POD)`."""
    text = json.dumps(order)
    for pod in mesh.local.state.pods if "$(" in text else ():
        text = text.replace(f"$({pod.name})", pod.address)
    return dict(json.loads(text))


def _shorten(text: str) -> str:
    return " ".join(text.split())
