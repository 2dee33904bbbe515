"""`mizzen diff` on whole trees of manifests."""

import json
import pathlib
import shutil
import subprocess
from typing import Any

import cli_runs
import pytest
import yaml
from traffic_certificates import ROOT as ROOT_CERTIFICATE

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOP = ROOT / "samples" / "shop"


@pytest.fixture
def shop(tmp_path: pathlib.Path) -> pathlib.Path:
    """The sample's manifests, to be edited."""
    return pathlib.Path(shutil.copytree(SHOP, tmp_path / "shop", ignore=shutil.ignore_patterns("__pycache__")))


def replace(path: pathlib.Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def diff(old: object, new: object, *arguments: object) -> dict[str, Any]:
    result = cli_runs.run("diff", old, new, "-o", "json", *arguments)
    assert result.exit_code in (0, 1), result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (0 if report["same"] else 1)
    return report


def class_of(report: dict[str, Any], workload: str) -> dict[str, Any]:
    (found,) = [each for each in report["classes"] if any(name.startswith(workload) for name in each["proxies"])]
    return dict(found)


def changes(one: dict[str, Any]) -> list[str]:
    return [f"{each['subject']}: {each['text']}" for each in one["changes"]]


def test_the_same_is_the_same(shop: pathlib.Path) -> None:
    report = diff(SHOP, shop)

    assert (report["classes"], report["edited"], report["push"]["bytes"]) == ([], [], 0)


def test_comments_and_order_change_nothing(shop: pathlib.Path) -> None:
    documents = (shop / "traffic.yaml").read_text().split("---\n")
    (shop / "traffic.yaml").write_text("# moved\n" + "---\n".join(reversed(documents)))

    assert diff(SHOP, shop)["same"]


def test_weights_change_routes_only(shop: pathlib.Path) -> None:
    replace(shop / "traffic.yaml", "weight: 90", "weight: 80")
    replace(shop / "traffic.yaml", "weight: 10", "weight: 20")

    report = diff(SHOP, shop)

    assert report["edited"] == ["VirtualService shop/cart changed"]
    (only,) = report["classes"]
    assert only["forecast"]["effects"] == ["route only"]
    assert not only["forecast"]["connectionsCut"]
    assert only["objects"] == ["VirtualService shop/cart changed"]
    assert (
        "80 cart.shop.svc.cluster.local:80: route everybody: weight of cart.shop.svc.cluster.local:80 subset v1 90→80"
        in (changes(only))
    )
    # Whoever has a sidecar looks at the route; the gateway is not bound to it.
    assert report["push"]["proxies"] == len(only["proxies"]) == 9


def test_a_policy_drains_the_chains_of_its_workload(shop: pathlib.Path) -> None:
    replace(shop / "security.yaml", "methods: [GET]", "methods: [GET, POST]")

    report = diff(SHOP, shop)

    (only,) = report["classes"]
    assert only["name"] == "cart-v1, cart-v2 in shop"
    assert only["forecast"]["effects"] == ["chains drain"]
    (listener,) = only["forecast"]["listeners"]
    assert (listener["name"], listener["update"]) == ("virtualInbound", "in place")
    assert any("policy rule shop/cart-callers rule 0 (ALLOW) changed" in text for text in changes(only))


def test_each_class_names_the_edit_behind_it(shop: pathlib.Path) -> None:
    replace(shop / "security.yaml", "methods: [GET]", "methods: [GET, POST]")
    replace(shop / "traffic.yaml", "weight: 90", "weight: 80")

    report = diff(SHOP, shop)

    route, policy = "VirtualService shop/cart changed", "AuthorizationPolicy shop/cart-callers changed"
    assert class_of(report, "front")["objects"] == [route]
    assert class_of(report, "cart-v1")["objects"] == [policy, route]


def test_probes_tell_whose_verdict_changes_and_what_becomes_of_connections(
    shop: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    asked = [
        {"name": "get", "from": "front.shop", "url": "http://cart:8080/"},
        {"name": "post", "from": "front.shop", "url": "http://cart:8080/", "method": "POST"},
        {"name": "rates", "from": "outside", "url": "http://shop.example/"},
    ]
    (tmp_path / "probes.yaml").write_text(yaml.safe_dump(asked))
    replace(shop / "security.yaml", "methods: [GET]", "methods: [POST]")

    report = diff(SHOP, shop, "--probe", tmp_path / "probes.yaml")

    found = {probe["name"]: probe for probe in report["probes"]}
    assert [name for name, probe in found.items() if probe["changed"]] == ["get", "post"]
    assert (found["get"]["before"]["status"], found["get"]["after"]["status"]) == (200, 403)
    assert "cart-callers" in found["get"]["after"]["cause"]
    assert found["get"]["connection"]["outcome"] == "is cut"
    # The edit cuts nothing where no request came through.
    assert found["post"]["connection"]["outcome"] == "none"
    assert found["rates"]["connection"]["outcome"] == "stays"


def test_pods_that_stay_keep_their_addresses(shop: pathlib.Path) -> None:
    first = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: aaa, namespace: shop}
spec:
  selector: {matchLabels: {app: aaa}}
  template:
    metadata: {labels: {app: aaa}}
    spec: {containers: [{name: app, image: x}]}
"""
    (shop / "aaa.yaml").write_text(first)

    report = diff(SHOP, shop)

    assert report["classes"] == []
    assert [name.partition("-")[0] for name in report["pods"]["new"]] == ["aaa"]
    assert report["push"]["bytes"] > 0


def test_another_template_replaces_the_pods(shop: pathlib.Path) -> None:
    replace(shop / "catalog.yaml", "labels: {app: catalog", "labels: {tier: back, app: catalog")

    report = diff(SHOP, shop)

    assert [name.partition("-")[0] for name in report["pods"]["gone"]] == ["catalog"]
    assert [name.partition("-")[0] for name in report["pods"]["new"]] == ["catalog"]
    assert "endpoint only" in class_of(report, "front")["forecast"]["effects"]


def test_connections_to_one_of_several_pods_may_be_cut(shop: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "probes.yaml").write_text('- {from: outside, url: "http://shop.example/"}')
    replace(shop / "front.yaml", "replicas: 2", "replicas: 1")

    (probe,) = diff(SHOP, shop, "--probe", tmp_path / "probes.yaml")["probes"]

    assert probe["connection"]["outcome"] == "may be cut"
    assert "front-" in probe["connection"]["why"]


def test_new_findings_are_told_and_old_ones_are_not(shop: pathlib.Path) -> None:
    broken = (
        "\n---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: broken, namespace: shop}\n"
    )
    broken += "spec: {hosts: [front], http: [{route: [{destination: {host: nobody}}]}]}\n"
    (shop / "traffic.yaml").write_text((shop / "traffic.yaml").read_text() + broken)

    (finding,) = diff(SHOP, shop)["findings"]

    assert (finding["code"], finding["object"]) == ("IST0101", "VirtualService shop/broken")
    assert finding["place"].startswith(str(shop / "traffic.yaml:"))
    back = diff(shop, SHOP)
    assert (back["findings"], back["resolvedFindings"]) == ([], 1)


def test_a_revision_of_git_is_a_state(shop: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"),
    ):
        subprocess.run(("git", *arguments), cwd=shop, check=True)
    replace(shop / "traffic.yaml", "weight: 90", "weight: 80")
    monkeypatch.chdir(shop)

    assert not diff("HEAD", ".")["same"]
    assert diff("HEAD:traffic.yaml", "traffic.yaml")["edited"] == ["VirtualService shop/cart changed"]
    assert diff("HEAD:traffic.yaml", "HEAD")["edited"] == []
    assert diff("HEAD", "HEAD:.")["same"]


def test_an_error_is_2(shop: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert cli_runs.run("diff", shop, tmp_path / "nothing").exit_code == 2
    (tmp_path / "probes.yaml").write_text("- {from: a}")
    result = cli_runs.run("diff", SHOP, shop, "--probe", tmp_path / "probes.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "probes.yaml" in result.stderr


def test_a_probe_without_a_proper_url_is_told_with_its_line(shop: pathlib.Path, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "probes.yaml"
    file.write_text("- {from: front.shop, url: 'http://a/'}\n- from: front.shop\n  url: 'http://[::1'\n")
    result = cli_runs.run("diff", SHOP, shop, "--probe", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{file}:3: " in result.stderr


def test_markdown_is_one_comment_with_a_mark_and_nothing_comes_to_life_in_it(shop: pathlib.Path) -> None:
    replace(shop / "traffic.yaml", "- name: everybody", "- name: '<img src=x> @everyone `x`'")

    text = cli_runs.run("diff", SHOP, shop, "-o", "markdown").stdout

    assert text.startswith("<!-- mizzen diff -->\n### Mesh: ")
    assert "<img" not in text
    assert "@everyone" not in text
    assert "| Proxies | Effect on connections | Push | Objects |" in text


def test_text_says_it_all_in_its_first_line(shop: pathlib.Path) -> None:
    replace(shop / "security.yaml", "methods: [GET]", "methods: [GET, POST]")

    first = cli_runs.run("diff", SHOP, shop).stdout.splitlines()[0]

    assert "3 of 10 proxies" in first
    assert "open connections are cut at 3" in first


def test_where_there_are_no_workloads_others_stand_in(tmp_path: pathlib.Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, weights in ((old, (90, 10)), (new, (50, 50))):
        folder.mkdir()
        (folder / "mesh.yaml").write_text(CONFIGURATION.format(*weights))

    result = cli_runs.run("diff", old, new, "-o", "json")

    assert result.exit_code == 1
    assert "3 pods stand in" in result.stderr
    report = json.loads(result.stdout)
    assert {name for each in report["classes"] for name in each["proxies"]} == {
        "any-client.shop",
        "any-web.shop",
        "any-door.istio-system",
    }
    assert all(each["forecast"]["effects"] == ["route only"] for each in report["classes"])


def test_where_no_namespace_asks_for_injection_it_is_taken_for_granted(tmp_path: pathlib.Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, weights in ((old, (90, 10)), (new, (50, 50))):
        folder.mkdir()
        pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, labels: {app: web}}\n"
        pod += "spec: {containers: [{name: app, image: web}]}\n---"
        (folder / "mesh.yaml").write_text(pod + CONFIGURATION.format(*weights))

    result = cli_runs.run("diff", old, new, "-o", "json")

    assert "taken for granted in shop" in result.stderr
    assert [each["proxies"] for each in json.loads(result.stdout)["classes"]] == [["web.shop"]]


CONFIGURATION = """
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{selector: {{app: web}}, ports: [{{name: http, port: 80, targetPort: 8080}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: door, namespace: istio-system}}
spec: {{selector: {{istio: door}}, ports: [{{name: http, port: 80, targetPort: 8080}}]}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{name: door, namespace: shop}}
spec:
  selector: {{istio: door}}
  servers: [{{port: {{number: 80, name: http, protocol: HTTP}}, hosts: ["*"]}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: web, namespace: shop}}
spec:
  hosts: [web.shop.svc.cluster.local, shop.example]
  gateways: [mesh, door]
  http:
    - route:
        - {{destination: {{host: web.shop.svc.cluster.local, port: {{number: 80}}}}, weight: {0}}}
        - {{destination: {{host: door.istio-system.svc.cluster.local, port: {{number: 80}}}}, weight: {1}}}
"""


def test_a_certificate_that_is_renewed_is_told_without_its_content(tmp_path: pathlib.Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: door\n  namespace: istio-system\n  labels: {istio: door, sidecar.istio.io/inject: 'true'}\n"
    pod += (
        "  annotations: {inject.istio.io/templates: gateway}\nspec: {containers: [{name: istio-proxy, image: auto}]}\n"
    )
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        certificate, key = ROOT_CERTIFICATE.issue("shop.example")
        secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "door", "namespace": "istio-system"}}
        secret |= {"type": "kubernetes.io/tls", "stringData": {"tls.crt": certificate, "tls.key": key}}
        (tmp_path / name / "mesh.yaml").write_text(f"{pod}---\n{SECURED}---\n{yaml.safe_dump(secret)}")

    report = diff(tmp_path / "old", tmp_path / "new")

    (only,) = report["classes"]
    assert changes(only) == ["kubernetes://door: certificate renewed"]
    assert (only["forecast"]["effects"], only["forecast"]["tls"]) == (["secrets rotate"], ["secret kubernetes://door"])
    assert not only["forecast"]["connectionsCut"]
    assert only["objects"] == ["Secret istio-system/door changed"]


SECURED = """
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: door, namespace: istio-system}
spec:
  selector: {istio: door}
  servers:
    - port: {number: 443, name: https, protocol: HTTPS}
      hosts: [shop.example]
      tls: {mode: SIMPLE, credentialName: door}
"""


def test_a_problem_of_both_states_is_told_once(shop: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (shop / "odd.yaml").write_text(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: x}\nspec: {odd: 1}\n"
    )
    later = shutil.copytree(shop, tmp_path / "later")

    result = cli_runs.run("diff", shop, later)

    assert result.exit_code == 0
    assert "spec.odd" in result.stderr
    assert "later" not in result.stderr


CROWD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: crowd, namespace: shop}
spec:
  replicas: 100000000
  selector: {matchLabels: {app: crowd}}
  template: {metadata: {labels: {app: crowd}}, spec: {containers: [{name: app, image: app}]}}
"""


@pytest.mark.parametrize(
    "command", [("diff",), ("trace", "--from", "deploy/crowd.shop", "http://a/", "-f"), ("describe", "pod", "-f")]
)
def test_a_workload_beyond_measure_is_foretold_in_part(tmp_path: pathlib.Path, command: tuple[str, ...]) -> None:
    file = tmp_path / "crowd.yaml"
    file.write_text(CROWD)
    rest = {"diff": (file,), "trace": (), "describe": ("deploy/crowd.shop",)}[command[0]]

    result = cli_runs.run(*command, file, *rest)

    told = f"warning: {file}:2: Deployment shop/crowd: spec.replicas: asks for 100,000,000 pods; at most 1,000 of"
    assert result.stderr.count(told) == 1
