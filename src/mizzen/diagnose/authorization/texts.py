"""Values of policies held against plain texts, addresses and ports.

A star at an end of a value stands for any characters, also none; a star alone for any text that is not empty. A star
anywhere else, and the second one of a value that begins with one, is an ordinary character.
"""

import ipaddress

_HIGHEST_PORT = 65535

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_text(value: str, text: str) -> bool:
    """Whether the text is what the value stands for."""
    if value == "*":
        return bool(text)
    if value[:1] == "*":
        return text.endswith(value[1:])
    if value[-1:] == "*":
        return text.startswith(value[:-1])
    return text == value


def read_network(value: str) -> Network | None:
    """The range that a value names, a bare address as a range of one; None for anything else."""
    address, slash, bits = value.partition("/")
    if "%" in address or (slash and not bits.isdecimal()):
        return None
    try:
        return ipaddress.ip_network(value, strict=False)
    except ValueError:
        return None


def is_address(value: str, address: str) -> bool:
    """Whether the address lies in the value's range; an address that is not known lies in none."""
    network = read_network(value)
    try:
        return network is not None and ipaddress.ip_address(address) in network
    except ValueError:
        return False


def is_port_number(value: str) -> bool:
    """Whether the value names a port at all."""
    return value.isdecimal() and int(value) <= _HIGHEST_PORT
