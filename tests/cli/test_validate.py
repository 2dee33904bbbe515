"""`mizzen validate`: istioctl's lines and exit codes."""

import json
from pathlib import Path

import cli_runs
import pytest

GOOD = """\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: shop}
spec: {hosts: [reviews], http: [{route: [{destination: {host: reviews}}]}]}
"""
WARNED = """\
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default}
spec: {selector: {}}
"""
REFUSED = """\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  hosts: [reviews]
  http:
  - timeout: 0s
    route: [{destination: {host: "*"}}]
"""


def write(folder: Path, text: str, name: str = "a.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_valid_file(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    result = cli_runs.run("validate", "-f", path)

    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f'"{path}" is valid\n')


def test_a_file_with_warnings_is_no_failure(tmp_path: Path) -> None:
    path = write(tmp_path, WARNED)
    result = cli_runs.run("v", "--filename", path)

    assert result.exit_code == 0
    assert result.stderr == (
        f'"{path}" has warnings: \n\t* PeerAuthentication//default: workload selector specified without labels\n'
    )


def test_errors_are_listed_behind_kind_namespace_and_name(tmp_path: Path) -> None:
    result = cli_runs.run("validate", "-f", write(tmp_path, REFUSED))

    assert result.exit_code == 1
    assert result.stderr == (
        "Error: 2 errors occurred:\n"
        "\t* VirtualService//reviews: duration must be greater than 1ms\n"
        "\t* VirtualService//reviews: invalid destination host *\n"
        "\n"
    )


def test_verbose_says_where(tmp_path: Path) -> None:
    path = write(tmp_path, REFUSED)
    result = cli_runs.run("-v", "validate", "-f", path)

    assert (
        f"\t* VirtualService//reviews: duration must be greater than 1ms ({path}:7 spec.http[0].timeout)\n"
        in result.stderr
    )


def test_several_files_and_their_warnings_beside_errors(tmp_path: Path) -> None:
    good, warned = write(tmp_path, GOOD), write(tmp_path, WARNED, "b.yaml")
    refused = write(tmp_path, REFUSED, "c.yaml")
    result = cli_runs.run("validate", "-f", good, "-f", warned, "-f", refused)

    assert result.exit_code == 1
    assert result.stderr.startswith(f'"{warned}" has warnings: \n')
    assert "is valid" not in result.stderr
    assert "Error: 2 errors occurred:\n" in result.stderr


def test_a_folder_is_read_with_all_in_it(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    first, second = write(tmp_path, GOOD), write(inner, GOOD, "b.yml")
    third = write(inner, json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}), "c.json")
    write(inner, "not: [yaml", "notes.txt")
    result = cli_runs.run("validate", "-f", tmp_path)

    assert result.stderr == f'"{first}" is valid\n"{second}" is valid\n"{third}" is valid\n'


def test_standard_input(tmp_path: Path) -> None:
    assert cli_runs.run("validate", "-f", "-", stdin=GOOD).stderr == "validation succeed\n"
    assert cli_runs.run("validate", "-f", "-", stdin=WARNED).stderr.startswith("validation had warnings: \n\t* ")
    assert cli_runs.run("validate", "-f", "-", stdin=REFUSED).exit_code == 1


def test_without_a_file_it_says_how() -> None:
    result = cli_runs.run("validate")

    assert result.exit_code == 1
    assert result.stderr == (
        "Error: error: you must specify resources by --filename.\n"
        "Example resource specifications include:\n"
        "   '-f rsrc.yaml'\n"
        "   '--filename=rsrc.json'\n"
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path, good = tmp_path / "none.yaml", write(tmp_path, REFUSED)
    result = cli_runs.run("validate", "-f", path, "-f", good)

    assert result.exit_code == 1
    assert f'\t* cannot stat file "{path}": stat {path}: no such file or directory\n' in result.stderr
    assert "invalid destination host *" in result.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1", "line 1: while parsing a flow sequence: did not find expected ',' or ']'"),
        (f"{GOOD}---\nkind: a\nkind: b\n", 'line 7: key "kind" already set in map'),
        ("a\x00b", "line 1: character U+0000 is not allowed"),
    ],
)
def test_text_that_does_not_decode(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    result = cli_runs.run("validate", "-f", path)

    assert result.exit_code == 1
    assert result.stderr == f"Error: 1 error occurred:\n\t* failed to decode file {path}: : {reason}\n\n"


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: \xff")
    result = cli_runs.run("validate", "-f", path)

    assert f"failed to decode file {path}: : line 1 is not UTF-8 text" in result.stderr


def test_one_document_that_does_not_decode_leaves_the_others(tmp_path: Path) -> None:
    result = cli_runs.run("validate", "-f", write(tmp_path, f"a: [1\n---\n{REFUSED}"))

    assert "Error: 3 errors occurred:\n" in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "hosts:",
            "hots: [a], hosts:",
            'cannot parse proto message: unknown field "hots" in istio.networking.v1alpha3.VirtualService '
            "(did you mean hosts?)",
        ),
        (
            "hosts: [reviews]",
            "hosts: 7",
            "cannot parse proto message: spec.hosts: expected list, got 7",
        ),
        ("spec:", "sepc: {}\nspec:", 'unknown field "sepc"'),
    ],
)
def test_fields_are_read_strictly(tmp_path: Path, old: str, new: str, message: str) -> None:
    result = cli_runs.run("validate", "-f", write(tmp_path, GOOD.replace(old, new, 1)))

    assert result.exit_code == 1
    assert result.stderr == f"Error: 1 error occurred:\n\t* VirtualService/shop/reviews: {message}\n\n"


