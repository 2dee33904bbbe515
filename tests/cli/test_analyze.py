"""`mizzen analyze`: sources, filters, formats, exit codes, and what is new."""

import json
import pathlib
import subprocess

import cli_runs
import pytest
import yaml

BASE = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{name: main, port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cart-0, namespace: shop, labels: {app: cart}}
spec: {containers: [{name: istio-proxy, image: proxy}]}
"""
ROUTE = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: cart
  namespace: shop
spec:
  hosts: [cart]
  http:
  - route:
    - destination:
        host: card
"""
INFO = (
    "Info [IST0118] (Service shop/cart {file}:9) Port name main (port: 80, targetPort: 80) doesn't follow the naming "
    "convention of Istio port."
)
ERROR = 'Error [IST0101] (VirtualService shop/cart {file}:12) Referenced host not found: "card"'


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "route.yaml").write_text(ROUTE)
    return tmp_path


def run(*arguments: object, stdin: str | None = None) -> cli_runs.Result:
    return cli_runs.run("analyze", "--use-kube=false", *arguments, stdin=stdin)


def test_findings_are_lines_with_file_and_line_of_the_field(folder: pathlib.Path) -> None:
    result = run("-A", folder)
    lines = result.stdout.splitlines()
    assert lines == [ERROR.format(file=folder / "route.yaml"), INFO.format(file=folder / "base.yaml")]
    assert result.exit_code == 79
    assert "Error: Analyzers found issues when analyzing all namespaces.\nSee https://istio.io/v1.32/" in result.stderr


def test_no_finding_is_one_empty_line_and_says_so(folder: pathlib.Path) -> None:
    result = run("-A", "--output-threshold", "warning", folder / "base.yaml")
    assert (result.stdout, result.exit_code) == ("\n", 0)
    assert result.stderr == f"✔ No validation issues found when analyzing {folder / 'base.yaml'}.\n"


def test_success_lists_several_files(folder: pathlib.Path) -> None:
    paths = (folder / "base.yaml", folder / "base.yaml")
    result = run("-A", "--output-threshold", "Error", *paths)
    assert result.stderr == f"✔ No validation issues found when analyzing:\n  - {paths[0]}\n  - {paths[1]}\n"


def test_failure_threshold_decides_the_exit_code(folder: pathlib.Path) -> None:
    assert run("-A", "--failure-threshold", "INFO", folder / "base.yaml").exit_code == 79
    assert run("-A", folder / "base.yaml").exit_code == 0
    # What is not printed still fails.
    assert run("-A", "--failure-threshold=Info", "--output-threshold=Error", folder / "base.yaml").exit_code == 79


def test_structured_output_never_fails(folder: pathlib.Path) -> None:
    result = run("-A", "-o", "json", folder / "base.yaml", folder / "route.yaml")
    assert result.exit_code == 0
    assert result.stdout.startswith('[\n\t{\n\t\t"code": "IST0101",')
    rows = json.loads(result.stdout)
    assert list(rows[0]) == ["code", "documentationUrl", "level", "message", "origin", "reference"]
    assert rows[0]["documentationUrl"] == (
        "https://istio.io/v1.32/docs/reference/config/analysis/ist0101/?ref=istioctl-analyze"
    )
    assert yaml.safe_load(run("-A", "-o", "YAML", folder).stdout) == rows


def test_empty_json_is_an_empty_array(folder: pathlib.Path) -> None:
    assert run("-A", "-o", "json", "--output-threshold=Error", folder / "base.yaml").stdout == "[]\n"


def test_sarif_names_rules_places_and_fingerprints(folder: pathlib.Path) -> None:
    log = json.loads(run("-A", "-o", "sarif", folder).stdout)
    only = log["runs"][0]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in only["tool"]["driver"]["rules"]] == ["IST0101", "IST0118"]
    first = only["results"][0]
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("IST0101", 0, "error")
    place = first["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": str(folder / "route.yaml")}, "region": {"startLine": 12}}
    assert first["partialFingerprints"]["mizzen/v1"].startswith("IST0101|VirtualService shop/cart|")


def test_only_the_namespace_that_is_asked_for_is_told(folder: pathlib.Path) -> None:
    assert run(folder).stdout == "\n"
    result = run("-n", "shop", folder)
    assert len(result.stdout.splitlines()) == 2
    assert "when analyzing namespace: shop." in result.stderr


def test_namespace_flag_is_the_namespace_of_objects_without_one(folder: pathlib.Path) -> None:
    text = ROUTE.replace("  namespace: shop\n", "")
    result = run("-n", "shop", folder / "base.yaml", "-", stdin=text)
    assert "(VirtualService shop/cart -:11)" in result.stdout


@pytest.mark.parametrize("glob", ["VirtualService shop/*", "VirtualService cart.shop", "*"])
def test_suppression_by_flag(folder: pathlib.Path, glob: str) -> None:
    result = run("-A", "-S", f"IST0101={glob}", folder)
    assert result.exit_code == 0
    assert "IST0101" not in result.stdout


