"""Which iptables is chosen and what its failures become, on a PATH of stand-ins."""

from pathlib import Path

import pytest

from mizzen.capture import apply
from mizzen.capture.apply import Backend, CaptureError
from mizzen.capture.config import CaptureConfig
from mizzen.errors import LocalError


class Programs:
    """A directory of shell scripts that is the whole PATH, and a log of what they were called with."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "calls"

    def add(self, name: str, script: str = "") -> None:
        path = self.root / name
        path.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\necho "{name} $*" >>"{self.log}"\n{script}\n')
        path.chmod(0o755)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    monkeypatch.setenv("PATH", str(tmp_path))
    return Programs(tmp_path)


def _iptables(programs: Programs, variant: str = "", *, save: str = "", restore: str = "cat >/dev/null") -> None:
    infix = f"-{variant}" if variant else ""
    programs.add(f"iptables{infix}-save", save)
    programs.add(f"iptables{infix}-restore", restore)


def test_no_iptables_names_the_package(programs: Programs) -> None:
    with pytest.raises(LocalError, match="no iptables found: install the package iptables"):
        apply.apply(CaptureConfig())
    assert programs.calls() == []


def test_a_named_namespace_needs_the_ip_command(programs: Programs) -> None:
    _iptables(programs)
    with pytest.raises(CaptureError, match="install the package iproute2"):
        apply.apply(CaptureConfig(), namespace="pod")


def test_no_permission_says_what_is_needed(programs: Programs) -> None:
    complaint = "iptables v1.8.9 (nf_tables): Could not fetch rule set: Permission denied (you must be root)"
    for variant in ("", "legacy"):
        _iptables(programs, variant, save=f"echo '{complaint}' >&2; exit 4")
    with pytest.raises(CaptureError, match="needs root or CAP_NET_ADMIN") as caught:
        apply.apply(CaptureConfig())
    assert "Permission denied" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_rule_that_the_kernel_refuses_is_cleaned_up_and_reported(programs: Programs) -> None:
    marker = programs.root / "half-loaded"
    save = f'[ -e "{marker}" ] && printf "*nat\\n:ISTIO_OUTPUT - [0:0]\\nCOMMIT\\n"; exit 0'
    restore = f'input=$(cat); case "$input" in *REDIRECT*) touch "{marker}"; echo "line 9 failed" >&2; exit 2;; esac'
    _iptables(programs, save=save, restore=restore)
    with pytest.raises(CaptureError, match=r"cannot be loaded: .*line 9 failed"):
        apply.apply(CaptureConfig())
    assert [call.split()[0] for call in programs.calls()] == [
        "iptables-save",
        "iptables-restore",
        "iptables-save",
        "iptables-restore",
    ]


def test_rules_that_are_right_already_are_left_alone(programs: Programs) -> None:
    plan = apply.render_plan(CaptureConfig())
    (programs.root / "state").write_text(plan.replace("COMMIT", ":OUTPUT ACCEPT [0:0]\nCOMMIT"))
    _iptables(programs, save=f'cat "{programs.root}/state"')
    assert not apply.apply(CaptureConfig()).changed
    assert programs.calls() == ["iptables-save "]
    assert apply.apply(CaptureConfig(), force=True).changed


def test_the_default_iptables_is_used_if_it_works(programs: Programs) -> None:
    for variant in ("", "nft", "legacy"):
        _iptables(programs, variant)
    assert apply.find_backend() == Backend("")


def test_an_iptables_that_the_kernel_does_not_support_is_passed_over(programs: Programs) -> None:
    _iptables(programs, save="echo 'iptables: Protocol not supported' >&2; exit 1")
    _iptables(programs, "legacy")
    assert apply.find_backend() == Backend("legacy")


def test_legacy_is_used_where_it_already_holds_tables(programs: Programs) -> None:
    for variant in ("", "legacy"):
        _iptables(programs, variant)
    programs.add("ip", 'shift 3; case "$1" in cat) echo nat;; *) exec "$@";; esac')
    assert apply.find_backend(namespace="pod") == Backend("legacy", "pod")


def test_the_variant_asked_for_is_not_second_guessed(programs: Programs) -> None:
    _iptables(programs, "legacy")
    assert apply.find_backend(variant="nft") == Backend("nft")


def test_commands_are_run_inside_the_named_namespace(programs: Programs) -> None:
    _iptables(programs)
    programs.add("ip", 'shift 3; exec "$@"')
    backend = apply.find_backend(namespace="pod")
    assert backend.command(apply.Family.V4, "restore") == ["ip", "netns", "exec", "pod", "iptables-restore"]


def test_the_plan_shows_both_families_only_if_both_are_wanted() -> None:
    assert "ip6tables" not in apply.render_plan(CaptureConfig())
    plan = apply.render_plan(CaptureConfig(ipv6=True))
    assert plan.count("*nat") == 2
    assert "# ip6tables-restore --noflush" in plan
