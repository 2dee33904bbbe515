"""`mizzen bug-report`: everything is in the archive, and nothing secret."""

import json
import pathlib
import re
import tarfile
from collections.abc import Iterator

import cli_runs
import pytest
import yaml
from http_answers import Answers, on_port, on_socket

from mizzen.cli import bug_report
from mizzen.local import runtime

KEY = "-----BEGIN PRIVATE KEY-----\\nMIIEsecret\\n-----END PRIVATE KEY-----"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJtZXNoIn0.c2VjcmV0c2lnbmF0dXJl"
LEAKS = """
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: own-tls, namespace: shop}
spec:
  configPatches:
  - applyTo: CLUSTER
    patch:
      operation: MERGE
      value:
        transport_socket:
          typed_config:
            common_tls_context:
              tls_certificates:
              - certificate_chain: {filename: /etc/chain.pem}
                private_key: {inline_string: leak-in-filter}
              - private_key:
                  inline_string: |
                    -----BEGIN PRIVATE KEY-----
                    leak-in-block
                    -----END PRIVATE KEY-----
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: login, namespace: shop}
spec:
  jwtRules:
  - issuer: https://issuer.example
    jwks: '{"keys": [{"kty": "oct", "kid": "one", "k": "leak-in-oct"}, {"kty": "RSA", "n": "public", "d": "leak-in-d"}]}'
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart]
  http:
  - headers: {request: {set: {authorization: Basic leak-in-route, x-api-key: leak-in-key, x-tier: gold}}}
    route: [{destination: {host: cart}}]
---
apiVersion: v1
kind: Pod
metadata: {name: cart-0, namespace: shop}
spec:
  containers:
  - name: cart
    image: cart
    args: [--password=leak-in-flag, --token, leak-in-argument, --port=80]
    env: [{name: DB_PASSWORD, value: leak-in-variable}, {name: MODE, value: fast}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: keys, namespace: shop}
data:
  pair.pem: |
    # of the shop
    -----BEGIN EC PRIVATE KEY-----
    leak-in-map
    -----END EC PRIVATE KEY-----
  after: stays
"""
CONFIGZ = json.dumps([document for document in yaml.safe_load_all(LEAKS) if document["kind"] != "Pod"])
ROUTES = {
    "requestHeadersToAdd": [
        {"header": {"key": "authorization", "value": "Basic leak-in-route"}, "appendAction": "ADD_IF_ABSENT"},
        {"header": {"key": "x-tier", "value": "gold"}},
    ],
    "localJwks": {"inlineString": '{"keys":[{"kty":"oct","k":"leak-in-oct"}]}'},
}
ENVOY = {
    "/server_info": b'{"version": "1.40.0"}',
    "/config_dump?include_eds": json.dumps({"configs": [{"leaked": KEY}, ROUTES]}).encode(),
    "/clusters": b"agent::x",
    "/certs": b"{}",
    "/listeners": b"[]",
    "/memory": b"{}",
    "/runtime": b"{}",
    "/stats": b"server.live: 1",
}
PLANE = {
    "/version": b"0.1.0-abc-Clean",
    "/debug/list": b'["syncz", "configz", "adsz"]',
    "/debug/syncz": b"[]",
    "/debug/configz": CONFIGZ.encode(),
    "/metrics": b"pilot_info 1",
}
MANIFESTS = """
apiVersion: v1
kind: Secret
metadata: {name: shop-tls, namespace: shop}
stringData: {password: hunter2}
---
{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: shop}
spec: {hosts: [shop], http: [{route: [{destination: {host: nowhere}}]}]}
"""


@pytest.fixture
def mesh(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "shop.yaml").write_text(MANIFESTS)
    pods = [cli_runs.pod("cart-0", "shop", tmp_path / "cart.sock"), cli_runs.pod("probe-0", "outside")]
    with on_port(Answers(PLANE)) as address, on_socket(tmp_path / "cart.sock", Answers(ENVOY)):
        folder = cli_runs.write_mesh(tmp_path / "shop", pods=pods, monitoring=address)
        layout = runtime.Layout(folder)
        state = runtime.read_state(layout)
        layout.config.mkdir()
        runtime.write_state(layout, runtime.State(**{**_fields(state), "manifests": (str(manifests),)}))
        for pod, container, text in (
            ("cart-0.shop", "istio-proxy", f"[warning] w\n[error] e\nauthorization: Bearer {TOKEN}\n"),
            ("cart-0.shop", "cart", "one\ntwo\nthree\n"),
            ("probe-0.outside", "probe", "nothing\n"),
        ):
            path = layout.logs / pod / f"{container}.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        layout.control_log.write_text("info\tall is well\n")
        yield folder


def _fields(state: runtime.State) -> dict[str, object]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


def report(mesh: pathlib.Path, folder: pathlib.Path, *options: str) -> dict[str, str]:
    """The files of the archive by name."""
    result = cli_runs.run("bug-report", "--output-dir", folder, *options, "--mesh", mesh)
    assert result.exit_code == 0, result.stderr
    path = folder / "bug-report.tar.gz"
    assert f"Created an archive at {path}" in result.stdout
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        members = archive.getmembers()
        read = {member.name: archive.extractfile(member) for member in members}
    assert all(name.startswith("bug-report/") for name in read)
    with tarfile.open(path) as archive:
        return {
            member.name.removeprefix("bug-report/"): archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive.getmembers()
        }


