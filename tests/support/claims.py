"""Numbers that nobody else on this machine has: ports for processes that have to be told one, networks.

A port that the kernel gives may be given again the moment it is let go: to a connection, or to whoever asks for any.
These are of a range from which it gives none. A claim is a name that the kernel gives out once; it holds until its
socket is closed or the process ends, so suites side by side do not take from each other.
"""

import itertools
import os
import socket
from collections.abc import Iterable

_PORTS = range(20_000, 30_000)
_ports: list[socket.socket] = []


def claim(kind: str, numbers: Iterable[int]) -> tuple[int, socket.socket]:
    """The first of these numbers that nobody has, and what keeps it."""
    for number in numbers:
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0mizzen-test-{kind}-{number}")
        except OSError:
            name.close()
        else:
            return number, name
    raise AssertionError(f"no {kind} is left")


def own_port() -> int:
    """A port of every address, for the life of this process."""
    start = os.getpid() % len(_PORTS)
    numbers = itertools.chain(_PORTS[start:], _PORTS[:start])
    while True:
        port, name = claim("port", numbers)
        _ports.append(name)
        if all(_is_free(kind, port) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)):
            return port


def _is_free(kind: socket.SocketKind, port: int) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
