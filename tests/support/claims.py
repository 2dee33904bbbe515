"""Numbers that nobody else on this machine has: ports for processes that have to be told one, addresses, networks.

A port that the kernel gives may be given again the moment it is let go: to a connection, or to whoever asks for any.
These are of a range from which it gives none. A claim is a name that the kernel gives out once; it holds until its
socket is closed or the process ends, so suites side by side do not take from each other.
"""

import itertools
import os
import socket
from collections.abc import Sequence

_PORTS = range(20_000, 30_000)
_claims: list[socket.socket] = []


def claim(kind: str, numbers: Sequence[int]) -> tuple[int, socket.socket]:
    """One of these numbers that nobody has, and what keeps it; processes begin at different ones."""
    start = os.getpid() % len(numbers)
    for number in itertools.chain(numbers[start:], numbers[:start]):
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0mizzen-test-{kind}-{number}")
        except OSError:
            name.close()
        else:
            return number, name
    raise AssertionError(f"no {kind} is left")


def own_number(kind: str, numbers: Sequence[int]) -> int:
    """One of them, for the life of this process."""
    number, name = claim(kind, numbers)
    _claims.append(name)
    return number


def own_port() -> int:
    """A port of every address, for the life of this process."""
    while True:
        port = own_number("port", _PORTS)
        if all(_is_free(kind, port) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)):
            return port


def _is_free(kind: socket.SocketKind, port: int) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