def test_suppression_of_another_object_or_code_has_no_effect(folder: pathlib.Path) -> None:
    result = run("-A", "-S", "IST0101=Service shop/*", "-S", "IST9999=*", folder)
    assert "IST0101" in result.stdout
    unknown = "Supplied message code 'IST9999' is an unknown message code and will not have any effect."
    assert f"Warning: {unknown}" in result.stderr


def test_suppression_with_two_equal_signs_is_refused(folder: pathlib.Path) -> None:
    result = run("-A", "-S", "IST0101=a=b", folder)
    assert result.exit_code == 1
    assert "IST0101=a=b is not a valid suppression value." in result.stderr


@pytest.mark.parametrize(
    ("codes", "remains"), [("IST0101", False), ("*", False), ("IST0118,IST0101", False), ("IST0118, IST0101", True)]
)
def test_suppression_by_annotation_is_not_trimmed(folder: pathlib.Path, codes: str, remains: bool) -> None:
    annotated = ROUTE.replace(
        "  name: cart\n", f'  name: cart\n  annotations: {{galley.istio.io/analyze-suppress: "{codes}"}}\n'
    )
    (folder / "route.yaml").write_text(annotated)
    assert ("IST0101" in run("-A", folder).stdout) is remains


def test_colour_is_for_the_level_word_and_closed_for_every_level(folder: pathlib.Path) -> None:
    lines = run("-A", "--color", folder).stdout.splitlines()
    assert lines[0].startswith("\x1b[1;31mError\x1b[0m [IST0101]")
    assert lines[1].startswith("Info\x1b[0m [IST0118]")
    assert "\x1b" not in run("-A", folder).stdout


def test_one_analyzer_alone(folder: pathlib.Path) -> None:
    result = run("-A", "-v", "--analyzer", "service.PortNameAnalyzer", folder)
    assert "IST0101" not in result.stdout
    assert "Executed analyzers:\n\t service.PortNameAnalyzer\n" in result.stderr


def test_every_document_is_accounted_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_text(BASE + "---\n---\n# nothing\n---\nreplicas: 3\n---\n" + ROUTE)
    (tmp_path / "b.json").write_text(
        json.dumps(
            {
                "kind": "List",
                "apiVersion": "v1",
                "items": [{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "x"}}],
            }
        )
    )
    (tmp_path / "c.yaml").write_text("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n---\n" + ROUTE)
    (tmp_path / "NOTES.txt").write_text("hello")
    result = run("-A", "-v", "--failure-threshold=Error", "-S", "IST0101=*", tmp_path)
    assert result.exit_code == 0
    assert (
        f"Skipping file {tmp_path / 'NOTES.txt'}, recognized file extensions are: [.json .yaml .yml]" in result.stderr
    )
    told = [line.strip().removeprefix(str(tmp_path)) for line in result.stderr.splitlines() if line.startswith("\t /")]
    assert [line.partition(": ")[2].partition(" (")[0] for line in told] == [
        "Namespace shop read",
        "Service shop/cart read",
        "Pod shop/cart-0 read",
        "empty",
        "empty",
        "no object",
        "VirtualService shop/cart read",
        "Lease x not read",
        "Kustomization not read",
        "VirtualService shop/cart duplicate",
    ]
    assert "MZ0003" in result.stdout


def test_a_document_that_cannot_be_read_fails_unless_told_otherwise(folder: pathlib.Path) -> None:
    (folder / "broken.yaml").write_text("kind: [\n")
    paths = (folder / "base.yaml", folder / "broken.yaml")
    result = run("-A", *paths)
    assert result.exit_code == 65
    assert "Error(s) adding files: errors parsing content" in result.stderr
    assert "Error: Some files couldn't be parsed." in result.stderr
    assert run("-A", "--ignore-unknown", *paths).exit_code == 0
    assert run("-A", "-o", "json", *paths).exit_code == 0
    # Findings count for more, and the others are analysed all the same.
    assert run("-A", folder).exit_code == 79


def test_parse_errors_show_in_the_success_text(tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("kind: [\n")
    result = run("-A", broken)
    assert f"No validation issues found when analyzing {broken} (but 1 file could not be parsed)." in result.stderr


def test_unknown_fields_of_a_policy_are_told_and_the_rest_is_analysed(folder: pathlib.Path) -> None:
    policy = (
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: x, namespace: shop}\n"
        "spec:\n  selector: {matchLabels: {app: card}}\n  rulez: []\n"
    )
    (folder / "policy.yaml").write_text(policy)
    result = run("-A", folder)
    assert f"[MZ0002] (AuthorizationPolicy shop/x {folder / 'policy.yaml'}:6)" in result.stdout
    assert "IST0127" in result.stdout