def test_everything_is_there_under_istioctls_names(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    files = report(mesh, tmp_path)

    assert {name.partition("/")[0] for name in files} == {
        *("cluster", "istio", "proxies", "analyze", "versions", "bug-report.log")
    }
    assert {name for name in files if name.startswith("proxies/")} == {
        *(f"proxies/shop/cart-0/{name}" for name in ("proxy.log", "cart.log", "server_info", "config_dump")),
        *(f"proxies/shop/cart-0/{name}" for name in ("clusters", "certs", "listeners", "memory", "runtime", "stats")),
        "proxies/outside/probe-0/probe.log",
    }
    assert {name for name in files if name.startswith("istio/")} == {
        *(f"istio/istio-system/mizzen-shop/debug/{page}" for page in ("adsz", "configz", "syncz")),
        *(f"istio/istio-system/mizzen-shop/{name}" for name in ("discovery.log", "metrics")),
    }
    versions = yaml.safe_load(files["versions"])
    assert versions["controlPlanes"] == {"mizzen-shop": "0.1.0-abc-Clean"}
    assert versions["envoys"] == {"cart-0.shop": "1.40.0"}
    assert "[IST0101] (VirtualService shop/shop" in files["analyze/all-namespaces"]


def test_nothing_secret_leaves_the_machine(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    files = report(mesh, tmp_path)
    everything = "\n".join(files.values())

    for secret in ("hunter2", "MIIEsecret", TOKEN):
        assert secret not in everything
    (objects,) = (text for name, text in files.items() if name.endswith("shop.yaml"))
    secret, _, virtual = yaml.safe_load_all(objects)
    assert secret["stringData"] == {"password": "[redacted]"}
    assert virtual["kind"] == "VirtualService"


def test_what_objects_hold_in_fields_of_their_own_is_cut_wherever_they_are_shown(
    mesh: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "manifests" / "leaks.yaml").write_text(LEAKS)

    files = report(mesh, tmp_path)

    assert {name: re.findall(r"leak-\S+", text) for name, text in files.items() if "leak-" in text} == {}
    (name,) = (name for name in files if name.endswith("/leaks.yaml"))
    kept = list(yaml.safe_load_all(files[name]))
    given = list(yaml.safe_load_all(LEAKS))
    assert [document["metadata"] for document in kept] == [document["metadata"] for document in given]
    assert kept[3]["spec"]["containers"][0]["args"] == [
        *("--password=[redacted]", "--token", "[redacted]", "--port=80")
    ]
    assert kept[4]["data"]["after"] == "stays"
    assert kept[2]["spec"]["http"][0]["headers"]["request"]["set"] == {
        "authorization": "Basic [redacted]",
        "x-api-key": "[redacted]",
        "x-tier": "gold",
    }
    (dump,) = (json.loads(text) for name, text in files.items() if name.endswith("config_dump"))
    assert dump["configs"][1]["requestHeadersToAdd"][1] == {"header": {"key": "x-tier", "value": "gold"}}
    (page,) = (json.loads(text) for name, text in files.items() if name.endswith("configz"))
    assert [document["kind"] for document in page] == [
        *("EnvoyFilter", "RequestAuthentication", "VirtualService", "ConfigMap")
    ]


def test_secrets_stay_if_they_are_asked_for(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    everything = "\n".join(report(mesh, tmp_path, "--full-secrets").values())

    assert TOKEN in everything
    assert "hunter2" in everything


def test_what_could_not_be_fetched_is_said(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    log = report(mesh, tmp_path)["bug-report.log"]

    assert re.search(r"^missing  proxies/shop/cart-0/stats_prometheus: .*404", log, re.MULTILINE)
    assert "fetched  proxies/shop/cart-0/proxy.log importance 110\n" in log


def test_pods_are_chosen_and_logs_are_cut(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    files = report(mesh, tmp_path, "--include", "shop/cart-*", "--tail", "2")

    assert not any(name.startswith("proxies/outside") for name in files)
    assert files["proxies/shop/cart-0/cart.log"] == "two\nthree\n"
    assert not any("/shop/" in name for name in report(mesh, tmp_path, "--exclude", "shop") if "proxies" in name)


def test_a_dry_run_writes_nothing(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("bug-report", "--dry-run", "--output-dir", tmp_path, "--mesh", mesh)

    assert "bug-report/proxies/shop/cart-0/config_dump\n" in result.stdout
    assert not (tmp_path / "bug-report.tar.gz").exists()


def test_a_control_plane_alone_is_asked_too(tmp_path: pathlib.Path) -> None:
    with on_port(Answers(PLANE)) as address:
        result = cli_runs.run("bug-report", "--monitoring", address, "--output-dir", tmp_path)
    assert result.exit_code == 0, result.stderr

    with tarfile.open(tmp_path / "bug-report.tar.gz") as archive:
        names = archive.getnames()
    assert f"bug-report/istio/istio-system/{address.replace(':', '_')}/debug/syncz" in names


def test_a_place_that_cannot_be_written_is_said(mesh: pathlib.Path, tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("bug-report", "--output-dir", tmp_path / "nowhere", "--mesh", mesh)

    assert (result.exit_code, "cannot write" in result.stderr) == (1, True)


def test_a_log_is_weighed_by_what_is_wrong_in_it() -> None:
    assert bug_report.weigh("fatal error warning\nwarn\ninfo: forewarned\n") == 1000 + 100 + 20
