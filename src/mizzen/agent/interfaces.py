"""The addresses of this machine's interfaces, without a library: what `INSTANCE_IP` does not say.

A pod's variable names one address; a pod of two families has one of each.
"""

import array
import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

_SIOCGIFADDR = 0x8915
_IPV6_TABLE = Path("/proc/net/if_inet6")


def find_addresses() -> tuple[str, ...]:
    """Every address that others can reach, IPv4 first, each family in the order of the interfaces."""
    found: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = [*_ipv4_addresses(), *_ipv6_addresses()]
    return tuple(str(address) for address in found if not (address.is_loopback or address.is_link_local))


def _ipv4_addresses() -> list[ipaddress.IPv4Address]:
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = array.array("B", struct.pack("256s", name.encode()[:15]))
            try:
                fcntl.ioctl(asking.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # An interface without an IPv4 address.
            found.append(ipaddress.IPv4Address(request.tobytes()[20:24]))
    return found


def _ipv6_addresses() -> list[ipaddress.IPv6Address]:
    try:
        lines = _IPV6_TABLE.read_text().splitlines()
    except OSError:
        return []
    rows = sorted((line.split() for line in lines if line.strip()), key=lambda row: int(row[1], 16))
    return [ipaddress.IPv6Address(bytes.fromhex(row[0])) for row in rows]


def merge_addresses(given: str, found: tuple[str, ...]) -> tuple[str, ...]:
    """The given address first, then those found of a family that it is not of."""
    if not given:
        return found
    others = (address for address in found if (":" in address) != (":" in given))
    return (given, *others)
