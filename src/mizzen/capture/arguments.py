"""The command line of istio-iptables, as a table: flags and variables in, an `Invocation` out.

The same table serves the `iptables` command and whoever starts an injected pod without Kubernetes: the arguments of its
`istio-init` container give the pod's `CaptureConfig` (`parse_arguments`). Flags that only concern logging are accepted
and have no effect here. What the machine must say (resolvers, IPv6) is left for the caller to fill in.
"""

import grp
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_network
from typing import Any

import msgspec

from mizzen.capture.config import EVERYTHING, CaptureConfig, Mode
from mizzen.errors import UsageError
from mizzen.words import parse_bool, parse_duration

PROGRAM = "istio-iptables"


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """What to load, and what to do with it."""

    config: CaptureConfig = CaptureConfig()
    dry_run: bool = False
    skip_rule_apply: bool = False
    cleanup_only: bool = False
    force_apply: bool = False
    run_validation: bool = False
    probe_port: int = 15002
    probe_timeout: float = 5.0
    """Seconds that validation waits for its own connection."""
    native_nftables: bool = False
    variant: str | None = None
    """`nft` or `legacy`; None chooses."""
    namespace: str | None = None


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One flag: its names, how its text reads, and the field it sets (in the config, unless it is `action`)."""

    flags: tuple[str, ...]
    field: str
    parse: Callable[[str], Any]
    help: str
    variable: str = ""
    """Environment variable that stands in for an absent flag."""
    action: bool = False

    @property
    def switch(self) -> bool:
        """Whether the flag may stand without a value."""
        return self.parse is parse_bool

    @property
    def name(self) -> str:
        """The long flag."""
        return self.flags[-1]


def parse_arguments(arguments: Iterable[str], environment: Mapping[str, str] | None = None) -> Invocation:
    """Reads a command line, with or without the program's name in front; raises UsageError."""
    words = list(arguments)
    words = words[1:] if words[:1] == [PROGRAM] else words
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        flag, has_value, text = word.partition("=")
        option = _BY_FLAG.get(flag)
        if option is None:
            raise UsageError(f"{PROGRAM}: unknown argument {word!r}")
        if not has_value:
            text = "true" if option.switch else _value(option, rest)
        given[option.name] = text
    return read_options(given, environment or {})


def read_options(given: Mapping[str, str], environment: Mapping[str, str]) -> Invocation:
    """An Invocation from texts by the options' long flags; what is absent comes from the environment."""
    config: dict[str, Any] = {}
    actions: dict[str, Any] = {}
    for option in OPTIONS:
        text = given.get(option.name, environment.get(option.variable) if option.variable else None)
        if text is None or not option.field:
            continue
        try:
            value = option.parse(text)
        except ValueError as bad:
            raise UsageError(f"{PROGRAM}: {option.name}: {bad}") from bad
        (actions if option.action else config)[option.field] = value
    return Invocation(config=CaptureConfig(**config), **actions)


def _value(option: Option, rest: Iterator[str]) -> str:
    """The next word; an empty one is a value, a missing one is not."""
    for text in rest:
        return text
    raise UsageError(f"{PROGRAM}: {option.name} needs a value")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ValueError(f"{text!r} is no port")
    return int(text)


def _ports(text: str) -> tuple[int, ...]:
    return tuple(_port(word) for word in _words(text))


def _port_selection(text: str) -> Any:
    return EVERYTHING if text.strip() == EVERYTHING else _ports(text)


def _ranges(text: str) -> tuple[str, ...]:
    return tuple(str(ip_network(word, strict=False)) for word in _words(text))


def _range_selection(text: str) -> Any:
    return EVERYTHING if EVERYTHING in _words(text) else _ranges(text)


def _range(text: str) -> str:
    return str(ip_network(text, strict=False))


def _number(text: str) -> int:
    return int(text, 0)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_number(word) for word in _words(text))


def _group(text: str) -> int:
    """A group by number or by the name that this machine knows."""
    if text.isdecimal():
        return int(text)
    try:
        return grp.getgrnam(text).gr_gid
    except KeyError:
        raise ValueError(f"no group {text!r} on this machine") from None


def _groups(text: str) -> tuple[int, ...]:
    return tuple(_group(word) for word in _words(text))


def _group_selection(text: str) -> Any:
    return EVERYTHING if text.strip() in ("", EVERYTHING) else _groups(text)


def _interfaces(text: str) -> tuple[str, ...]:
    return tuple(_words(text))


def _mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of {', '.join(Mode)}") from None


def _variant(text: str) -> str | None:
    names = {
        "": None,
        "nft": "nft",
        "legacy": "legacy",
        "iptables": "",
        "iptables-nft": "nft",
        "iptables-legacy": "legacy",
    }
    if text not in names:
        raise ValueError(f"{text!r} is neither nft nor legacy")
    return names[text]


