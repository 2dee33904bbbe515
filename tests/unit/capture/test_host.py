from pathlib import Path

from mizzen.capture import host
from mizzen.capture.config import CaptureConfig

IF_INET6 = """\
00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000a8aabbfffeccddee 02 40 20 80     eth0
"""
GLOBAL = "fd000000000000000000000000000001 02 40 00 80     eth0\n"


def _machine(root: Path, *, resolv: str = "", addresses: str = "") -> Path:
    (root / "etc").mkdir()
    (root / "proc/net").mkdir(parents=True)
    (root / "etc/resolv.conf").write_text(resolv)
    (root / "proc/net/if_inet6").write_text(addresses)
    return root


def test_resolvers_are_read_in_order_without_what_no_rule_could_name() -> None:
    servers = ("10.0.0.1", "fe80::1%eth0", "fd00::1", "10.0.0.1", "x", "")
    text = "# dns\nsearch a b\n" + "".join(f"nameserver {server}\n" for server in servers)
    assert host.parse_resolvers(text) == ("10.0.0.1", "fd00::1")


def test_only_an_address_that_reaches_further_than_the_link_counts_as_ipv6(tmp_path: Path) -> None:
    assert not host.has_ipv6(IF_INET6)
    assert host.has_ipv6(IF_INET6 + GLOBAL)
    root = _machine(tmp_path, addresses=IF_INET6 + GLOBAL)
    assert host.complete(CaptureConfig(), root=root).ipv6


def test_what_is_set_already_is_kept(tmp_path: Path) -> None:
    root = _machine(tmp_path, resolv="nameserver 10.0.0.1\n")
    assert host.complete(CaptureConfig(), root=root).dns_servers == ("10.0.0.1",)
    config = CaptureConfig(dns_servers=("10.9.9.9",), ipv6=True)
    assert host.complete(config, root=root) == config


def test_a_machine_without_those_files_has_neither(tmp_path: Path) -> None:
    assert host.complete(CaptureConfig(), root=tmp_path) == CaptureConfig()
