"""A mesh for tests of rotation, and the load on it that must not notice any.

A gateway with plain HTTP and TLS leads to `front`, which asks `back` twice for each request: once over connections that
sidecars keep, once over a new one with a handshake of its own. Every certificate lives for `LIFE` seconds only. Callers
from outside come over kept connections, whose loss counts as a failure, and over a new one for every request.
"""

import base64
import contextlib
import datetime
import http.client
import json
import pathlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import whole_files
import yaml
from cryptography import x509
from eventually import eventually_blocking
from local_mesh import LocalMesh
from traffic_certificates import Authority

from mizzen.local import observer, runtime

LIFE = 20
HOST = "shop.example"
_PAUSE = 0.02

_BACK = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"back")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""
_FRONT = """
import http.client, http.server, threading
kept = threading.local()
def ask(host):
    if not hasattr(kept, host):
        setattr(kept, host, http.client.HTTPConnection(host, 80, timeout=60))
    connection = getattr(kept, host)
    connection.request("GET", "/")
    answer = connection.getresponse()
    return answer.status, answer.read().decode()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        try:
            found = [ask("back"), ask("back-anew")]
        except Exception as error:
            found = [(0, repr(error))]
            kept.__dict__.clear()
        body = repr(found).encode()
        self.send_response(200 if all(item == (200, "back") for item in found) else 502)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""

_MESH = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: istio, namespace: istio-system}}
data:
  mesh: |
    defaultConfig:
      proxyMetadata: {{SECRET_TTL: {LIFE}s}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: shop, labels: {{istio-injection: enabled}}}}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {{name: default, namespace: istio-system}}
spec: {{mtls: {{mode: STRICT}}}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: anew, namespace: shop}}
spec:
  host: back-anew
  trafficPolicy: {{connectionPool: {{http: {{maxRequestsPerConnection: 1}}}}}}
"""
_WAY_IN = """
apiVersion: v1
kind: Service
metadata: {name: ingress, namespace: edge}
spec:
  type: LoadBalancer
  selector: {istio: ingress}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: https, port: 443, targetPort: 8443}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ingress, namespace: edge}
spec:
  selector: {matchLabels: {istio: ingress}}
  template:
    metadata:
      labels: {istio: ingress, sidecar.istio.io/inject: "true"}
      annotations: {inject.istio.io/templates: gateway}
    spec:
      serviceAccountName: ingress
      containers: [{name: istio-proxy, image: auto}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: shop, namespace: edge}
spec:
  selector: {istio: ingress}
  servers:
    - {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}
    - port: {number: 443, name: https, protocol: HTTPS}
      hosts: ["*"]
      tls: {mode: SIMPLE, credentialName: shop-tls}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge/shop]
  http: [{route: [{destination: {host: front}}]}]
"""


def _program(name: str, source: str, *services: str) -> list[dict[str, Any]]:
    labels = {"app": name}
    container = {
        "name": "app",
        "command": ["python3", "-c", source],
        "readinessProbe": {"tcpSocket": {"port": 8000}},
    }
    pod = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": name, "containers": [container]}}
    ports = [{"name": "http", "port": 80, "targetPort": 8000}]
    found: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        }
    ]
    for service in services:
        metadata = {"name": service, "namespace": "shop"}
        spec = {"selector": labels, "ports": ports}
        found.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    return found


class Credential:
    """The gateway's Secret and whoever signs for it."""

    def __init__(self, manifests: pathlib.Path) -> None:
        self.authority = Authority("rotation tests")
        self._path = manifests / "secret.yaml"
        self.keys: list[str] = []

    def exchange(self) -> int:
        """Puts another certificate into the Secret; its serial number."""
        certificate, key = self.authority.issue(HOST)
        self.keys.append(key)
        document = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "shop-tls", "namespace": "edge"},
            "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": certificate, "tls.key": key},
        }
        whole_files.put(self._path, yaml.safe_dump(document))
        return x509.load_pem_x509_certificate(certificate.encode()).serial_number


def write_manifests(folder: pathlib.Path) -> Credential:
    """The mesh's manifests, the first Secret among them."""
    folder.mkdir()
    programs = [*_program("front", _FRONT, "front"), *_program("back", _BACK, "back", "back-anew")]
    (folder / "mesh.yaml").write_text("\n---\n".join((_MESH, _WAY_IN, yaml.safe_dump_all(programs))))
    credential = Credential(folder)
    credential.exchange()
    return credential


