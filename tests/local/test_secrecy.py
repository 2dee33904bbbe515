"""No way out of a running mesh shows a secret: logs at their loudest, dumps, debug pages, reports, offline commands.

Every key, token and login that the mesh has, and had, is known here and searched for in all of it.
"""

import base64
import json
import os
import pathlib
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
import yaml
from eventually import eventually_blocking
from local_mesh import LocalMesh, running
from plugged_authority import make_node, write_authority
from rotation_mesh import LIFE, Credential, Load, chain, now, serial, wait_in_every_proxy, write_manifests
from secrecy import Known

from mizzen.ca import certificates
from mizzen.local import observer

pytestmark = [pytest.mark.local, pytest.mark.envoy, pytest.mark.timeout(600)]

LOGINS = '{"auths":{"registry.example":{"auth":"dXNlcjphLXBhc3N3b3JkLXRoYXQtaXMta25vd24="}}}'
BROKEN = "-----BEGIN PRIVATE KEY-----\nTUlHSEFnRUFNQk1HQnlxR1NNNDlBZ0VHQ0Nx!!\nS001MEF3RUhCRzB3YXdJQkFRUWc\n"
LEVELS = ",".join(f"{scope}:debug" for scope in ("default", "ads", "ca", "config", "files", "jwks"))
PROXY_PATHS = (
    "/config_dump?include_eds",
    "/certs",
    "/stats",
    "/stats/prometheus",
    "/server_info",
    "/clusters",
    "/memory",
)
COMMANDS = (
    *(("proxy-config", "secret", "{pod}", "-o", form) for form in ("table", "short", "json", "yaml")),
    *(("proxy-config", kind, "{pod}", "-o", "json") for kind in ("all", "listener", "cluster", "bootstrap", "ecds")),
    *(("describe", "pod", "{pod}"),),
)


def extra_manifests() -> str:
    """A module that needs logins, on the gateway; a Secret whose key is broken, and one whose form is."""
    login = base64.b64encode(LOGINS.encode()).decode()
    secrets = [
        {"metadata": {"name": "pull", "namespace": "edge"}, "data": {".dockerconfigjson": login}},
        {"metadata": {"name": "broken", "namespace": "edge"}, "stringData": {"tls.crt": BROKEN, "tls.key": BROKEN}},
        {"metadata": {"name": "worse", "namespace": "edge"}, "data": {"tls.key": BROKEN}, "type": ["x"]},
    ]
    plugin = {
        "apiVersion": "extensions.istio.io/v1alpha1",
        "kind": "WasmPlugin",
        "metadata": {"name": "module", "namespace": "edge"},
        "spec": {
            "url": "oci://127.0.0.1:9/nobody",
            "imagePullSecret": "pull",
            "failStrategy": "FAIL_OPEN",
            "selector": {"matchLabels": {"istio": "ingress"}},
        },
    }
    gateway = {
        "apiVersion": "networking.istio.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "broken", "namespace": "edge"},
        "spec": {
            "selector": {"istio": "ingress"},
            "servers": [
                {
                    "port": {"number": 443, "name": "https-broken", "protocol": "HTTPS"},
                    "hosts": ["broken.example"],
                    "tls": {"mode": "SIMPLE", "credentialName": "broken"},
                }
            ],
        },
    }
    return yaml.safe_dump_all(
        [*({"apiVersion": "v1", "kind": "Secret", **found} for found in secrets), plugin, gateway]
    )


