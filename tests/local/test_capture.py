"""Capture rules in real network namespaces: what the kernel holds, and where real connections arrive.

Two namespaces on one cable. `pod` (10.77.0.2) has the rules; `peer` (10.77.0.1) is the rest of the world and owns the
service address 10.96.0.10, so that a connection that escapes capture is seen there.
"""

import itertools
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import capture_peer
import msgspec
import pytest

from mizzen.capture import apply
from mizzen.capture.apply import CaptureError
from mizzen.capture.arguments import parse_arguments
from mizzen.capture.config import CaptureConfig, Mode
from mizzen.capture.rule import Family
from mizzen.capture.rules import build_rules
from mizzen.capture.state import expected, parse_save

pytestmark = pytest.mark.local

CASES = sorted((Path(__file__).parents[1] / "unit/capture/cases").glob("*.rules"))
POD, PEER, SERVICE = "10.77.0.2", "10.77.0.1", "10.96.0.10"
POD6, PEER6 = "fd77::2", "fd77::1"
APP, PROXY = 1000, 1337
PEER_PROGRAM = capture_peer.__file__

Loader = Callable[[CaptureConfig], object]

_serial = itertools.count()


def run(*command: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=30, **more)


class Namespace:
    """One network namespace and what a test does in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run("ip", "netns", "exec", self.name, *command, check=check)

    def call(self, host: str, port: int, *options: str) -> dict[str, Any]:
        done = self.run(sys.executable, PEER_PROGRAM, "call", host, str(port), *options)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    @contextmanager
    def listening(self, *arguments: str) -> Iterator[Callable[[], dict[str, Any]]]:
        """Listens while the block runs; the function gives what arrived next."""
        command = ["ip", "netns", "exec", self.name, sys.executable, PEER_PROGRAM, "listen", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            output = process.stdout
            assert json.loads(output.readline()) == {"ready": True}
            try:
                yield lambda: json.loads(output.readline())
            finally:
                process.kill()


@contextmanager
def _namespace() -> Iterator[Namespace]:
    name = f"mzt-{os.getpid()}-{next(_serial)}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        yield Namespace(name)
    finally:
        run("ip", "netns", "del", name)


@pytest.fixture
def pod() -> Iterator[Namespace]:
    with _namespace() as namespace:
        yield namespace


@pytest.fixture
def peer(pod: Namespace) -> Iterator[Namespace]:
    """The other end of a cable to `pod`."""
    with _namespace() as peer:
        run("ip", "-n", pod.name, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", peer.name)
        for space, own, own6 in ((pod, POD, POD6), (peer, PEER, PEER6)):
            run("ip", "-n", space.name, "addr", "add", f"{own}/24", "dev", "eth0")
            run("ip", "-n", space.name, "addr", "add", f"{own6}/64", "dev", "eth0", "nodad")
            run("ip", "-n", space.name, "link", "set", "eth0", "up")
        run("ip", "-n", pod.name, "route", "add", "default", "via", PEER)
        run("ip", "-n", peer.name, "addr", "add", f"{SERVICE}/32", "dev", "lo")
        yield peer


@pytest.fixture(params=["iptables", "nftables"])
def load(request: pytest.FixtureRequest, pod: Namespace) -> Loader:
    """Loads rules into `pod` by either tool: connections must not tell the difference."""
    if request.param == "nftables":
        return lambda config: apply.apply_native(config, namespace=pod.name)
    return lambda config: apply.apply(config, namespace=pod.name)


def _case(path: Path) -> tuple[CaptureConfig, Family]:
    head = dict(line[2:].split(": ", 1) for line in path.read_text().splitlines() if line.startswith("# "))
    config = parse_arguments(shlex.split(head["arguments"])).config
    resolvers = tuple(head.get("resolvers", "").split())
    family = Family(head["family"])
    return msgspec.structs.replace(config, dns_servers=resolvers, ipv6=family is Family.V6), family


@pytest.mark.parametrize("variant", ["nft", "legacy"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_kernel_shows_exactly_the_rules_that_were_loaded(pod: Namespace, path: Path, variant: str) -> None:
    config, family = _case(path)
    outcome = apply.apply(config, namespace=pod.name, variant=variant)
    assert outcome.changed
    saved = parse_save(pod.run(*apply.Backend(variant).command(family, "save")).stdout)
    wanted = expected(build_rules(config, family))
    loaded = {
        table: {chain: rules for chain, rules in chains.items() if rules or chain.startswith("ISTIO_")}
        for table, chains in saved.tables.items()
    }
    assert {table: chains for table, chains in loaded.items() if chains} == wanted.tables
    assert not apply.apply(config, namespace=pod.name, variant=variant).changed


def test_outbound_connections_of_the_application_arrive_at_15001(pod: Namespace, peer: Namespace, load: Loader) -> None:
    load(CaptureConfig())
    with pod.listening("15001") as arrived:
        assert pod.call(SERVICE, 80, f"--uid={APP}") == {"answer": "15001"}
        assert arrived()["destination"] == [SERVICE, 80]


def test_the_proxys_own_connections_are_not_redirected(pod: Namespace, peer: Namespace, load: Loader) -> None:
    load(CaptureConfig())
    with pod.listening("15001"), peer.listening("80") as arrived:
        assert pod.call(SERVICE, 80, f"--uid={PROXY}") == {"answer": "80"}
        assert arrived()["peer"] == POD


def test_inbound_connections_arrive_at_15006_except_for_excluded_ports(
    pod: Namespace, peer: Namespace, load: Loader
) -> None:
    load(CaptureConfig(exclude_inbound_ports=(15020,)))
    with pod.listening("15006", "8080", "15020", "15008") as arrived:
        assert peer.call(POD, 8080) == {"answer": "15006"}
        assert arrived() == {"port": 15006, "kind": "tcp", "peer": PEER, "destination": [POD, 8080]}
        assert peer.call(POD, 15020) == {"answer": "15020"}
        assert peer.call(POD, 15008) == {"answer": "15008"}


def test_only_listed_inbound_ports_are_captured(pod: Namespace, peer: Namespace, load: Loader) -> None:
    load(CaptureConfig(include_inbound_ports=(8080,)))
    with pod.listening("15006", "8080", "9090"):
        assert peer.call(POD, 8080) == {"answer": "15006"}
        assert peer.call(POD, 9090) == {"answer": "9090"}


def test_a_call_to_oneself_passes_the_proxy_and_then_reaches_the_application(
    pod: Namespace, peer: Namespace, load: Loader
) -> None:
    load(CaptureConfig())
    with pod.listening("15001", "15006", "8080"):
        assert pod.call(POD, 8080, f"--uid={APP}") == {"answer": "8080"}
        assert pod.call("127.0.0.1", 8080, f"--uid={APP}") == {"answer": "8080"}
        assert pod.call(POD, 8080, f"--uid={PROXY}") == {"answer": "15006"}
        assert pod.call(POD, 8080, f"--uid={PROXY}", "--source=127.0.0.6") == {"answer": "8080"}


def test_outbound_ranges_and_ports_decide_what_is_captured(pod: Namespace, peer: Namespace, load: Loader) -> None:
    config = CaptureConfig(
        include_outbound_ranges=("10.96.0.0/16",), exclude_outbound_ports=(81,), include_outbound_ports=(82,)
    )
    load(config)
    with pod.listening("15001"), peer.listening("80", "81", "82"):
        assert pod.call(SERVICE, 80) == {"answer": "15001"}
        assert pod.call(SERVICE, 81) == {"answer": "81"}
        assert pod.call(PEER, 80) == {"answer": "80"}
        assert pod.call(PEER, 82) == {"answer": "15001"}


def test_a_socket_mark_tells_the_proxys_traffic_where_only_one_user_exists(
    pod: Namespace, peer: Namespace, load: Loader
) -> None:
    load(CaptureConfig(proxy_socket_mark=1337))
    with pod.listening("15001", "15006", "8080"), peer.listening("80"):
        assert pod.call(SERVICE, 80) == {"answer": "15001"}
        assert pod.call(SERVICE, 80, "--mark=1337") == {"answer": "80"}
        assert pod.call(POD, 8080, "--mark=1337") == {"answer": "15006"}


def test_dns_of_the_application_is_answered_at_15053_and_that_of_the_proxy_is_not(
    pod: Namespace, peer: Namespace, load: Loader
) -> None:
    config = CaptureConfig(redirect_dns=True, dns_servers=(SERVICE,))
    load(config)
    proxy = ("15053", "--udp", "15053", f"--uid={PROXY}", "--bind=127.0.0.1")
    with pod.listening(*proxy) as arrived, peer.listening("53", "--udp", "53", f"--bind={SERVICE}") as escaped:
        assert pod.call(SERVICE, 53, "--udp", f"--uid={APP}") == {"answer": "hello"}
        assert arrived() == {"port": 15053, "kind": "udp", "peer": POD}
        assert pod.call(SERVICE, 53, f"--uid={APP}") == {"answer": "15053"}
        assert pod.call(SERVICE, 53, "--udp", f"--uid={PROXY}") == {"answer": "hello"}
        assert escaped() == {"port": 53, "kind": "udp", "peer": POD}
        assert pod.call(SERVICE, 53, f"--uid={PROXY}") == {"answer": "53"}


def test_ipv6_is_captured_like_ipv4(pod: Namespace, peer: Namespace, load: Loader) -> None:
    load(CaptureConfig(ipv6=True))
    with pod.listening("15001", "15006", "8080", "--v6") as arrived:
        assert pod.call(PEER6, 80, f"--uid={APP}") == {"answer": "15001"}
        assert arrived()["destination"] == [PEER6, 80]
        assert peer.call(POD6, 8080) == {"answer": "15006"}
        assert arrived()["destination"] == [POD6, 8080]


def test_transparent_capture_keeps_the_callers_address_and_the_destination(
    pod: Namespace, peer: Namespace, load: Loader
) -> None:
    load(CaptureConfig(mode=Mode.TPROXY, exclude_inbound_ports=(15020,)))
    with pod.listening("15006", "15020", "--transparent") as arrived:
        assert peer.call(POD, 8080) == {"answer": "15006"}
        assert arrived() == {"port": 15006, "kind": "tcp", "peer": PEER, "destination": [POD, 8080]}
        assert peer.call(POD, 15020) == {"answer": "15020"}
    assert "fwmark 0x539 lookup 133" in pod.run("ip", "rule").stdout
    apply.clean(CaptureConfig(mode=Mode.TPROXY), namespace=pod.name)
    assert "fwmark" not in pod.run("ip", "rule").stdout


def test_another_config_replaces_the_rules_and_foreign_ones_stay(pod: Namespace) -> None:
    foreign = "-A OUTPUT -d 198.51.100.1/32 -j ACCEPT"
    pod.run("iptables", "-t", "nat", *foreign.split())
    apply.apply(CaptureConfig(redirect_dns=True, capture_all_dns=True), namespace=pod.name)
    config = CaptureConfig(include_outbound_ranges=("10.0.0.0/8",))
    assert apply.verify(config, namespace=pod.name)
    assert apply.apply(config, namespace=pod.name).changed
    assert apply.verify(config, namespace=pod.name) == ()
    saved = pod.run("iptables-save").stdout
    assert foreign in saved
    assert "ISTIO_OUTPUT_DNS" not in saved


def test_rules_changed_by_hand_are_found_and_mended(pod: Namespace) -> None:
    apply.apply(CaptureConfig(), namespace=pod.name)
    pod.run("iptables", "-t", "nat", "-F", "ISTIO_REDIRECT")
    (difference,) = apply.verify(CaptureConfig(), namespace=pod.name)
    assert (difference.chain, difference.missing) == ("ISTIO_REDIRECT", ("-p tcp -j REDIRECT --to-ports 15001",))
    apply.apply(CaptureConfig(), namespace=pod.name)
    assert apply.verify(CaptureConfig(), namespace=pod.name) == ()


def test_cleaning_up_leaves_nothing(pod: Namespace) -> None:
    config = CaptureConfig(ipv6=True, exclude_interfaces=("eth9",))
    apply.apply(config, namespace=pod.name)
    assert apply.clean(config, namespace=pod.name).changed
    for command in ("iptables-save", "ip6tables-save"):
        assert not [line for line in pod.run(command).stdout.splitlines() if line.startswith("-A") or "ISTIO" in line]
    assert not apply.clean(config, namespace=pod.name).changed


def test_a_namespace_that_is_not_there_is_named() -> None:
    with pytest.raises(CaptureError, match=r"no such network namespace.*mzt-nowhere"):
        apply.apply(CaptureConfig(), namespace="mzt-nowhere")


def _mizzen(pod: Namespace, *arguments: str) -> subprocess.CompletedProcess[str]:
    return pod.run(sys.executable, "-m", "mizzen", "iptables", *arguments, check=False)


def test_the_command_prints_what_it_would_load(pod: Namespace) -> None:
    printed = _mizzen(pod, "--dry-run", "-d", "15090")
    assert printed.returncode == 0
    assert "ISTIO" not in pod.run("iptables-save").stdout
    loaded = run("ip", "netns", "exec", pod.name, "iptables-restore", "--noflush", input=printed.stdout)
    assert loaded.returncode == 0
    assert apply.verify(CaptureConfig(exclude_inbound_ports=(15090,)), namespace=pod.name) == ()


def test_the_command_loads_validates_and_removes(pod: Namespace, peer: Namespace) -> None:
    done = _mizzen(pod, "--run-validation")
    assert (done.returncode, done.stderr) == (0, "capture rules loaded\ncapture is in force\n")
    assert _mizzen(pod).stderr == "capture rules were loaded already\n"
    assert _mizzen(pod, "--cleanup-only").stderr == "capture rules removed\n"
    failed = _mizzen(pod, "--run-validation", "--skip-rule-apply", "--probe-timeout=500ms")
    assert failed.returncode == 126
    assert "Error: capture is not in force: 127.0.0.6:15002" in failed.stderr


def test_the_command_does_the_same_with_nftables_alone(pod: Namespace, peer: Namespace) -> None:
    done = _mizzen(pod, "--native-nftables", "--run-validation")
    assert (done.returncode, done.stderr) == (0, "capture rules loaded\ncapture is in force\n")
    assert _mizzen(pod, "--native-nftables", "-m", "TPROXY", "-b", "80").returncode == 0
    printed = _mizzen(pod, "--native-nftables", "--dry-run").stdout
    assert run("ip", "netns", "exec", pod.name, "nft", "-f", "-", input=printed).returncode == 0
    assert _mizzen(pod, "--native-nftables", "--cleanup-only").returncode == 0
    assert "istio" not in pod.run("nft", "list", "ruleset").stdout


def test_loading_with_nftables_again_replaces_the_rules(pod: Namespace) -> None:
    apply.apply_native(CaptureConfig(mode=Mode.TPROXY, redirect_dns=True, capture_all_dns=True), namespace=pod.name)
    apply.apply_native(CaptureConfig(), namespace=pod.name)
    once = pod.run("nft", "list", "ruleset").stdout
    apply.apply_native(CaptureConfig(), namespace=pod.name)
    assert pod.run("nft", "list", "ruleset").stdout == once
    assert "istio-output-dns" not in once
    assert "istio-proxy-mangle" not in once


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_nftables_takes_the_rules_of_both_families(pod: Namespace, path: Path) -> None:
    config, _ = _case(path)
    apply.apply_native(msgspec.structs.replace(config, ipv6=True), namespace=pod.name)
    listed = pod.run("nft", "list", "ruleset").stdout
    rules = [build_rules(config, family) for family in Family]
    shown = sum("counter packets" in line for line in listed.splitlines())
    assert max(len(each.rules) for each in rules) <= shown <= sum(len(each.rules) for each in rules)


def test_validation_works_for_transparent_capture(pod: Namespace, peer: Namespace) -> None:
    done = _mizzen(pod, "-m", "TPROXY", "--run-validation")
    assert (done.returncode, done.stderr) == (0, "capture rules loaded\ncapture is in force\n")


def test_without_the_capability_the_command_names_the_remedy(pod: Namespace) -> None:
    command = [sys.executable, "-m", "mizzen", "iptables"]
    done = pod.run("setpriv", "--bounding-set=-net_admin", *command, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: no permission to change capture rules (needs root or CAP_NET_ADMIN)")
    assert done.stderr.count("\n") == 1
