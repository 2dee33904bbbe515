"""`mizzen trace`: its inputs, its two outputs, its exit codes."""

import json
import pathlib

import cli_runs
import pytest

SHOP = pathlib.Path(__file__).parents[2] / "samples" / "shop"
BROKEN = """
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: broken, namespace: shop}
spec:
  hosts: [catalog]
  http: [{route: [{destination: {host: catalog, subset: v9}}]}]
"""


def test_a_bare_tree_of_manifests_is_enough() -> None:
    result = cli_runs.run("trace", "-f", SHOP, "--from", "outside", "http://localhost/")

    assert result.exit_code == 0, result.output
    assert "DELIVERED 200 via_upstream, by front-" in result.stdout
    assert "from VirtualService shop/shop" in result.stdout


def test_a_broken_request_names_the_object_and_its_line(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    result = cli_runs.run("trace", "-f", SHOP, "-f", file, "--from", "front.shop", "http://catalog:8080/", "-o", "json")

    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["outcome"], found["status"], found["flag"], found["details"]) == (
        "failed",
        503,
        "NC",
        "cluster_not_found",
    )
    assert found["certain"] is True
    assert found["cause"] == {
        "kind": "VirtualService",
        "namespace": "shop",
        "name": "broken",
        "file": str(file),
        "line": 2,
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--from", "nobody.shop", "http://catalog/"), "there is no pod nobody.shop"),
        (("--from", "front.shop", "http://[::1"), "http://[::1"),
        (("--from", "front.shop", "catalog"), "neither a URL nor host:port"),
        (("--from", "front.shop", "http://catalog/", "-H", "none"), "is not NAME: VALUE"),
    ],
)
def test_what_cannot_be_asked_is_told(arguments: tuple[str, ...], says: str) -> None:
    result = cli_runs.run("trace", "-f", SHOP, *arguments)

    assert (result.exit_code, result.stdout) == (1, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--takes", "-5"), "--takes: -5 is no number of seconds"),
        (("--takes", "nan"), "--takes: nan is no number of seconds"),
        (("--gives-up", "-1"), "--gives-up: "),
        (("--answers", "9999"), "--answers: 9999 is no HTTP status (100 to 599)"),
        (("--authorizer", "7"), "--authorizer: "),
        (("--at-once", "0"), "--at-once: "),
        (("-X", "GE\nT"), "--request: 'GE\\nT' is no HTTP method"),
        (("-H", "x: a\nb"), "--header: "),
        (("--connect-to", "banana"), "--connect-to: 'banana' is no IP address"),
        (("--client-ip", "banana"), "--client-ip: "),
    ],
)
def test_nonsense_is_no_command_line(arguments: tuple[str, ...], says: str) -> None:
    result = cli_runs.run("trace", "-f", SHOP, "--from", "front.shop", "http://catalog:8080/", *arguments)

    assert (result.exit_code, result.stdout) == (64, "")
    assert says in result.stderr


def test_manifests_and_dumps_exclude_each_other() -> None:
    result = cli_runs.run("trace", "-f", SHOP, "--file", "x", "--from", "outside", "http://a/")

    assert result.exit_code == 64
    assert "either -f or --file" in result.stderr