def test_baseline_leaves_out_what_it_has_however_lines_move(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    baseline = tmp_path / "known.txt"
    baseline.write_text(run("-A", "-o", "json", folder).stdout)
    (folder / "route.yaml").write_text("\n\n" + ROUTE + "    mirror: {host: nobody}\n")
    result = run("-A", "--baseline", baseline, folder)
    assert len(result.stdout.splitlines()) == 1
    assert 'Referenced mirror host not found: "nobody"' in result.stdout


def test_a_baseline_that_is_none_is_an_error(folder: pathlib.Path) -> None:
    result = run("-A", "--baseline", folder / "route.yaml", folder)
    assert result.exit_code == 1
    assert "a baseline is the output of `-o json`" in result.stderr


def _git(folder: pathlib.Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(("git", "-C", str(folder), *who, *arguments), check=True, capture_output=True)


def test_since_a_revision_only_what_is_new(folder: pathlib.Path) -> None:
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "first")
    assert run("-A", "--since", "HEAD", folder).exit_code == 0
    (folder / "more.yaml").write_text(
        ROUTE.replace("name: cart", "name: more").replace("hosts: [cart]", "hosts: [more]")
    )
    result = run("-A", "--since", "HEAD", folder)
    assert [line.split()[3] for line in result.stdout.splitlines()] == ["shop/more"]
    assert result.exit_code == 79
    # A path that was not there then has nothing but new findings.
    assert "IST0101" in run("-A", "--since", "HEAD", folder / "base.yaml", folder / "more.yaml").stdout


def test_since_an_unknown_revision_is_an_error(folder: pathlib.Path) -> None:
    _git(folder, "init", "-q")
    result = run("-A", "--since", "nothing", folder)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: --since: ")


def test_a_later_path_replaces_objects_of_an_earlier_one(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    overlay = tmp_path / "overlay.yml"
    overlay.write_text(ROUTE.replace("host: card", "host: cart"))
    result = run("-A", folder / "base.yaml", folder / "route.yaml", overlay)
    assert "IST0101" not in result.stdout
    assert result.exit_code == 0


def test_objects_of_another_revision_are_not_read(folder: pathlib.Path) -> None:
    text = ROUTE.replace("  name: cart\n", "  name: cart\n  labels: {istio.io/rev: canary}\n")
    (folder / "route.yaml").write_text(text)
    assert run("-A", folder).exit_code == 0
    assert run("-A", "-r", "canary", folder).exit_code == 79


def test_mesh_config_file_counts(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    telemetry = "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: x, namespace: shop}\nspec: {accessLogging: [{}]}\n"
    (folder / "telemetry.yaml").write_text(telemetry)
    mesh = tmp_path / "mesh.config"
    mesh.write_text("defaultProviders: {accessLogging: [envoy]}\n")
    assert "IST0157" in run("-A", folder).stdout
    assert "IST0157" not in run("-A", "--meshConfigFile", mesh, folder).stdout
    missing = run("-A", "--meshConfigFile", tmp_path / "nothing", folder)
    assert "IST0157" in missing.stdout


def test_list_of_analyzers() -> None:
    result = cli_runs.run("analyze", "-L")
    lines = result.stdout.splitlines()
    names = [line for line in lines if line.startswith("* ")]
    assert names == sorted(names)
    assert "* virtualservice.GatewayAnalyzer:" in names
    assert all(line.startswith("    ") for line in lines[1::2])


def test_recursive_only_says_that_it_is_gone(folder: pathlib.Path) -> None:
    result = run("-R", folder)
    assert result.exit_code == 0
    assert result.stdout.startswith("The recursive flag has been removed")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("-o", "xml"), "xml not a valid option for format."),
        (("--failure-threshold", "x"), 'invalid argument "x" for "--failure-threshold" flag: invalid level option'),
        (("--nonsense",), "No such option"),
    ],
)
def test_a_wrong_command_line_exits_with_64(folder: pathlib.Path, flags: tuple[str, ...], text: str) -> None:
    result = run(*flags, folder)
    assert result.exit_code == 64
    assert text in result.stderr


def test_without_any_source() -> None:
    result = run("-A")
    assert result.exit_code == 1
    assert "at least one file and/or Kubernetes source must be provided" in result.stderr


def test_a_path_that_does_not_exist() -> None:
    assert run("-A", "/no/such/path").exit_code == 1


def test_links_that_lead_nowhere_are_accounted_for(folder: pathlib.Path) -> None:
    (folder / "gone.yaml").symlink_to(folder / "nothing.yaml")
    result = run("-A", "-v", "-S", "IST0101=*", folder)
    assert result.exit_code == 0
    assert f"\t {folder / 'gone.yaml'}: not read (a link that leads nowhere)\n" in result.stderr


@pytest.mark.parametrize(
    "text", ["", "---\n", "[]\n", "5\n", "{}\n", "kind: X\n", "apiVersion: v1\nkind: List\nitems: []\n"]
)
def test_odd_documents_raise_nothing(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    result = run("-A", tmp_path)
    assert result.exit_code in (0, 65)
    assert "Traceback" not in result.stderr
