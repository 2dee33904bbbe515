"""`mizzen tls-check`: one pair, all pairs, exit codes."""

import json
import pathlib

import cli_runs
import pytest

SHOP = pathlib.Path(__file__).parents[2] / "samples" / "shop"


def test_a_pair_that_agrees() -> None:
    result = cli_runs.run("tls-check", "-f", SHOP, "front.shop", "catalog:8080")
    assert result.exit_code == 0, result.output
    assert "catalog.shop.svc.cluster.local:8080: OK" in result.stdout
    assert "auto mTLS" in result.stdout
    assert "STRICT by PeerAuthentication shop/default" in result.stdout
    assert "security.yaml:2)" in result.stdout


def test_a_pair_that_does_not_says_why_and_exits_with_1() -> None:
    result = cli_runs.run("tls-check", "-f", SHOP, "rates.outside", "catalog.shop", "-o", "json")
    assert result.exit_code == 1
    (found,) = json.loads(result.stdout)
    assert (found["verdict"], found["client"]["mode"], found["client"]["speaks"]) == (
        "CONFLICT",
        "no sidecar",
        "plain text",
    )
    assert (found["cause"]["kind"], found["cause"]["line"]) == ("PeerAuthentication", 2)
    assert found["servers"][0]["takes"] == ["mutual TLS"]


def test_all_pairs_as_a_table_and_as_json() -> None:
    table = cli_runs.run("tls-check", "-f", SHOP, "--all")
    assert table.exit_code == 1
    lines = table.stdout.splitlines()
    assert lines[0].split() == ["VERDICT", "SERVICE", "CLIENTS", "CLIENT", "SPEAKS", "SERVER", "TAKES", "BECAUSE", "OF"]
    assert lines[1].startswith("CONFLICT")
    every = json.loads(cli_runs.run("tls-check", "-f", SHOP, "--all", "-o", "json").stdout)
    assert lines[-1].startswith(f"{len(every)} pairs: ")
    assert len(lines) < len(every) / 2


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        ((), "give SRC and DST, or --all", 64),
        (("front.shop",), "give SRC and DST, or --all", 64),
        (("front.shop", "catalog", "--all"), "give SRC and DST, or --all", 64),
        (("nobody.shop", "catalog"), "there is no pod nobody.shop", 1),
        (("front.shop", "nothing"), "there is no Service nothing", 1),
        (("front.shop", "catalog:81"), "has no port 81; it has 8080", 1),
        (("front.shop", "catalog:http"), "is not SERVICE[.NAMESPACE][:PORT]", 64),
    ],
)
def test_what_cannot_be_asked_is_told(arguments: tuple[str, ...], says: str, code: int) -> None:
    result = cli_runs.run("tls-check", "-f", SHOP, *arguments)
    assert result.exit_code == code
    assert says in result.stderr
