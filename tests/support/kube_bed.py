"""A real Kubernetes API server with its etcd, both on loopback, for one run of the tests.

Out: a base URL, the authority to trust, an administrator's token and client certificate; ways to stop, start and kill
the server, to forget the past (compaction), and to call it. It authorises by RBAC and admits as it does by default, but
without the service-account controller of a whole cluster, nothing makes service accounts: tests do.
"""

import base64
import contextlib
import json
import os
import pathlib
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import IO, Any

import pytest
import yaml
from claims import own_port
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from eventually import eventually_blocking
from traffic_certificates import Authority

PARTS = pathlib.Path(os.environ.get("KUBE_PARTS", pathlib.Path(__file__).parents[2] / ".venv" / "kube"))
ADMIN = "administrator-of-this-run"
ISSUER = "https://kubernetes.default.svc.cluster.local"
AUDIT_LOG = "audit.log"
"""In the bed's folder: a line of JSON for every request of a service account."""
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}],
}
_OBJECTS = ("/registry/", "/registry0")
"""The keys of objects in the store: from the one to before the other."""
_START_SECONDS = 180.0
_ANSWER_SECONDS = 120.0


def _said(body: bytes) -> dict[str, Any]:
    """What a refusal says; a path that nobody serves is refused in plain text."""
    try:
        found: dict[str, Any] = json.loads(body)
    except ValueError:
        found = {"message": body.decode(errors="replace").strip()}
    return found


