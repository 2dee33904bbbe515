import grp
import shlex

import pytest

from mizzen.capture.arguments import OPTIONS, Invocation, parse_arguments
from mizzen.capture.config import CaptureConfig, Mode
from mizzen.errors import UsageError


def test_arguments_of_an_injected_init_container_give_its_capture() -> None:
    line = "istio-iptables -p 15001 -z 15006 -u 1337 -m REDIRECT -i '*' -x '' -b '*' -d 15090,15021,15020"
    words = [*shlex.split(line), "--log_output_level=default:info"]
    assert parse_arguments(words).config == CaptureConfig(exclude_inbound_ports=(15090, 15021, 15020))


def test_without_arguments_everything_is_captured() -> None:
    assert parse_arguments([]) == Invocation(config=CaptureConfig())


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["-i", ""], "include_outbound_ranges", ()),
        (["-i", "10.0.0.0/8, fd00::/8"], "include_outbound_ranges", ("10.0.0.0/8", "fd00::/8")),
        (["-i", "10.0.0.0/8,*"], "include_outbound_ranges", "*"),
        (["-x", "10.1.2.3/16"], "exclude_outbound_ranges", ("10.1.0.0/16",)),
        (["-b", ""], "include_inbound_ports", ()),
        (["-b", "80,81"], "include_inbound_ports", (80, 81)),
        (["-q", "443"], "include_outbound_ports", (443,)),
        (["-o", "25"], "exclude_outbound_ports", (25,)),
        (["-c", "eth1,eth2"], "exclude_interfaces", ("eth1", "eth2")),
        (["-k", "k6t"], "virtual_interfaces", ("k6t",)),
        (["-u", "1,2"], "proxy_uids", (1, 2)),
        (["-m", "TPROXY"], "mode", Mode.TPROXY),
        (["-t", "0x10"], "tproxy_mark", 16),
        (["--redirect-dns"], "redirect_dns", True),
        (["--redirect-dns=false"], "redirect_dns", False),
        (["--proxy-socket-mark=1337"], "proxy_socket_mark", 1337),
    ],
)
def test_flags_set_fields(words: list[str], field: str, value: object) -> None:
    assert getattr(parse_arguments(words).config, field) == value


def test_flags_of_action_do_not_touch_the_config() -> None:
    invocation = parse_arguments(["-n", "--cleanup-only", "--force-iptables-binary", "legacy", "--probe-timeout=2s"])
    assert invocation == Invocation(dry_run=True, cleanup_only=True, variant="legacy", probe_timeout=2.0)


def test_the_environment_stands_in_for_absent_flags_only() -> None:
    environment = {"ISTIO_META_DNS_CAPTURE": "true", "ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR": "127.0.0.0/8"}
    assert parse_arguments([], environment).config.redirect_dns
    assert parse_arguments([], environment).config.loopback_v4 == "127.0.0.0/8"
    assert not parse_arguments(["--redirect-dns=false"], environment).config.redirect_dns


def test_owner_groups_are_read_by_number_and_by_name() -> None:
    known = grp.getgrgid(0).gr_name
    config = parse_arguments([], {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE": f"202,{known}"}).config
    assert config.exclude_owner_groups == (202, 0)
    assert parse_arguments([], {"ISTIO_OUTBOUND_OWNER_GROUPS": ""}).config.include_owner_groups == "*"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nonsense"], "istio-iptables: unknown argument '--nonsense'"),
        (["-p"], "istio-iptables: --envoy-port needs a value"),
        (["-p", "70000"], "istio-iptables: --envoy-port: '70000' is no port"),
        (["-i", "10.0.0.300"], "istio-iptables: --istio-service-cidr: '10.0.0.300'"),
        (["-m", "MAGIC"], "'MAGIC' is none of REDIRECT, TPROXY, NONE"),
        (["--redirect-dns=maybe"], "'maybe' is neither true nor false"),
        (["--outbound-owner-groups=no-such-group"], "no group 'no-such-group' on this machine"),
        (["--force-iptables-binary=ipfw"], "'ipfw' is neither nft nor legacy"),
    ],
)
def test_nonsense_is_refused_by_name(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arguments(words)
    assert message in str(caught.value)


def test_no_flag_means_two_things() -> None:
    flags = [flag for option in OPTIONS for flag in option.flags]
    assert len(flags) == len(set(flags))
    config_fields = set(CaptureConfig.__struct_fields__)
    assert {option.field for option in OPTIONS if option.field and not option.action} <= config_fields
    assert {option.field for option in OPTIONS if option.action} <= set(Invocation.__struct_fields__)
