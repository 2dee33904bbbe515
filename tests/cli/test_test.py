"""`mizzen test`: its files, its outputs, its exit codes, recording and coverage."""

import datetime
import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

import cli_runs
import jwt
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import rsa

ROOT = pathlib.Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "shop.test.yaml"
PAGE = (ROOT / "docs" / "test.md").read_text(encoding="utf-8")


def table(tests: str, folder: pathlib.Path, head: str = "") -> pathlib.Path:
    file = folder / "cart.test.yaml"
    file.write_text(f"manifests: [{ROOT / 'samples' / 'shop'}]\n{head}defaults: {{from: front.shop}}\ntests:\n{tests}")
    return file


WRONG = """\
- name: all carts are old
  url: http://cart:8080/
  expect: {status: 200, shares: {v1: 100}}
- {name: carts may be written, url: "http://cart:8080/", method: POST, expect: {status: 200}}
- {name: from nowhere, from: nobody.shop, url: "http://cart:8080/", expect: {status: 200}}
- {name: the door, from: outside, url: "http://localhost/", expect: {status: 200}}
"""


def test_the_page_shows_what_is_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```console\n# mizzen (.*?)\n(.*?)```", PAGE, re.DOTALL)
    command, printed = example

    result = cli_runs.run(*command.split())

    assert (result.exit_code, result.stdout) == (0, printed)
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    known = yaml.safe_load(SAMPLE.read_text())["tests"]
    assert all(test in known for test in yaml.safe_load(shown)["tests"])


def test_failures_are_told_in_full_and_what_holds_in_one_line(tmp_path: pathlib.Path) -> None:
    file = table(WRONG, tmp_path)
    result = cli_runs.run("test", file)

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == f"FAIL {file}: 1 of 4"
    assert f"  ✗ all carts are old  ({file}:4)" in lines
    assert "      shares.v1: expected 100, is cart.shop/v1 90, cart.shop/v2 10" in lines
    assert f"  ✗ carts may be written  ({file}:7)" in lines
    assert "      status: expected 200, is 403" in lines
    assert any(line.startswith("      by AuthorizationPolicy shop/cart-callers (") for line in lines)
    assert any(line.startswith("      there is no pod nobody.shop") for line in lines)
    assert lines[-1] == "4 tests, 3 failed"
    assert "the door" not in result.stdout


