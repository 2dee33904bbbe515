"""`mizzen x workload` away from any cluster: manifests of groups, and what is refused; the words are istioctl's."""

import cli_runs
import pytest


def run(*arguments: str):
    return cli_runs.run("experimental", "workload", *arguments)


def test_a_group_is_printed_as_istioctl_prints_it():
    ran = run(
        *("group", "create", "--name", "foo", "--namespace", "bar", "--labels", "app=foo,bar=baz"),
        *("--annotations", "a=b", "--ports", "grpc=3550,http=8080", "--serviceAccount", "sa"),
    )
    assert ran.output == (
        "apiVersion: networking.istio.io/v1\n"
        "kind: WorkloadGroup\n"
        "metadata:\n"
        "  name: foo\n"
        "  namespace: bar\n"
        "spec:\n"
        "  metadata:\n"
        "    annotations:\n"
        "      a: b\n"
        "    labels:\n"
        "      app: foo\n"
        "      bar: baz\n"
        "  template:\n"
        "    ports:\n"
        "      grpc: 3550\n"
        "      http: 8080\n"
        "    serviceAccount: sa\n"
    )


def test_a_group_may_say_where_its_machines_are():
    ran = run("group", "create", "--name", "foo", "-n", "bar", "--network", "n1", "--locality", "r/z", "-w", "5")
    assert "  metadata: {}\n" in ran.output
    assert ran.output.endswith(
        "  template:\n    locality: r/z\n    network: n1\n    serviceAccount: default\n    weight: 5\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("group", "create"), "expecting a workload name"),
        (("group", "create", "--name", "foo"), "expecting a workload namespace"),
        (("group", "create", "--name", "foo", "-n", "bar", "-p", "http=many"), "http=many is not NAME=PORT"),
        (("group", "create", "--name", "foo", "-n", "bar", "-l", "app"), "'app' is not NAME=VALUE"),
        (
            ("entry", "configure", "-o", "d"),
            "expecting a WorkloadGroup artifact file or the name and namespace of an existing WorkloadGroup",
        ),
        (("entry", "configure", "-f", "group.yaml"), "expecting an output directory"),
        (
            ("entry", "configure", "-f", "g.yaml", "-o", "d", "--internalIP", "1.2.3.4", "--externalIP", "1.1.1.1"),
            "the flags --internalIP and --externalIP are mutually exclusive",
        ),
    ],
)
def test_what_is_missing_is_told_in_istioctl_s_words(arguments, told):
    ran = run(*arguments)
    assert told in ran.stderr
    assert ran.exit_code == 1
