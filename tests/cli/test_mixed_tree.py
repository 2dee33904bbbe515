"""Trees as repositories hold them: the exit code comes from findings alone, and nothing in them goes unmentioned."""

import pathlib

import cli_runs
import mixed_tree
import pytest

EXPECTED = """\
base/kustomization.yaml:1: no object
base/namespace.yml:1: Namespace shop read
base/old/kustomization.yaml:1: Kustomization not read
base/patch.yaml:1: no object
chart/Chart.yaml:1: no object
chart/templates/route.yaml:1: template
chart/templates/service.yaml:1: Service shop/{{ .Release.Name }} template
chart/values.yaml:1: no object
crds/widget.yaml:1: Widget w not read
crds/widgets.yaml:1: CustomResourceDefinition widgets.example.com read
jobs/migrate.yaml:1: Job shop not read
json/list.json: Lease l not read
json/list.json: ServiceAccount shop/cart read
json/package.json: no object
json/pod.json: Pod shop/cart-0 read
links/again.yaml:3: Service shop/cart read
links/again.yaml:8: empty
links/again.yaml:10: empty
links/again.yaml:13: empty
links/again.yaml:15: VirtualService shop/cart read
links/gone.yaml: not read
links/loop: not read
odd/bomb.yaml:5: no object
odd/comments.yaml: empty
odd/empty.yaml: empty
odd/logo.yaml: no text
odd/prose.yaml:1: no object
rendered.yaml: not read
"""
SKIPPED = ("README.md", "chart/templates/NOTES.txt", "chart/templates/_helpers.tpl")


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    return mixed_tree.write(tmp_path)


def analyze(*arguments: object) -> cli_runs.Result:
    return cli_runs.run("analyze", "-A", "--use-kube=false", *arguments)


def accounts(result: cli_runs.Result, tree: pathlib.Path) -> list[str]:
    """What was said of each document, without the reason."""
    lines = (line.strip() for line in result.stderr.splitlines())
    told = (line.removeprefix(f"{tree}/") for line in lines if line.startswith(f"{tree}/"))
    return sorted(line.partition(" (")[0] for line in told if "is valid" not in line and "since it has" not in line)


def test_without_findings_the_tree_is_in_order(tree: pathlib.Path) -> None:
    result = analyze(tree)
    assert (result.exit_code, result.stdout) == (0, "\n")
    assert result.stderr.endswith(f"No validation issues found when analyzing {tree}.\n")


def test_a_finding_alone_decides_the_exit_code(tree: pathlib.Path) -> None:
    rendered = tree / "rendered.yaml"
    rendered.write_text(rendered.read_text().replace("destination: {host: cart}", "destination: {host: card}"))
    result = analyze(tree)
    assert result.exit_code == 79
    assert [line.partition("] ")[0] for line in result.stdout.splitlines()] == ["Error [IST0101"]


def test_every_document_is_accounted_for(tree: pathlib.Path) -> None:
    result = analyze("-v", tree)
    assert accounts(result, tree) == sorted(EXPECTED.splitlines())
    assert f"{len(EXPECTED.splitlines())} documents: " in result.stderr
    for name in SKIPPED:
        assert f"Skipping file {tree / name}, " in result.stderr
    named = {line.partition(":")[0] for line in EXPECTED.splitlines()} | set(SKIPPED)
    hidden = {name for name in mixed_tree.FILES if name.startswith(".")}
    assert set(mixed_tree.FILES) - hidden <= named


def test_an_object_that_is_broken_still_fails(tree: pathlib.Path) -> None:
    (tree / "broken.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: {name: x\n")
    assert analyze(tree).exit_code == 65
    assert cli_runs.run("validate", "-f", tree).exit_code == 1


def test_a_broken_policy_is_told_to_deny(tree: pathlib.Path) -> None:
    (tree / "broken.yaml").write_text(
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata:\n  name: p\n  namespace: shop\n"
        "spec: {rules: [\n"
    )
    result = analyze(tree)
    assert result.exit_code == 79
    assert f"Error [MZ0002] (AuthorizationPolicy shop/p {tree}/broken.yaml:1) " in result.stdout
    assert "everything that it selects is denied" in result.stdout


def test_validate_fails_for_no_more_than_what_is_invalid(tree: pathlib.Path) -> None:
    result = cli_runs.run("validate", "-f", tree)
    assert (result.exit_code, result.stdout) == (0, "")
    rendered = tree / "rendered.yaml"
    rendered.write_text(rendered.read_text().replace("http: [{", "http: [{timeout: 0s, "))
    assert cli_runs.run("validate", "-f", tree).exit_code == 1


def test_validate_accounts_for_every_document(tree: pathlib.Path) -> None:
    told = accounts(cli_runs.run("-v", "validate", "-f", tree), tree)
    places = [line.partition(": ")[0].removesuffix(".json:1") for line in told if not line.endswith(" skipped")]
    expected = [line.partition(": ")[0].removesuffix(".json") for line in EXPECTED.splitlines()]
    skipped = [f"{name}: skipped, for its name does not end in .json, .yaml or .yml" for name in SKIPPED]
    assert sorted(place for place in places if place not in SKIPPED) == sorted(expected)
    assert [line for line in told if line.partition(": ")[0] in SKIPPED] == sorted(skipped)