class Caller:
    """One caller from outside: counts what succeeds, keeps what fails."""

    def __init__(self, address: str, tls: ssl.SSLContext | None, *, keeps: bool) -> None:
        self._address = address
        self._tls = tls
        self._keeps = keeps
        self.answered = 0
        self.serials: list[int] = []
        """Of the certificates that were shown, one a connection."""
        self.failures: list[str] = []

    def run(self, over: threading.Event) -> None:
        """Sends until told to stop."""
        connection: http.client.HTTPConnection | None = None
        while not over.is_set():
            try:
                connection = connection or self._connect()
                self._ask(connection)
                lost = not self._keeps
            except (OSError, http.client.HTTPException) as failed:
                self.failures.append(f"{type(failed).__name__}: {failed}")
                lost = True
            if connection is not None and lost:
                connection.close()
                connection = None
            over.wait(_PAUSE)
        if connection is not None:
            connection.close()

    def is_answered(self) -> bool:
        """Whether one request is."""
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(self._connect()) as connection:
            self._ask(connection)
        return self.answered > 0

    def _connect(self) -> http.client.HTTPConnection:
        host, _, port = self._address.rpartition(":")
        connection = http.client.HTTPConnection(HOST, timeout=60)
        # A kept connection that the server ends must not be opened again in silence.
        connection.auto_open = 0
        plain = socket.create_connection((host, int(port)), timeout=60)
        connection.sock = self._tls.wrap_socket(plain, server_hostname=HOST) if self._tls is not None else plain
        if isinstance(connection.sock, ssl.SSLSocket):
            shown = x509.load_der_x509_certificate(connection.sock.getpeercert(True) or b"")
            self.serials.append(shown.serial_number)
        return connection

    def _ask(self, connection: http.client.HTTPConnection) -> None:
        connection.request("GET", "/")
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == 200:
            self.answered += 1
        else:
            self.failures.append(f"{answer.status} {body[:200]!r}")


class Load:
    """Every kind of caller at work."""

    def __init__(self, mesh: LocalMesh, authority: Authority) -> None:
        (plain,), (secure,) = (mesh.published("ingress", port) for port in (80, 443))
        ways = ((plain, None), (secure, ssl.create_default_context(cadata=authority.pem)))
        for way in ways:
            eventually_blocking(lambda way=way: Caller(*way, keeps=False).is_answered())
        self.kept = [Caller(*way, keeps=True) for way in ways]
        self.anew = [Caller(*way, keeps=False) for way in ways]
        self._over = threading.Event()

    @property
    def callers(self) -> list[Caller]:
        return [*self.kept, *self.anew]

    @property
    def failures(self) -> list[str]:
        return [text for caller in self.callers for text in tuple(caller.failures)]

    @property
    def answered(self) -> int:
        return sum(caller.answered for caller in self.callers)

    def wait_for(self, count: int) -> None:
        """Until every caller has been answered so many times more."""
        wanted = [(caller, caller.answered + count) for caller in self.callers]
        eventually_blocking(lambda: self.failures or all(c.answered >= number for c, number in wanted), 120)

    @contextlib.contextmanager
    def running(self) -> Iterator["Load"]:
        """At work inside the block."""
        threads = [threading.Thread(target=caller.run, args=(self._over,), daemon=True) for caller in self.callers]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in threads:
                thread.join(30)


def _secret(pod: runtime.Pod, name: str) -> dict[str, Any]:
    """A secret that an Envoy has in use, as its dump shows it."""
    dump = json.loads(observer.ask_envoy(pod, "/config_dump?resource=dynamic_active_secrets"))
    return next((found["secret"] for found in dump.get("configs", ()) if found["name"] == name), {})


def chain(pod: runtime.Pod) -> list[str]:
    """The certificates that a proxy shows, leaf first, by serial number."""
    return _serials(_secret(pod, "default").get("tls_certificate", {}).get("certificate_chain"))


def roots(pod: runtime.Pod) -> list[str]:
    """The roots that a proxy trusts, by serial number, sorted."""
    return sorted(_serials(_secret(pod, "ROOTCA").get("validation_context", {}).get("trusted_ca")))


def revocations(pod: runtime.Pod) -> bytes:
    """The revocation lists that a proxy heeds, as PEM."""
    found = _secret(pod, "ROOTCA").get("validation_context", {}).get("crl", {})
    return base64.b64decode(found.get("inline_bytes", ""))


def _serials(source: Mapping[str, str] | None) -> list[str]:
    pem = base64.b64decode((source or {}).get("inline_bytes", ""))
    return [serial(found) for found in x509.load_pem_x509_certificates(pem)] if pem else []


def serial(certificate: x509.Certificate) -> str:
    return f"{certificate.serial_number:x}"


def wait_in_every_proxy(mesh: LocalMesh, check: Callable[[runtime.Pod], bool], seconds: float = 180.0) -> None:
    eventually_blocking(lambda: all(check(pod) for pod in mesh.proxies()), seconds)


def now() -> float:
    return datetime.datetime.now(datetime.UTC).timestamp()
