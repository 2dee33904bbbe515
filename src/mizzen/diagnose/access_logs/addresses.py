"""Hosts and ports, as they stand in access logs.

In: `ADDRESS:PORT` of a connection's end, with IPv6 in brackets, or an authority. Out: the address as pods have it, the
port, the host that was asked for.
"""


def host_of(end: str) -> str:
    """The address of one end of a connection; empty for what is no such end."""
    return end.rpartition(":")[0].strip("[]")


def port_of(end: str) -> int:
    """Its port; 0 for what is no such end."""
    port = end.rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def host_asked(authority: str) -> str:
    """The host of an authority, which may have a port."""
    host, colon, port = authority.rpartition(":")
    return (host if colon and port.isdecimal() else authority).lower()
