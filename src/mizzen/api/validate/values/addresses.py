"""Addresses: IP addresses and ranges, Unix sockets, port numbers."""

import ipaddress
import re
from functools import lru_cache

from mizzen.api.validate.faults import Faults, error

UNIX = "unix://"

_PREFIX_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")


@lru_cache(8192)
def is_ip(text: str) -> bool:
    """Whether the text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@lru_cache(8192)
def is_cidr(text: str) -> bool:
    """Whether the text is an address and the length of its prefix."""
    address, _, length = text.partition("/")
    if not is_ip(address) or "%" in address or not _PREFIX_LENGTH.fullmatch(length):
        return False
    return int(length) <= ipaddress.ip_address(address).max_prefixlen


def ip_fault(text: str) -> str | None:
    """What keeps a text from being an IP address."""
    return None if is_ip(text) else f"{text} is not a valid IP"


def subnet_fault(text: str) -> str | None:
    """What keeps a text from being an IP address or a range of them."""
    if "/" not in text:
        return ip_fault(text)
    return None if is_cidr(text) else f"{text} is not a valid CIDR block"


def port_fault(number: int) -> str | None:
    """What keeps a number from being a port."""
    return None if 1 <= number <= 65535 else f"port number {number} must be in the range 1..65535"


def unix_fault(path: str) -> str | None:
    """What is wrong with the path of a socket, without its `unix://`."""
    if not path:
        return "unix address must not be empty"
    if path.startswith("@") or (path.startswith("/") and not path.endswith("/")):
        return None
    return f"{path} is not an absolute path to a file"


def check_bind(bind: str, path: str) -> Faults:
    """An address to listen on: an IP address or a Unix socket; empty is left to the control plane."""
    fault = unix_fault(bind.removeprefix(UNIX)) if bind.startswith(UNIX) else ip_fault(bind) if bind else None
    if fault is not None:
        yield error(path, fault)
