"""Unix sockets at paths of any length; the kernel takes no more than 107 bytes."""

import os
import socket
import struct
import time
from pathlib import Path

_SHORTEST = 0.001
"""Seconds; the kernel takes 0 for no limit."""


def connect(path: str, seconds: float) -> socket.socket:
    """A connection to the listener at this path, whose operations end after that time."""
    where = Path(path)
    directory = os.open(where.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            end = time.monotonic() + seconds
            while not _is_connected(opened):
                _wait_in_line(opened, max(end - time.monotonic(), _SHORTEST))
                opened.connect(f"/proc/self/fd/{directory}/{where.name}")
            _wait_in_line(opened, 0)
            opened.settimeout(seconds)
        except BlockingIOError as busy:
            opened.close()
            raise TimeoutError(f"nobody takes the connection within {seconds:g} s") from busy
        except OSError:
            opened.close()
            raise
    finally:
        os.close(directory)
    return opened


def _is_connected(opened: socket.socket) -> bool:
    """A signal ends the wait in line, and Python then takes the connection for one that was made."""
    try:
        opened.getpeername()
    except OSError:
        return False
    return True


def _wait_in_line(opened: socket.socket, seconds: float) -> None:
    """How long the kernel waits for a listener with many callers; Python's own timeouts have it refuse them at once."""
    whole, part = divmod(seconds, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(whole), int(part * 1_000_000)))
