"""`mizzen authz check`: the policies that recorded proxies enforce."""

import json
import pathlib

import cli_runs
import golden
import pytest
from http_answers import Answers, on_port, on_socket

HEADER = "ACTION   AuthorizationPolicy   RULES\n"


def dump_of(case: str, proxy: str) -> bytes:
    """The recorded listeners of a case as a dump."""
    listeners = golden.expected(golden.load_case(case), proxy)["listeners"]
    entries = [{"name": name, "activeState": {"listener": value}} for name, value in listeners.items()]
    section = {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamicListeners": entries}
    return json.dumps({"configs": [section]}).encode()


def check(*arguments: object, stdin: bytes | None = None) -> str:
    result = cli_runs.run("authz", "check", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


@pytest.mark.parametrize(
    ("case", "proxy", "table"),
    [
        (
            "security/authz-tcp",
            "payments",
            HEADER
            + "DENY     b-deny.pay            4\n"
            + "ALLOW    a-allow.pay           6\n"
            + "LOG      c-audit.pay           1\n",
        ),
        (
            "security/authz-custom-http",
            "cart",
            HEADER + "DENY     deny-too.shop         1\n" + "CUSTOM   ask-guard.shop        2\n",
        ),
        (
            "security/authz-tcp",
            "ledger",
            "ACTION   AuthorizationPolicy         RULES\n"
            "ALLOW    _anonymous_match_nothing_   1\n"
            "ALLOW    d-ledger.pay                1\n",
        ),
        ("base", "cart", HEADER),
    ],
)
def test_the_policies_of_a_recorded_proxy(case: str, proxy: str, table: str) -> None:
    assert check("-f", "-", stdin=dump_of(case, proxy)) == table


def test_a_pod_of_the_mesh_is_asked(tmp_path: pathlib.Path) -> None:
    answers = Answers({"/config_dump": dump_of("security/authz-tcp", "payments")})
    pods = [cli_runs.pod("payments-0", "pay", tmp_path / "p.sock")]
    mesh = cli_runs.write_mesh(tmp_path / "mesh", pods=pods)
    with on_socket(tmp_path / "p.sock", answers):
        assert "b-deny.pay" in check("payments-0.pay", "--mesh", mesh)


def test_a_control_plane_is_asked_what_it_sent() -> None:
    target = "/debug/config_dump?proxyID=payments-0.pay"
    with on_port(Answers({target: dump_of("security/authz-tcp", "payments")})) as address:
        assert "b-deny.pay" in check("payments-0", "-n", "pay", "--monitoring", address)
        unknown = cli_runs.run("x", "authz", "check", "other.pay", "--monitoring", address)

    assert (unknown.exit_code, unknown.stderr) == (1, "Error: unable to find config dump in Istiod responses\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expecting pod name or config dump, found: 0"),
        (("a", "-f", "x"), "expecting pod name or config dump, found: 2"),
        (("a", "b"), "check requires only <pod-name>[.<pod-namespace>]"),
    ],
)
def test_one_proxy_is_wanted(arguments: tuple[str, ...], message: str) -> None:
    result = cli_runs.run("authz", "check", *arguments)

    assert (result.exit_code, result.stderr) == (1, f"Error: {message}\n")
