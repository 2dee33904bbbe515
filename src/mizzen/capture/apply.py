"""Loads, checks and removes capture rules on this machine: the door to `iptables`.

Works in the current network namespace or, with `namespace`, in a named one through `ip netns exec`. Everything blocks,
for tens of milliseconds; a caller with an event loop uses a thread. `apply` reads what is loaded first and changes
nothing if that is what is wanted, so it may run again at any time. Which iptables is used (nft or legacy) follows what
the machine has and what already holds rules. Failures are `CaptureError`s that name the remedy.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mizzen.capture import nft
from mizzen.capture.config import CaptureConfig, Mode
from mizzen.capture.render import render_restore
from mizzen.capture.rule import Family, RuleSet
from mizzen.capture.rules import build_rules
from mizzen.capture.state import Difference, Snapshot, compare, parse_save, replacement
from mizzen.errors import LocalError

_TIMEOUT_SECONDS = 30.0
_DENIED = ("permission denied", "operation not permitted", "must be root")


class CaptureError(LocalError):
    """Capture rules cannot be read or changed here; the text names the remedy."""


class CaptureDenied(CaptureError):
    """This process may not look at or change packet filter rules; another iptables may neither."""


class Backend(msgspec.Struct, frozen=True):
    """One of the machine's iptables; `variant` is nft, legacy, or empty for the machine's default."""

    variant: str = ""
    namespace: str | None = None

    def command(self, family: Family, verb: str) -> list[str]:
        """The words that run one of its programs, inside the namespace; `verb` is save or restore."""
        stem = "iptables" if family is Family.V4 else "ip6tables"
        name = "-".join(part for part in (stem, self.variant, verb) if part)
        return [*_enter(self.namespace), name]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What `apply` or `clean` did: the restore texts that were loaded; none when all was as wanted."""

    backend: Backend
    loaded: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything had to be done."""
        return bool(self.loaded)


def apply(
    config: CaptureConfig, *, namespace: str | None = None, variant: str | None = None, force: bool = False
) -> Outcome:
    """Makes the namespace's capture rules those of `config`; `force` reloads even what is already right.

    If a table cannot be loaded, all rules of ours are taken away again before the error is raised.
    """
    backend = find_backend(namespace=namespace, variant=variant)
    loaded = []
    try:
        for family in families(config):
            rules, snapshot = build_rules(config, family), read_state(backend, family)
            if force or compare(rules, snapshot):
                text = replacement(rules, snapshot)
                _restore(backend, family, text)
                loaded.append(text)
        if config.mode is Mode.TPROXY:
            _route_marked(config, namespace)
    except CaptureError:
        with contextlib.suppress(CaptureError):
            _clean(config, backend)
        raise
    return Outcome(backend=backend, loaded=tuple(loaded))


def clean(config: CaptureConfig, *, namespace: str | None = None, variant: str | None = None) -> Outcome:
    """Takes away every capture rule, of both families; `config` helps to know rules without a chain of ours."""
    return _clean(config, find_backend(namespace=namespace, variant=variant))


def verify(
    config: CaptureConfig, *, namespace: str | None = None, variant: str | None = None
) -> tuple[Difference, ...]:
    """How the loaded rules differ from those of `config`; empty when they are equal."""
    backend = find_backend(namespace=namespace, variant=variant)
    return tuple(
        difference
        for family in families(config)
        for difference in compare(build_rules(config, family), read_state(backend, family))
    )


def apply_native(config: CaptureConfig, *, namespace: str | None = None) -> None:
    """Makes the namespace's capture rules those of `config` with nftables alone, in one transaction; always loads."""
    text = nft.render_removal() + render_native_plan(config)
    _run([*_enter(namespace), "nft", "-f", "-"], stdin=text)
    if config.mode is Mode.TPROXY:
        _route_marked(config, namespace)


def clean_native(config: CaptureConfig, *, namespace: str | None = None) -> None:
    """Takes away the tables of `apply_native`."""
    _run([*_enter(namespace), "nft", "-f", "-"], stdin=nft.render_removal())
    if config.mode is Mode.TPROXY:
        _unroute_marked(config, namespace)


def render_native_plan(config: CaptureConfig) -> str:
    """What `apply_native` would load, for a person or for `nft -f`."""
    return nft.render_nft([build_rules(config, family) for family in families(config)])


def families(config: CaptureConfig) -> tuple[Family, ...]:
    """The address families that get rules."""
    return (Family.V4, Family.V6) if config.ipv6 else (Family.V4,)


def render_plan(config: CaptureConfig) -> str:
    """What `apply` would load into an empty namespace, for a person or for iptables-restore."""
    texts = []
    for family in families(config):
        command = " ".join(Backend().command(family, "restore"))
        texts.append(f"# {command} --noflush\n{render_restore(build_rules(config, family))}")
    return "".join(texts)


