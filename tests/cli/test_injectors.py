"""`check-inject` and `injector list`: webhooks of a cluster from files, and the injector of a local mesh."""

import pathlib

import cli_runs
import pytest

from mizzen.local import runtime

CLUSTER = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-revision-tag-default, labels: {app: sidecar-injector, istio.io/rev: default, istio.io/tag: default}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  namespaceSelector: {matchExpressions: [{key: istio-injection, operator: In, values: [enabled]}]}
  objectSelector: {matchExpressions: [{key: sidecar.istio.io/inject, operator: NotIn, values: ["false"]}]}
- name: object.sidecar-injector.istio.io
  namespaceSelector: {matchExpressions: [{key: istio-injection, operator: DoesNotExist}, {key: istio.io/rev, operator: DoesNotExist}]}
  objectSelector: {matchExpressions: [{key: sidecar.istio.io/inject, operator: In, values: ["true"]}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector-1-18, labels: {app: sidecar-injector, istio.io/rev: 1-18}}
webhooks:
- name: rev.namespace.sidecar-injector.istio.io
  namespaceSelector: {matchExpressions: [{key: istio.io/rev, operator: In, values: [1-18]}]}
  objectSelector: {matchExpressions: [{key: sidecar.istio.io/inject, operator: NotIn, values: ["false"]}]}
- name: rev.object.sidecar-injector.istio.io
  namespaceSelector: {matchExpressions: [{key: istio.io/rev, operator: DoesNotExist}, {key: istio-injection, operator: DoesNotExist}]}
  objectSelector: {matchExpressions: [{key: istio.io/rev, operator: In, values: [1-18]}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector-old, labels: {app: sidecar-injector, istio.io/rev: old}}
webhooks: [{name: x, namespaceSelector: {matchLabels: {istio.io/deactivated: never-match}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: somebody-elses}
webhooks: [{name: y}]
---
{apiVersion: v1, kind: Namespace, metadata: {name: hello, labels: {istio-injection: enabled}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: canary, labels: {istio.io/rev: 1-18}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: "off", labels: {istio-injection: disabled}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: plain}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: lost, labels: {istio.io/rev: gone}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}
---
{apiVersion: v1, kind: Pod, metadata: {name: httpbin-1234, namespace: hello, labels: {app: httpbin}, annotations: {istio.io/rev: default}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: httpbin-old, namespace: hello, annotations: {istio.io/rev: 1-17}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: shy, namespace: hello, labels: {sidecar.istio.io/inject: "false"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: lonely, namespace: plain}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injector-1-18, namespace: istio-system}
data: {values: '{"global": {"hub": "docker.io/istio", "tag": "1.18.0", "proxy": {"image": "proxyv2"}}}'}
"""

NO_1_18 = "No matching namespace labels (istio.io/rev=1-18) or pod labels (istio.io/rev=1-18)"
NO_DEFAULT = "No matching namespace labels (istio-injection=enabled) or pod labels (sidecar.istio.io/inject=true)"
DEACTIVATED = "The injection webhook is deactivated, and will never match labels."


@pytest.fixture
def cluster(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return path


def check(*arguments: object) -> list[list[str]]:
    """Revision, verdict and reason of each webhook."""
    result = cli_runs.run("x", "check-inject", *arguments)
    assert result.exit_code == 0, result.stderr
    rows = result.stdout.splitlines()
    assert rows[0].split() == ["WEBHOOK", "REVISION", "INJECTED", "REASON"]
    return [row.split(None, 3)[1:] for row in rows[1:]]


def test_the_webhooks_of_a_pod(cluster: pathlib.Path) -> None:
    assert cli_runs.run("x", "check-inject", "httpbin-1234.hello", "-f", cluster).stdout == (
        "WEBHOOK                      REVISION  INJECTED  REASON\n"
        f"istio-revision-tag-default   default   ✔         Namespace label istio-injection=enabled matches\n"
        f"istio-sidecar-injector-1-18  1-18      ✘         {NO_1_18}\n"
        f"istio-sidecar-injector-old   old       ✘         {DEACTIVATED}\n"
    )


@pytest.mark.parametrize(
    ("asked", "default", "other"),
    [
        (
            ("-n", "hello", "-l", "sidecar.istio.io/inject=false"),
            ["✘", "Pod has sidecar.istio.io/inject=false label, preventing injection"],
            ["✘", NO_1_18],
        ),
        (("-n", "canary", "-l", "a=b"), ["✘", NO_DEFAULT], ["✔", "Namespace label istio.io/rev=1-18 matches"]),
        (
            ("-n", "plain", "-l", "istio.io/rev=1-18"),
            ["✘", NO_DEFAULT],
            ["✔", "Pod label istio.io/rev=1-18 matches"],
        ),
        (
            ("-n", "plain", "-l", "sidecar.istio.io/inject=true"),
            ["✔", "Pod label sidecar.istio.io/inject=true matches"],
            ["✘", NO_1_18],
        ),
        (
            ("-n", "off", "-l", "sidecar.istio.io/inject=true"),
            ["✘", "Namespace has istio-injection=disabled label, preventing injection"],
            ["✘", "Namespace has istio-injection=disabled label, preventing injection"],
        ),
    ],
)
def test_why_labels_are_injected_or_not(
    cluster: pathlib.Path, asked: tuple[str, ...], default: list[str], other: list[str]
) -> None:
    rows = check(*asked, "-f", cluster)

    assert rows[:2] == [["default", *default], ["1-18", *other]]


def test_the_pods_of_a_deployment_are_foretold(cluster: pathlib.Path) -> None:
    cluster.write_text(
        cluster.read_text()
        + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: httpbin, namespace: canary}\n"
        + "spec: {template: {metadata: {labels: {app: httpbin}}, spec: {containers: [{name: app, image: a}]}}}\n"
    )

    assert check("deploy/httpbin.canary", "-f", cluster)[1] == [
        "1-18",
        "✔",
        "Namespace label istio.io/rev=1-18 matches",
    ]


def test_two_webhooks_that_inject_are_an_error(cluster: pathlib.Path) -> None:
    labels = "sidecar.istio.io/inject=true,istio.io/rev=1-18"
    result = cli_runs.run("x", "check-inject", "-n", "plain", "-l", labels, "-f", cluster)

    assert result.stdout.endswith("ERROR: multiple webhooks will inject, which can lead to errors\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope.hello",), 'unable to retrieve Pod: pods "nope" not found in namespace hello'),
        (("-n", "nope", "-l", "a=b"), 'namespaces "nope" not found'),
        ((), "check-inject requires either a pod name or labels (-l)"),
    ],
)
def test_what_cannot_be_checked(cluster: pathlib.Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli_runs.run("x", "check-inject", *arguments, "-f", cluster)

    assert (result.exit_code, result.stderr.startswith(f"Error: {message}")) == (1, True), result.stderr


def test_a_cluster_without_hooks(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("{apiVersion: v1, kind: Namespace, metadata: {name: hello}}")

    checked = cli_runs.run("x", "check-inject", "-n", "hello", "-l", "a=b", "-f", path)
    assert (checked.exit_code, checked.stderr) == (1, "Error: no Istio injection hooks present.\n")
    assert cli_runs.run("x", "injector", "list", "-f", path).stdout == (
        "No Istio injected namespaces present.\n\nNo Istio injection hooks present.\n"
    )


def test_namespaces_with_their_pods_and_hooks_with_their_namespaces(cluster: pathlib.Path) -> None:
    assert cli_runs.run("x", "injector", "list", "-f", cluster).stdout == (
        "NAMESPACE ISTIO-REVISION POD-REVISIONS\n"
        "canary    1-18           1-18: <no pods>\n"
        "hello     default        1-17: 1 NEEDS RESTART: 1\n"
        "hello     default        <non-Istio>: 1 (injection disabled: 1)\n"
        "hello     default        default: 1\n"
        "lost      MISSING/gone   MISSING/gone: <no pods>\n"
        "plain                    <non-Istio>: 1\n"
        "\n"
        "NAMESPACES          INJECTOR-HOOK               ISTIO-REVISION SIDECAR-IMAGE\n"
        "hello               istio-revision-tag-default  default        \n"
        "canary              istio-sidecar-injector-1-18 1-18           docker.io/istio/proxyv2:1.18.0\n"
        "DOES NOT AUTOINJECT istio-sidecar-injector-old  old            \n"
    )


def test_the_injector_of_a_local_mesh_stands_in_for_a_webhook(tmp_path: pathlib.Path) -> None:
    mesh = cli_runs.write_mesh(tmp_path / "mesh")
    config = runtime.Layout(mesh).config
    config.mkdir()
    (config / "pods.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: free, annotations: {istio.io/rev: default}}}\n---\n"
        "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: free}, spec: {hostNetwork: true}}\n---\n"
        "{apiVersion: v1, kind: Pod, metadata: {name: c, namespace: plain}}\n---\n"
        "{apiVersion: v1, kind: Namespace, metadata: {name: plain}}\n"
    )

    def reason(pod: str) -> str:
        return cli_runs.run("x", "check-inject", pod, "--mesh", mesh).stdout.splitlines()[1]

    assert reason("a.free") == "mizzen up  default   ✔         Namespace label istio-injection=enabled matches"
    assert reason("b.free") == "mizzen up  default   ✘         Pod uses the host's network"
    assert "✘         No matching namespace labels" in reason("c.plain")
    assert "free      default        default: 1\n" in cli_runs.run("x", "injector", "list", "--mesh", mesh).stdout
