"""`mizzen iptables` without touching the machine; what it loads is tested in real namespaces."""

import pytest
from click.testing import CliRunner, Result

from mizzen.cli.capture import iptables
from mizzen.errors import UsageError


def _run(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(iptables, list(arguments), env=env, standalone_mode=False)


def test_the_flags_of_an_injected_container_are_understood() -> None:
    done = _run(
        "--dry-run", "-p", "15001", "-u", "1337", "-i", "*", "-x", "", "-b", "*", "-d", "15090", "--log_as_json"
    )
    assert done.return_value == 0
    assert done.stdout.startswith("# iptables-restore --noflush\n*nat\n")
    assert "-A ISTIO_INBOUND -p tcp -m tcp --dport 15090 -j RETURN\n" in done.stdout


@pytest.mark.parametrize(
    ("given", "captured"), [(["--redirect-dns"], True), (["--redirect-dns=false"], False), ([], True)]
)
def test_switches_take_a_value_or_none_and_beat_the_environment(given: list[str], captured: bool) -> None:
    done = _run("--dry-run", *given, ISTIO_META_DNS_CAPTURE="true")
    assert ("ISTIO_OUTPUT_DNS" in done.stdout) is captured


def test_nftables_are_printed_when_asked_for() -> None:
    assert _run("--dry-run", "--native-nftables").stdout.startswith("add table inet istio-proxy-nat\n")


def test_a_flag_that_does_not_read_is_named() -> None:
    done = _run("--dry-run", "-d", "web")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == "istio-iptables: --istio-local-exclude-ports: 'web' is no port"


def test_every_flag_is_explained() -> None:
    shown = CliRunner().invoke(iptables, ["--help"]).stdout
    for flag in ("--istio-service-cidr", "--redirect-dns", "--native-nftables", "--run-validation"):
        assert flag in shown
