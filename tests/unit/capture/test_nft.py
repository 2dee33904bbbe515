from mizzen.capture.config import CaptureConfig, Mode
from mizzen.capture.nft import render_nft, render_removal
from mizzen.capture.rule import Family
from mizzen.capture.rules import build_rules

SIDECAR = """\
add table inet istio-proxy-nat
flush table inet istio-proxy-nat
add chain inet istio-proxy-nat istio-inbound
add chain inet istio-proxy-nat istio-redirect
add chain inet istio-proxy-nat istio-in-redirect
add chain inet istio-proxy-nat istio-output
add chain inet istio-proxy-nat prerouting { type nat hook prerouting priority -100; }
add chain inet istio-proxy-nat output { type nat hook output priority -100; }
add rule inet istio-proxy-nat istio-inbound tcp dport 15008 counter return
add rule inet istio-proxy-nat istio-inbound tcp dport 15090 counter return
add rule inet istio-proxy-nat istio-inbound meta l4proto tcp counter jump istio-in-redirect
add rule inet istio-proxy-nat istio-redirect meta l4proto tcp counter redirect to :15001
add rule inet istio-proxy-nat istio-in-redirect meta l4proto tcp counter redirect to :15006
add rule inet istio-proxy-nat istio-output ip saddr 127.0.0.6/32 oifname "lo" counter return
add rule inet istio-proxy-nat istio-output ip daddr != 127.0.0.1/32 oifname "lo" tcp dport != 15008 meta skuid 1337 \
counter jump istio-in-redirect
add rule inet istio-proxy-nat istio-output oifname "lo" meta skuid != 1337 counter return
add rule inet istio-proxy-nat istio-output meta skuid 1337 counter return
add rule inet istio-proxy-nat istio-output ip daddr != 127.0.0.1/32 oifname "lo" tcp dport != 15008 meta skgid 1337 \
counter jump istio-in-redirect
add rule inet istio-proxy-nat istio-output oifname "lo" meta skgid != 1337 counter return
add rule inet istio-proxy-nat istio-output meta skgid 1337 counter return
add rule inet istio-proxy-nat istio-output ip daddr 127.0.0.1/32 counter return
add rule inet istio-proxy-nat istio-output counter jump istio-redirect
add rule inet istio-proxy-nat prerouting meta l4proto tcp counter jump istio-inbound
add rule inet istio-proxy-nat output counter jump istio-output
"""


def _render(config: CaptureConfig, *families: Family) -> str:
    return render_nft([build_rules(config, family) for family in families])


def _rules(text: str, chain: str) -> list[str]:
    return [
        line.split(f" {chain} ", 1)[1]
        for line in text.splitlines()
        if line.startswith("add rule") and f" {chain} " in line
    ]


def test_the_rules_of_a_sidecar() -> None:
    assert _render(CaptureConfig(exclude_inbound_ports=(15090,)), Family.V4) == SIDECAR


def test_families_share_one_table_and_what_names_no_address_stands_once() -> None:
    rules = _rules(_render(CaptureConfig(), Family.V4, Family.V6), "istio-output")
    assert rules[:4] == [
        'ip saddr 127.0.0.6/32 oifname "lo" counter return',
        'ip daddr != 127.0.0.1/32 oifname "lo" tcp dport != 15008 meta skuid 1337 counter jump istio-in-redirect',
        'ip6 saddr ::6/128 oifname "lo" counter return',
        'ip6 daddr != ::1/128 oifname "lo" tcp dport != 15008 meta skuid 1337 counter jump istio-in-redirect',
    ]
    assert rules.count('oifname "lo" meta skuid != 1337 counter return') == 1
    assert rules[-1] == "counter jump istio-redirect"
    assert len(rules) == len(set(rules))


def test_what_iptables_inserts_at_the_head_stands_at_the_head() -> None:
    config = CaptureConfig(virtual_interfaces=("eth1",), include_outbound_ranges=("10.0.0.0/8",))
    assert _rules(_render(config, Family.V4), "prerouting") == [
        'ip daddr 10.0.0.0/8 iifname "eth1" counter jump istio-redirect',
        'iifname "eth1" counter return',
        "meta l4proto tcp counter jump istio-inbound",
    ]


def test_marks_zones_and_states_in_nftables_words() -> None:
    text = _render(CaptureConfig(mode=Mode.TPROXY, redirect_dns=True, drop_invalid=True), Family.V4)
    for statement in (
        "meta mark set 1337 tproxy ip to :15006 accept",
        "ct state related,established counter jump istio-divert",
        "ct state invalid counter jump istio-drop",
        "meta mark 1337 counter ct mark set meta mark",
        "ct mark 1337 counter meta mark set ct mark",
        "udp dport 53 meta skuid 1337 counter ct zone set 1",
        "tcp dport != { 53, 15008 } meta skuid 1337",
        "istio-proxy-mangle output { type route hook output priority -150; }",
        "istio-proxy-raw output { type filter hook output priority -300; }",
    ):
        assert statement in text


def test_removal_works_whether_the_tables_are_there_or_not() -> None:
    lines = render_removal().splitlines()
    assert lines[::2] == [line.replace("delete", "add") for line in lines[1::2]]
    assert len(lines) == 6
