"""The last step before Envoy, in the child process: give up root, die with the agent, become Envoy.

Run as a script, not imported, by `supervisor`: `launch.py PARENT UID GID COMMAND…`, with `-` for a UID or GID that
stays. It needs nothing but the standard library and takes about 20 ms. Telling the kernel to end the process with its
parent has to happen in the child, after the user has changed.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def launch(parent: int, uid: int | None, gid: int | None, command: list[str]) -> None:
    """Replace this process by `command`."""
    if gid is not None:
        os.setgroups([])
        os.setgid(gid)
    if uid is not None:
        os.setuid(uid)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("the agent has ended")
    os.execv(command[0], command)


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


if __name__ == "__main__":
    launch(int(sys.argv[1]), _number(sys.argv[2]), _number(sys.argv[3]), sys.argv[4:])