def test_the_namespace_of_objects_without_one(tmp_path: Path) -> None:
    text = GOOD.replace(", namespace: shop", "").replace("spec: {", "spec: {exportTo: [., pay], ")
    path = write(tmp_path, text)

    assert cli_runs.run("validate", "-f", path).exit_code == 0
    assert cli_runs.run("validate", "-n", "web", "-f", path).exit_code == 0
    refused = cli_runs.run("validate", "-n", "pay", "-f", path)
    assert "VirtualService//reviews: duplicate entries in exportTo for entry pay" in refused.stderr


def service(namespace: str) -> str:
    ports = [
        {"port": 80},
        {"port": 81, "name": "foo"},
        {"port": 82, "name": "http-web"},
        {"port": 53, "name": "dns", "protocol": "UDP"},
        {"port": 83, "appProtocol": "kubernetes.io/h2c"},
        {"port": 84, "appProtocol": "smtp"},
    ]
    metadata = {"name": "s", "namespace": namespace}
    return json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}})


def test_ports_of_services_say_their_protocols(tmp_path: Path) -> None:
    result = cli_runs.run("validate", "-f", write(tmp_path, service("shop"), "a.json"))
    docs = "https://istio.io/latest/docs/ops"

    assert result.stderr.splitlines() == [
        "Error: 3 errors occurred:",
        '\t* Service/shop/s: service "s/shop/:" has an unnamed port. This is not recommended, '
        f"See {docs}/deployment/application-requirements/",
        '\t* Service/shop/s: service "s/shop/:" port "foo" does not follow the Istio naming convention. '
        f"See {docs}/deployment/application-requirements/",
        '\t* Service/shop/s: service "s/shop/:" doesn\'t follow Istio protocol selection. This is not recommended, '
        f"See {docs}/configuration/traffic-management/protocol-selection/",
        "",
    ]


@pytest.mark.parametrize(
    ("namespace", "flags"), [("istio-system", ()), ("mesh", ("-i", "mesh")), ("mesh", ("--istioNamespace=mesh",))]
)
def test_services_of_istio_itself_are_left_alone(tmp_path: Path, namespace: str, flags: tuple[str, ...]) -> None:
    assert cli_runs.run("validate", *flags, "-f", write(tmp_path, service(namespace), "a.json")).exit_code == 0


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ({}, "app, version"),
        ({"app": "a"}, "version"),
        ({"app.kubernetes.io/name": "a", "service.istio.io/canonical-revision": "b"}, ""),
    ],
)
def test_labels_of_deployments_that_metrics_lack(tmp_path: Path, labels: dict[str, str], missing: str) -> None:
    template = {"metadata": {"labels": labels}}
    raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}}
    path = write(tmp_path, json.dumps(raw), "a.json")
    result = cli_runs.run("validate", "-f", path)
    notice = f'deployment "d/:" may not provide Istio metrics and telemetry labels: {missing}. See https://'

    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1] == f'"{path}" is valid'
    assert result.stderr.startswith(notice) == bool(missing)


def test_other_kinds_pass_and_what_is_no_object_is_told(tmp_path: Path) -> None:
    other = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: 7\n"
    path = write(tmp_path, f"{other}---\na: 1\n---\n\n---\n- 1\n")
    result = cli_runs.run("validate", "-f", path)

    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"{path}:6: no object, since it has no kind",
        f"{path}:10: no object, since it has no kind",
        f'"{path}" is valid',
    ]


def test_objects_of_a_list_are_validated(tmp_path: Path) -> None:
    item = "\n".join(f"  {line}" for line in REFUSED.splitlines()).replace("  apiVersion", "- apiVersion", 1)
    path = write(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n{item}\n")
    result = cli_runs.run("-v", "validate", "-f", path)

    assert (
        f"VirtualService//reviews: duration must be greater than 1ms ({path}:10 spec.http[0].timeout)" in result.stderr
    )


def test_the_flag_that_istioctls_scripts_still_pass_is_taken(tmp_path: Path) -> None:
    assert cli_runs.run("validate", "-x=false", "-f", write(tmp_path, GOOD)).exit_code == 0