class Answer(Exception):
    """The server's refusal of a call."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status, self.body = status, body


class Bed:
    """One etcd and one API server in a folder."""

    def __init__(self, folder: pathlib.Path, *flags: str) -> None:
        """`flags` are for the server, besides those that all have."""
        self.folder, self._more_flags = folder, flags
        self.authority = Authority("kubernetes of this run")
        self._etcd_port, self._etcd_peer, self.port = own_port(), own_port(), own_port()
        self._running: dict[str, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
        self._write_files()
        self._context = ssl.create_default_context(cadata=self.authority.pem)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def etcd(self) -> str:
        return f"http://127.0.0.1:{self._etcd_port}"

    # -- processes ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._spawn("etcd", self._etcd_flags())
        eventually_blocking(lambda: self._answers(f"{self.etcd}/health"), _START_SECONDS)
        self.start_server()

    def start_server(self) -> None:
        """Start the API server and wait until it is ready."""
        self._spawn("kube-apiserver", self._server_flags())
        eventually_blocking(lambda: self._answers(f"{self.url}/readyz"), _START_SECONDS, every=0.2)

    def stop_server(self, number: int = signal.SIGTERM) -> None:
        self._end("kube-apiserver", number)

    @contextlib.contextmanager
    def silent_server(self) -> Iterator[None]:
        """Meanwhile the server takes connections and questions, and says nothing."""
        process, _ = self._running["kube-apiserver"]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def restart_etcd(self) -> None:
        """Kill the store below a server that goes on, and start it again."""
        self._end("etcd", signal.SIGKILL)
        self._spawn("etcd", self._etcd_flags())
        eventually_blocking(lambda: self._answers(f"{self.etcd}/health"), _START_SECONDS)
        eventually_blocking(lambda: self._answers(f"{self.url}/readyz"), _START_SECONDS, every=0.2)

    def stop(self) -> None:
        for name in ("kube-apiserver", "etcd"):
            if name in self._running:
                self._end(name, signal.SIGKILL)

    def _spawn(self, name: str, flags: list[str]) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        process = subprocess.Popen([PARTS / name, *flags], stdout=log, stderr=log, cwd=self.folder)
        self._running[name] = (process, log)

    def _end(self, name: str, number: int) -> None:
        process, log = self._running.pop(name)
        process.send_signal(number)
        process.wait()
        log.close()

    def _answers(self, url: str) -> bool:
        for process, _ in self._running.values():
            assert process.poll() is None, f"ended: {process.args!r}; see its log in {self.folder}"
        try:
            with urllib.request.urlopen(self._request("GET", url), context=self._context_of(url), timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _context_of(self, url: str) -> ssl.SSLContext | None:
        return self._context if url.startswith("https:") else None

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, body: Any = None, *, token: str = ADMIN, kind: str = "") -> dict[str, Any]:
        """The JSON that the server answers with; raises Answer for a refusal."""
        request = self._request(method, self.url + path, body, token=token, kind=kind)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=_ANSWER_SECONDS) as answer:
                result: dict[str, Any] = json.load(answer)
                return result
        except urllib.error.HTTPError as error:
            raise Answer(error.code, _said(error.read())) from None

    def apply(self, path: str, body: dict[str, Any], *, token: str = ADMIN, manager: str = "tests") -> dict[str, Any]:
        """Server-side apply of an object at its path."""
        kind = "application/apply-patch+yaml"
        return self.call("PATCH", f"{path}?fieldManager={manager}&force=true", body, token=token, kind=kind)

    def compact(self) -> None:
        """Let etcd forget all revisions but the last."""
        key = {"key": "AA==", "range_end": "AA==", "limit": 1}
        revision = self.ask_etcd("/v3/kv/range", key)["header"]["revision"]
        self.ask_etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def stored(self, **query: Any) -> list[dict[str, Any]]:
        """The objects in the store, as it tells of its keys and values."""
        first, last = (base64.b64encode(one.encode()).decode() for one in _OBJECTS)
        found: list[dict[str, Any]] = self.ask_etcd("/v3/kv/range", {"key": first, "range_end": last, **query})["kvs"]
        return found

    def stored_writes(self) -> dict[str, int]:
        """How often each object was written, by its key in the store, which ends on its namespace and its name."""
        found = self.stored(keys_only=True)
        return {base64.b64decode(one["key"]).decode(): int(one["version"]) for one in found}

    def ask_etcd(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What the store below the server answers."""
        with urllib.request.urlopen(self._request("POST", self.etcd + path, body), timeout=_ANSWER_SECONDS) as answer:
            result: dict[str, Any] = json.load(answer)
            return result

    def _request(
        self, method: str, url: str, body: Any = None, *, token: str = ADMIN, kind: str = ""
    ) -> urllib.request.Request:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind or "application/json"}
        if token and url.startswith("https:"):
            headers["Authorization"] = f"Bearer {token}"
        return urllib.request.Request(url, data, headers, method=method)

    # -- files ----------------------------------------------------------------------------------------------------

    def kubeconfig(self, name: str = "kubeconfig", **user: Any) -> pathlib.Path:
        """A kubeconfig for this server; by the administrator's token if the user is not told."""
        path = self.folder / name
        cluster = {"server": self.url, "certificate-authority": str(self.folder / "ca.crt")}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bed", "cluster": cluster}],
            "users": [{"name": "user", "user": user or {"token": ADMIN}}],
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
            "current-context": "bed",
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def _write_files(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        certificate, key = self.authority.issue("127.0.0.1", "localhost", "kubernetes.default.svc")
        admin, admin_key = self.authority.issue("administrator", organization="system:masters")
        accounts = rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        files = {
            "ca.crt": self.authority.pem,
            "server.crt": certificate,
            "server.key": key,
            "admin.crt": admin,
            "admin.key": admin_key,
            "accounts.key": accounts.decode(),
            "audit.yaml": json.dumps(_AUDIT),
            "tokens.csv": f'{ADMIN},administrator,administrator,"system:masters"\n',
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def _etcd_flags(self) -> list[str]:
        peer = f"http://127.0.0.1:{self._etcd_peer}"
        return [
            *("--data-dir", str(self.folder / "etcd")),
            *("--listen-client-urls", self.etcd, "--advertise-client-urls", self.etcd),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
            "--unsafe-no-fsync",
            *("--logger", "zap", "--log-level", "warn"),
        ]

    def _server_flags(self) -> list[str]:
        return [
            f"--etcd-servers={self.etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--cert-dir={self.folder}",
            f"--tls-cert-file={self.folder}/server.crt",
            f"--tls-private-key-file={self.folder}/server.key",
            f"--client-ca-file={self.folder}/ca.crt",
            f"--token-auth-file={self.folder}/tokens.csv",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={self.folder}/accounts.key",
            f"--service-account-signing-key-file={self.folder}/accounts.key",
            "--authorization-mode=Node,RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--shutdown-delay-duration=0s",
            f"--audit-policy-file={self.folder}/audit.yaml",
            f"--audit-log-path={self.folder}/{AUDIT_LOG}",
            *self._more_flags,
        ]


@contextlib.contextmanager
def running(folder: pathlib.Path, *flags: str) -> Iterator[Bed]:
    """A bed that runs; whoever needs one is skipped where the binaries are missing."""
    if not all((PARTS / name).exists() for name in ("etcd", "kube-apiserver")):
        pytest.skip("no API server and etcd: scripts/test-kube-parts brings them")
    bed = Bed(folder, *flags)
    try:
        bed.start()
        yield bed
    finally:
        bed.stop()