class Mesh:
    """The running mesh, and everything in it that is secret."""

    def __init__(self, local: LocalMesh, credential: Credential, authority: pathlib.Path) -> None:
        self.local = local
        self.credential = credential
        self.authority = authority
        self.known = Known()
        self.known.add_text("logins", LOGINS)
        self.known.add_broken_key("broken key", BROKEN)

    def learn(self) -> None:
        """Take up every secret that is in use now."""
        control = self.local.layout.control
        state = json.loads((control / "authority.json").read_text())
        for name in ("current", "successor"):
            if state.get(name):
                self.known.add_key(f"{name} signer", state[name]["key"])
        self.known.add_key("token key", (control / "token-key.pem").read_text())
        self.known.add_text("client token", (control / "token").read_text())
        for key in self.credential.keys:
            self.known.add_key("gateway's key", key)
        for pod in self.local.proxies():
            root = pathlib.Path(pod.directory)
            self.known.add_key(f"{pod.name}'s key", (root / "etc/istio/proxy/identity/key.pem").read_text())
            self.known.add_text(f"{pod.name}'s token", (root / "var/run/secrets/tokens/istio-token").read_text())

    def plug_in(self) -> str:
        """An authority of the operator's, after one whose files were mixed up; the issuing certificate's number."""
        root = make_node("operator's root", now())
        issuing = make_node("operator's intermediate", now(), root)
        private = certificates.encode_key(issuing.key)
        self.known.add_key("plugged key", private.decode())
        write_authority(self.authority, issuing, [issuing], [root])
        (self.authority / "ca-cert.pem").write_bytes(private)
        control_log = self.local.layout.control_log
        eventually_blocking(lambda: "plugged-in authority stays" in control_log.read_text(), 60)
        write_authority(self.authority, issuing, [issuing], [root])
        return serial(issuing.certificate)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    folder = tmp_path_factory.mktemp("secrecy")
    credential = write_manifests(folder / "manifests")
    (folder / "manifests" / "extra.yaml").write_text(extra_manifests())
    text = (folder / "manifests" / "mesh.yaml").read_text()
    template = "inject.istio.io/templates: gateway"
    loud = text.replace(template, f"{template}, sidecar.istio.io/agentLogLevel: 'default:debug'")
    (folder / "manifests" / "mesh.yaml").write_text(loud)
    local = LocalMesh(folder / "manifests", f"test-secrecy-{os.getpid()}")
    local.environ |= {
        "MAX_WORKLOAD_CERT_TTL": f"{LIFE}s",
        "MIZZEN_ROOT_OVERLAP": "5s",
        "ROOT_CA_DIR": str(folder / "cacerts"),
    }
    with running(local):
        found = Mesh(local, credential, folder / "cacerts")
        local.run("admin", "log", "--mesh", local.name, "--level", LEVELS)
        for pod in local.proxies():
            observer.ask_envoy(pod, "/logging?level=debug", "POST")
        live_through_everything(found)
        yield found


def live_through_everything(mesh: Mesh) -> None:
    """Requests, another Secret, other leaves, another authority: whatever handles a key has handled one."""
    mesh.learn()
    with Load(mesh.local, mesh.credential.authority).running() as load:
        load.wait_for(5)
        wanted = mesh.credential.exchange()
        eventually_blocking(lambda: load.failures or load.anew[1].serials[-1] == wanted, 60)
        mesh.learn()
        issuing = mesh.plug_in()
        wait_in_every_proxy(mesh.local, lambda pod: load.failures or issuing in chain(pod))
        load.wait_for(5)
    assert load.failures == []
    mesh.learn()


def fetch(mesh: Mesh, path: str) -> str:
    """A debug page, or what is said instead of it."""
    try:
        with urllib.request.urlopen(f"http://{mesh.local.state.control_plane.monitoring}{path}", timeout=60) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as refused:
        return refused.read().decode()


def debug_pages(mesh: Mesh) -> Iterator[tuple[str, str]]:
    index = fetch(mesh, "/debug/list")
    pages = (
        {line.rpartition("/")[2].partition("?")[0] for line in json.loads(index)} if index.startswith("[") else set()
    )
    for page in sorted(pages | {"adsz", "syncz", "configz", "cachez", "problems", "registryz", "resourcesz", "mesh"}):
        yield f"/debug/{page}", fetch(mesh, f"/debug/{page}")
    for pod in mesh.local.proxies():
        for page in ("config_dump", "ecdsz", "edsz", "ndsz"):
            yield f"/debug/{page}", fetch(mesh, f"/debug/{page}?proxyID={pod.name}.{pod.namespace}")
    yield "/metrics", fetch(mesh, "/metrics")


