"""`mizzen trace --from-log`: where lines come from, what is printed, exit codes."""

import gzip
import json
import pathlib

import cli_runs
import log_faults
import pytest

SHOP = pathlib.Path(__file__).parents[2] / "samples" / "shop"
EMPTY = (
    '[2026-11-30T01:24:32.524Z] "GET / HTTP/1.1" 503 UH no_healthy_upstream - "-" 0 19 0 - "-" "-" "id-{n}" "catalog:8080" '
    '"-" outbound|8080||catalog.shop.svc.cluster.local - 10.96.121.186:8080 172.20.0.16:39528 - default\n'
)
FINE = EMPTY.replace("503 UH no_healthy_upstream", "200 - via_upstream")


@pytest.fixture
def log(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "proxy.log"
    path.write_text("".join(EMPTY.replace("{n}", f"{n}") for n in range(3)) + FINE + "started\n")
    return path


def test_causes_are_counted_with_an_example(log: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = cli_runs.run("trace", "--from-log", log, "-f", SHOP)
    assert result.exit_code == 1
    assert result.stdout.startswith("5 lines: 1 fine, 3 with 1 causes, 1 that are no access log\n")
    assert "3 x catalog.shop:8080: the Service has no endpoint that may be chosen" in result.stdout
    assert "Service shop/catalog (" in result.stdout
    assert "catalog.yaml:" in result.stdout
    assert f"  example  {EMPTY[:60].replace('{n}', '0')}" in result.stdout


def test_nothing_of_a_log_speaks_to_the_terminal(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "proxy.log"
    path.write_text(EMPTY.replace('"id-', '"\x1b]0;owned\x07\x9b2J\u202eid-').replace("catalog:8080", "cat\x1b[31m:80"))
    result = cli_runs.run("trace", "--from-log", path, "-f", SHOP)
    assert result.exit_code == 1
    assert "\\x1b]0;owned\\x07" in result.stdout
    assert [char for char in result.stdout if not char.isprintable() and char != "\n"] == []


def test_as_json(log: pathlib.Path) -> None:
    found = json.loads(cli_runs.run("trace", "--from-log", log, "-f", SHOP, "-o", "json").stdout)
    assert (found["lines"], found["healthy"], found["unknown"]) == (5, 1, 1)
    (group,) = found["groups"]
    assert (group["cause"], group["count"], group["link"]) == ("no-endpoint", 3, "endpoint")
    assert (group["object"]["kind"], group["object"]["name"], group["object"]["line"] > 0) == (
        "Service",
        "catalog",
        True,
    )
    assert group["seen"] == [{"line": "503 UH no_healthy_upstream", "count": 3}]


def test_compressed_and_from_stdin(log: pathlib.Path, tmp_path: pathlib.Path) -> None:
    packed = tmp_path / "proxy.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    plain = cli_runs.run("trace", "--from-log", log, "-f", SHOP).stdout
    assert cli_runs.run("trace", "--from-log", packed, "-f", SHOP).stdout == plain
    assert cli_runs.run("trace", "--from-log", "-", "-f", SHOP, stdin=log.read_bytes()).stdout == plain
    assert cli_runs.run("trace", "--from-log", "-", "-f", SHOP, stdin=packed.read_bytes()).stdout == plain


def test_a_log_of_good_answers_is_no_failure(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "fine.log"
    path.write_text(FINE)
    result = cli_runs.run("trace", "--from-log", path, "-f", SHOP)
    assert (result.exit_code, result.stdout) == (0, "1 lines: 1 fine, 0 with 0 causes, 0 that are no access log\n")


def test_thousands_of_lines(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "many.log"
    path.write_text("\n".join(line.text for line in log_faults.generate(11, 3000)))
    found = json.loads(cli_runs.run("trace", "--from-log", path, "-f", SHOP, "-o", "json").stdout)
    assert (found["lines"], found["unknown"]) == (3000, 0)
    assert 50 <= len(found["groups"]) <= 60


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("trace", "--from-log", tmp_path / "none.log")
    assert result.exit_code == 1
    assert "none.log" in result.stderr


def test_neither_url_nor_log() -> None:
    result = cli_runs.run("trace", "-f", SHOP)
    assert result.exit_code == 64
    assert "give a URL and --from, or --from-log" in result.stderr