def find_backend(*, namespace: str | None = None, variant: str | None = None) -> Backend:
    """The iptables to use: the one asked for, else legacy where it already holds rules, else the first that works."""
    if namespace is not None and shutil.which("ip") is None:
        raise CaptureError("no `ip` command found: install the package iproute2")
    candidates = [Backend(variant, namespace)] if variant is not None else list(_candidates(namespace))
    if not candidates:
        raise CaptureError("no iptables found: install the package iptables, or run without capture")
    for backend in candidates[:-1]:
        if _works(backend):
            return backend
    return candidates[-1]


def read_state(backend: Backend, family: Family) -> Snapshot:
    """The rules of one family as they are loaded now."""
    return parse_save(_run(backend.command(family, "save")))


def _candidates(namespace: str | None) -> Iterator[Backend]:
    installed = [name for name in ("", "nft", "legacy") if shutil.which(Backend(name).command(Family.V4, "restore")[0])]
    if "legacy" in installed and _legacy_in_use(namespace):
        yield Backend("legacy", namespace)
    for name in installed:
        yield Backend(name, namespace)


def _legacy_in_use(namespace: str | None) -> bool:
    """The kernel lists the tables that legacy iptables has opened in a namespace."""
    names = "/proc/net/ip_tables_names"
    try:
        return bool((_run([*_enter(namespace), "cat", names]) if namespace else Path(names).read_text()).strip())
    except (CaptureError, OSError):
        return False


def _works(backend: Backend) -> bool:
    try:
        read_state(backend, Family.V4)
    except CaptureDenied:
        raise
    except CaptureError:
        return False
    return True


def _clean(config: CaptureConfig, backend: Backend) -> Outcome:
    loaded = []
    for family in Family:
        try:
            snapshot = read_state(backend, family)
        except CaptureError:
            if family in families(config):
                raise
            continue
        text = replacement(RuleSet(family), snapshot, remnants=build_rules(config, family))
        if text:
            _restore(backend, family, text)
            loaded.append(text)
    if config.mode is Mode.TPROXY:
        _unroute_marked(config, backend.namespace)
    return Outcome(backend=backend, loaded=tuple(loaded))


def _restore(backend: Backend, family: Family, text: str) -> None:
    _run([*backend.command(family, "restore"), "--noflush", "--wait", "5"], stdin=text)


def _route_marked(config: CaptureConfig, namespace: str | None) -> None:
    """Packets that TPROXY marked are delivered here whatever their address."""
    for flag in _ip_flags(config):
        table, mark = str(config.tproxy_table), hex(config.tproxy_mark)
        if f"fwmark {mark} lookup {table}" not in _run([*_enter(namespace), "ip", flag, "rule", "show"]):
            _run([*_enter(namespace), "ip", flag, "rule", "add", "fwmark", mark, "lookup", table])
        _run([*_enter(namespace), "ip", flag, "route", "replace", "local", "default", "dev", "lo", "table", table])


def _unroute_marked(config: CaptureConfig, namespace: str | None) -> None:
    for flag in _ip_flags(config):
        table, mark = str(config.tproxy_table), hex(config.tproxy_mark)
        if f"fwmark {mark} lookup {table}" in _run([*_enter(namespace), "ip", flag, "rule", "show"]):
            _run([*_enter(namespace), "ip", flag, "rule", "delete", "fwmark", mark, "lookup", table])
            _run([*_enter(namespace), "ip", flag, "route", "flush", "table", table])


def _ip_flags(config: CaptureConfig) -> Sequence[str]:
    return ["-4" if family is Family.V4 else "-6" for family in families(config)]


def _enter(namespace: str | None) -> list[str]:
    return ["ip", "netns", "exec", namespace] if namespace is not None else []


def _run(command: Sequence[str], *, stdin: str = "") -> str:
    """The output of a command; what it complains of becomes a `CaptureError`."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except FileNotFoundError as error:
        raise CaptureError(
            f"no `{command[0]}` command found: install the package that has it (iptables, nftables, iproute2)"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise CaptureError(f"`{' '.join(command)}` did not end within {_TIMEOUT_SECONDS:.0f} s") from error
    if done.returncode:
        raise _failure(command, done.stderr)
    return done.stdout


def _failure(command: Sequence[str], stderr: str) -> CaptureError:
    complaint = next((line.strip() for line in stderr.splitlines() if line.strip()), "no reason given")
    text = f"`{' '.join(command)}`: {complaint}"
    if any(word in stderr.lower() for word in _DENIED):
        return CaptureDenied(f"no permission to change capture rules (needs root or CAP_NET_ADMIN): {text}")
    if "open network namespace" in stderr:
        return CaptureError(f"no such network namespace: {text}")
    return CaptureError(f"capture rules cannot be loaded: {text}")
