"""Every case file holds flags of istio-iptables and the exact rules they must give."""

import shlex
from pathlib import Path

import msgspec
import pytest

from mizzen.capture.arguments import parse_arguments
from mizzen.capture.config import CaptureConfig, Mode
from mizzen.capture.render import render_restore
from mizzen.capture.rule import RETURN, Family
from mizzen.capture.rules import CHAINS, build_rules

CASES = sorted((Path(__file__).parent / "cases").glob("*.rules"))


def _read_case(path: Path) -> tuple[CaptureConfig, Family, str]:
    lines = path.read_text().splitlines(keepends=True)
    head = dict(line[2:].strip().split(": ", 1) for line in lines if line.startswith("# "))
    config = parse_arguments(shlex.split(head["arguments"])).config
    resolvers = tuple(head.get("resolvers", "").split())
    body = "".join(line for line in lines if not line.startswith("# "))
    return msgspec.structs.replace(config, dns_servers=resolvers), Family(head["family"]), body


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_flags_give_exactly_these_rules(path: Path) -> None:
    config, family, expected = _read_case(path)
    assert render_restore(build_rules(config, family)) == expected


def test_there_are_cases_for_both_families_and_modes() -> None:
    texts = [path.read_text() for path in CASES]
    assert len(CASES) >= 25
    assert any("family: ipv6" in text for text in texts)
    assert any("TPROXY" in text for text in texts)


def test_mode_none_captures_nothing() -> None:
    rules = build_rules(CaptureConfig(mode=Mode.NONE), Family.V4)
    assert (rules.chains, rules.rules) == ((), ())


def test_the_proxys_own_traffic_returns_before_anything_is_redirected() -> None:
    rules = build_rules(CaptureConfig(), Family.V4).rules
    output = [rule for rule in rules if (rule.table, rule.chain) == ("nat", "ISTIO_OUTPUT")]
    own = next(at for at, rule in enumerate(output) if rule.action == RETURN and len(rule.matches) == 1)
    captured = next(at for at, rule in enumerate(output) if rule.action.chain == "ISTIO_REDIRECT")
    assert own < captured


def test_every_chain_that_is_used_is_created_and_owned() -> None:
    config = CaptureConfig(mode=Mode.TPROXY, redirect_dns=True, dns_servers=("10.0.0.1",), drop_invalid=True)
    rules = build_rules(config, Family.V4)
    created = set(rules.chains)
    assert {(rule.table, rule.chain) for rule in rules.rules if rule.chain in CHAINS} <= created
    targets = {(rule.table, rule.action.chain) for rule in rules.rules if rule.action.chain}
    assert targets <= created
    assert {chain for _, chain in created} <= CHAINS


def test_ranges_are_written_as_the_kernel_will_show_them() -> None:
    rules = build_rules(CaptureConfig(include_outbound_ranges=("10.1.2.3/255.0.0.0",)), Family.V4)
    assert "-A ISTIO_OUTPUT -d 10.0.0.0/8 -j ISTIO_REDIRECT" in render_restore(rules)