def test_v_adds_each_trace(tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("test", table(WRONG, tmp_path), "-v")

    assert "  ✓ the door" in result.stdout
    assert "      DELIVERED 200 via_upstream, by front-" in result.stdout


def test_json_and_junit_say_the_same(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "junit.xml"
    result = cli_runs.run("test", table(WRONG, tmp_path), "-o", "json", "--junit", report, "--coverage")
    document = json.loads(result.stdout)

    assert result.exit_code == 1
    assert document["failed"] == 3
    assert [test["holds"] for test in document["tests"]] == [False, False, False, True]
    assert document["tests"][1]["mismatches"] == [{"field": "status", "expected": "200", "actual": "403"}]
    assert document["tests"][1]["trace"]["outcome"] == "denied"
    assert document["coverage"]["routes"]["total"] == 3
    assert document["coverage"]["routes"]["reached"] == 2
    assert "testers" in document["coverage"]["routes"]["missed"][0]
    (suite,) = ElementTree.parse(report).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4", "failures": "2", "errors": "1",
    }  # fmt: skip
    assert [[child.tag for child in case] for case in suite] == [["failure"], ["failure"], ["error"], []]


def test_recorded_expectations_hold_until_something_changes(tmp_path: pathlib.Path) -> None:
    extra = tmp_path / "more.yaml"
    extra.write_text("")
    tests = '# carts\n- {url: "http://cart:8080/"}\n- url: http://cart:8080/\n  method: POST  # writes\n'
    file = table(tests, tmp_path)
    file.write_text(file.read_text().replace("shop]", f"shop, {extra}]"))

    assert cli_runs.run("test", file).exit_code == 1, "a test that expects nothing does not hold"
    recorded = cli_runs.run("test", file, "--record")
    assert recorded.exit_code == 0, recorded.output
    assert "method: POST  # writes" in file.read_text()
    assert "shares: {cart.shop/v1: 90, cart.shop/v2: 10}" in file.read_text()
    assert cli_runs.run("test", file).exit_code == 0
    extra.write_text(
        "{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: shut, namespace: shop}, "
        "spec: {action: DENY, rules: [{}]}}"
    )
    changed = cli_runs.run("test", file)
    assert changed.exit_code == 1
    assert "policy: expected shop/cart-callers[0], is shop/shut[0]" in changed.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tests:\n- {url: a, expct: {}}\n", ":2: tests[0].expct: unknown key 'expct'"),
        ("tests:\n- url: http://a\n  from: x\n  expect:\n    sttus: 1\n", ":5: tests[0].expect.sttus: unknown key"),
        ("tests: []\ntests: []\n", ":2: key 'tests' is there twice"),
        ("tests:\n- {\n", ":2: "),
        ("", ":1: is empty"),
        ("tests: []\n", "names no `manifests`, and there is no -f"),
    ],
)
def test_a_file_that_says_nothing_useful_is_one_line(tmp_path: pathlib.Path, text: str, says: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    result = cli_runs.run("test", file)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {file}")
    assert says in result.stderr


TOKENS = """\
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: tokens, namespace: shop}
spec:
  selector: {matchLabels: {app: catalog}}
  jwtRules: [{issuer: me, jwks: 'KEYS'}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: readers, namespace: shop}
spec:
  selector: {matchLabels: {app: catalog}}
  rules: [{from: [{source: {requestPrincipals: [me/ada]}}]}]
"""
ADA = """\
- {url: "http://catalog:8080/", jwt: tokens/ada.jwt, expect: {status: 200, policy: "shop/readers[0]"}}
- {url: "http://catalog:8080/", expect: {status: 403, policy: none}}
- {url: "http://catalog:8080/", token: nonsense, expect: {status: 401, flag: "-"}}
"""


def test_tokens_are_those_of_files_at_the_time_that_the_table_states(tmp_path: pathlib.Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    keys = json.dumps({"keys": [{**public, "kid": "a"}]})
    expires = int(datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC).timestamp())
    token = jwt.encode({"iss": "me", "sub": "ada", "exp": expires}, key, "RS256", {"kid": "a"})
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "ada.jwt").write_text(f"{token}\n")
    (tmp_path / "policy.yaml").write_text(TOKENS.replace("KEYS", keys))

    for day, code in (("01", 0), ("03", 1)):
        file = table(ADA, tmp_path, head=f"now: 2026-01-{day}T00:00:00Z\n")
        file.write_text(file.read_text().replace("shop]", "shop, policy.yaml]"))
        result = cli_runs.run("test", file)
        assert result.exit_code == code, result.output
    assert "status: expected 200, is 401" in result.stdout
    assert "expired" in result.stdout
    assert "by RequestAuthentication shop/tokens (" in result.stdout


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("url: 'http://[::1'", "http://[::1"),
        ("url: 'http://catalog:8080/', connectTo: banana", "connectTo: 'banana' is no IP address"),
        ("url: 'http://catalog:8080/', takes: -1", "takes: -1 is no number of seconds"),
    ],
)
def test_a_request_that_nobody_could_send_is_told_with_its_line(tmp_path: pathlib.Path, wrong: str, says: str) -> None:
    file = tmp_path / "shop.test.yaml"
    file.write_text(f"tests:\n- {{from: front.shop, {wrong}, expect: {{status: 200}}}}\n")
    result = cli_runs.run("test", file, "-f", ROOT / "samples" / "shop")
    assert (result.exit_code, result.exception and type(result.exception)) == (1, SystemExit)
    assert f"{file}:2" in result.output
    assert says in result.output


def test_manifests_may_stand_on_the_command_line(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text('tests: [{from: outside, url: "http://localhost/", expect: {destination: front.shop}}]\n')

    assert cli_runs.run("test", file, "-f", ROOT / "samples" / "shop").exit_code == 0


def test_without_a_file_the_command_line_makes_no_sense() -> None:
    assert cli_runs.run("test").exit_code == 64
