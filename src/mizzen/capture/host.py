"""What this machine says about itself, as far as capture must know it: resolvers and IPv6.

Input: two small files of the system. Output: fields for a `CaptureConfig`. A pod in a named network namespace has its
own answers; its creator fills them in without this module.
"""

from ipaddress import ip_address
from pathlib import Path

import msgspec

from mizzen.capture.config import CaptureConfig

_LINK_LOCAL_SCOPES = frozenset({"10", "20"})
"""Scopes of the kernel's list: loopback and link."""


def complete(config: CaptureConfig, *, root: Path = Path("/")) -> CaptureConfig:
    """The config with this machine's resolvers, and with IPv6 if it has an address that reaches further than a link."""
    servers = parse_resolvers(_read(root / "etc/resolv.conf"))
    ipv6 = config.ipv6 or has_ipv6(_read(root / "proc/net/if_inet6"))
    return msgspec.structs.replace(config, dns_servers=config.dns_servers or servers, ipv6=ipv6)


def parse_resolvers(text: str) -> tuple[str, ...]:
    """The name servers of a resolv.conf, in order; those with a zone are left out, no rule could name them."""
    words = (line.split() for line in text.splitlines())
    named = (parts[1] for parts in words if len(parts) > 1 and parts[0] == "nameserver")
    return tuple(dict.fromkeys(name for name in named if _is_address(name)))


def has_ipv6(text: str) -> bool:
    """Whether the kernel's list of IPv6 addresses holds a routable one."""
    rows = (line.split() for line in text.splitlines())
    return any(len(row) >= 4 and row[3] not in _LINK_LOCAL_SCOPES for row in rows)


def _is_address(text: str) -> bool:
    try:
        return "%" not in text and bool(ip_address(text))
    except ValueError:
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