def commands(mesh: Mesh) -> Iterator[tuple[str, str]]:
    """Of the gateway and of one sidecar."""
    local = mesh.local
    pods = (local.pods("ingress")[0], local.pods("front")[0])
    for pod in pods:
        for words in COMMANDS:
            filled = [word.format(pod=f"{pod.name}.{pod.namespace}") for word in words]
            done = local.run(*filled, "--mesh", local.name, check=False)
            yield " ".join(filled), done.stdout + done.stderr
    sources = ("-f", str(local.manifests), "-f", str(local.layout.config))
    for pod in pods:
        for dialect in ("istio", "envoy"):
            for form in ("json", "yaml", "summary"):
                chosen = ("--proxy", f"{pod.name}.{pod.namespace}", "--dialect", dialect, "-o", form)
                done = local.run("compile", *sources, *chosen)
                yield f"compile {pod.name} {dialect} {form}", done.stdout + done.stderr
    for words in (("proxy-status", "--mesh", local.name), ("-v", "analyze", "--no-use-kube", str(local.manifests))):
        done = local.run(*words, check=False)
        yield " ".join(words), done.stdout + done.stderr


def proxy_pages(mesh: Mesh) -> Iterator[tuple[str, str]]:
    for pod in mesh.local.proxies():
        for path in PROXY_PATHS:
            yield f"{pod.name}{path}", observer.ask_envoy(pod, path)


def logs(mesh: Mesh) -> Iterator[tuple[str, bytes]]:
    for path in sorted(mesh.local.layout.logs.rglob("*")):
        if path.is_file():
            yield f"logs/{path.name}", path.read_bytes()
    yield "control plane's log", mesh.local.layout.control_log.read_bytes()
    yield "output", mesh.local.text.encode()
    yield "state", mesh.local.layout.state.read_bytes()


def reports(mesh: Mesh, folder: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    mesh.local.run("bug-report", "--mesh", mesh.local.name, "--output-dir", str(folder), seconds=300)
    with tarfile.open(folder / "bug-report.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                yield member.name, file.read()


def assert_silent(mesh: Mesh, found: list[tuple[str, bytes | str]], *, at_least: int) -> None:
    assert len([place for place, content in found if len(content) > 20]) >= at_least, [place for place, _ in found]
    assert mesh.known.found_in_any(found) == []


def test_the_search_would_find_every_kind_of_secret(mesh):
    manifests = "".join(path.read_text() for path in mesh.local.manifests.iterdir())
    assert {"gateway's key", "logins", "broken key"} <= set(mesh.known.found_in(manifests))
    control = mesh.local.layout.control
    assert "current signer" in mesh.known.found_in((control / "authority.json").read_bytes())
    key = next(pathlib.Path(pod.directory) for pod in mesh.local.proxies()) / "etc/istio/proxy/identity/key.pem"

    def is_known() -> bool:
        mesh.learn()
        return bool(mesh.known.found_in(key.read_bytes()))

    # It is exchanged every few seconds, also between the one and the other.
    eventually_blocking(is_known)


def test_logs_hold_no_secret_at_debug_level(mesh):
    mesh.learn()
    found = list(logs(mesh))
    assert_silent(mesh, found, at_least=6)
    everything = b"".join(content for _, content in found)
    assert b"debug" in everything


def test_debug_pages_show_no_secret(mesh):
    found = list(debug_pages(mesh))
    assert "[redacted]" in "".join(content for _, content in found), "the keys were there to be shown"
    assert_silent(mesh, found, at_least=15)


def test_pages_of_envoys_show_no_secret(mesh):
    assert_silent(mesh, list(proxy_pages(mesh)), at_least=15)


def test_commands_print_no_secret(mesh):
    found = list(commands(mesh))
    assert "[redacted]" in "".join(content for _, content in found), "the keys were there to be shown"
    assert_silent(mesh, found, at_least=30)


def test_a_report_holds_no_secret(mesh, tmp_path):
    assert_silent(mesh, list(reports(mesh, tmp_path)), at_least=30)