def _option(flags: str, field: str, parse: Callable[[str], Any], help: str, **more: Any) -> Option:
    return Option(flags=tuple(flags.split()), field=field, parse=parse, help=help, **more)


def _ignored(flags: str, parse: Callable[[str], Any], help: str) -> Option:
    return _option(flags, "", parse, help)


OPTIONS: tuple[Option, ...] = (
    _option("-p --envoy-port", "outbound_port", _port, "Port of the proxy for outbound connections."),
    _option("-z --inbound-capture-port", "inbound_port", _port, "Port of the proxy for inbound connections."),
    _option("-e --inbound-tunnel-port", "tunnel_port", _port, "HBONE port, never captured."),
    _option("-u --proxy-uid", "proxy_uids", _numbers, "Users whose traffic is the proxy's own."),
    _option("-g --proxy-gid", "proxy_gids", _numbers, "Groups whose traffic is the proxy's own."),
    _option(
        "--proxy-socket-mark", "proxy_socket_mark", _number, "Socket mark of the proxy's own traffic, instead of users."
    ),
    _option("-m --istio-inbound-interception-mode", "mode", _mode, "REDIRECT, TPROXY or NONE."),
    _option("-b --istio-inbound-ports", "include_inbound_ports", _port_selection, "Inbound ports to capture, or *."),
    _option("-d --istio-local-exclude-ports", "exclude_inbound_ports", _ports, "Inbound ports to leave alone."),
    _option("-i --istio-service-cidr", "include_outbound_ranges", _range_selection, "Destinations to capture, or *."),
    _option("-x --istio-service-exclude-cidr", "exclude_outbound_ranges", _ranges, "Destinations to leave alone."),
    _option("-q --istio-outbound-ports", "include_outbound_ports", _ports, "Outbound ports to capture anyhow."),
    _option(
        "-o --istio-local-outbound-ports-exclude", "exclude_outbound_ports", _ports, "Outbound ports to leave alone."
    ),
    _option("-k --kube-virt-interfaces", "virtual_interfaces", _interfaces, "Interfaces of virtual machines."),
    _option("-c --istio-exclude-interfaces", "exclude_interfaces", _interfaces, "Interfaces to leave alone."),
    _option("-t --istio-inbound-tproxy-mark", "tproxy_mark", _number, "Mark of transparently captured packets."),
    _option("-r --istio-inbound-tproxy-route-table", "tproxy_table", _number, "Routing table for that mark."),
    _option(
        "--redirect-dns", "redirect_dns", parse_bool, "Capture DNS to the resolvers.", variable="ISTIO_META_DNS_CAPTURE"
    ),
    _option("--capture-all-dns", "capture_all_dns", parse_bool, "Capture DNS to any address."),
    _option(
        "--drop-invalid", "drop_invalid", parse_bool, "Drop packets of no valid connection.", variable="INVALID_DROP"
    ),
    _option("--dual-stack", "ipv6", parse_bool, "Load IPv6 rules as well.", variable="ISTIO_DUAL_STACK"),
    _option(
        "--outbound-owner-groups",
        "include_owner_groups",
        _group_selection,
        "Groups whose outbound traffic is captured, or *.",
        variable="ISTIO_OUTBOUND_OWNER_GROUPS",
    ),
    _option(
        "--outbound-owner-groups-exclude",
        "exclude_owner_groups",
        _groups,
        "Groups whose outbound traffic is left alone.",
        variable="ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE",
    ),
    _option(
        "--host-ipv4-loopback-cidr",
        "loopback_v4",
        _range,
        "What counts as IPv4 loopback.",
        variable="ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR",
    ),
    _option("-n --dry-run", "dry_run", parse_bool, "Print the rules, change nothing.", action=True),
    _option("--skip-rule-apply", "skip_rule_apply", parse_bool, "Do not load rules.", action=True),
    _option("--cleanup-only", "cleanup_only", parse_bool, "Remove all capture rules.", action=True),
    _option("--force-apply", "force_apply", parse_bool, "Load rules even if they are right already.", action=True),
    _option("--run-validation", "run_validation", parse_bool, "Try capture with connections of its own.", action=True),
    _option("--iptables-probe-port", "probe_port", _port, "Port that validation calls.", action=True),
    _option("--probe-timeout", "probe_timeout", parse_duration, "How long validation waits.", action=True),
    _option("--native-nftables", "native_nftables", parse_bool, "Use nft instead of iptables.", action=True),
    _option("--force-iptables-binary", "variant", _variant, "nft or legacy.", action=True),
    _option("--network-namespace", "namespace", str, "Named network namespace to work in.", action=True),
    _ignored("--reconcile", parse_bool, "Replace rules that differ (always done)."),
    _ignored("--cni-mode", parse_bool, "Called by a CNI plug-in."),
    _ignored("--log_output_level", str, "Level of log messages."),
    _ignored("--log_as_json", parse_bool, "Log messages as JSON."),
)

_BY_FLAG: Mapping[str, Option] = {flag: option for option in OPTIONS for flag in option.flags}
