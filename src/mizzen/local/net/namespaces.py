"""Network namespaces held by file descriptors, through the system calls that Python 3.11 does not wrap.

A namespace lives as long as a descriptor of it or a process in it does, so nothing is mounted, nothing needs a name,
and nothing is left when the mesh's process dies. The network namespace belongs to a thread: whoever enters one leaves
it again before the thread does anything else, and children started meanwhile stay inside.
"""

import contextlib
import ctypes
import os
import socket
from collections.abc import Iterator

from mizzen.errors import LocalError

_CLONE_NEWNET = 0x40000000
_HERE = "/proc/thread-self/ns/net"
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise LocalError(f"{name}: {os.strerror(code)}: network namespaces are not allowed here; try --no-capture")


def open_current() -> int:
    """A descriptor of the calling thread's network namespace."""
    return os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)


def create() -> int:
    """Makes an empty network namespace and returns its descriptor; the caller stays where it was."""
    home = open_current()
    try:
        _call("unshare", _CLONE_NEWNET)
        try:
            return open_current()
        finally:
            _call("setns", home, _CLONE_NEWNET)
    finally:
        os.close(home)


@contextlib.contextmanager
def inside(namespace: int | None) -> Iterator[None]:
    """The calling thread works in `namespace` meanwhile; None changes nothing. Never await in here."""
    if namespace is None:
        yield
        return
    home = open_current()
    try:
        _call("setns", namespace, _CLONE_NEWNET)
        try:
            yield
        finally:
            _call("setns", home, _CLONE_NEWNET)
    finally:
        os.close(home)


def open_socket(namespace: int | None, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> socket.socket:
    """A non-blocking socket that belongs to `namespace`, whoever uses it afterwards."""
    with inside(namespace):
        opened = socket.socket(family, kind)
    opened.setblocking(False)
    return opened
