"""What the programs of a local mesh listen on, as the kernel tells it.

In: the state of a local mesh. Out: by `namespace/name` of a pod, the TCP addresses on which its containers listen, the
proxy's own left out. A pod whose processes may not be looked into is left out.
"""

import contextlib
import ipaddress
import pathlib
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mizzen.local import runtime

_LISTEN = "0A"
_PROXY = "istio-proxy"


def find_all(state: "runtime.State") -> Mapping[str, tuple[str, ...]]:
    """The addresses of all pods."""
    from mizzen.local.isolation import Isolation

    if not Isolation(state.isolation).namespaces:
        return {}  # All programs listen on loopback addresses there, each pod on its own.
    found = {}
    for pod in state.pods:
        pids = [each.pid for each in pod.containers if each.pid and each.name != _PROXY]
        if addresses := sorted({address for pid in pids for address in _find(pid)}):
            found[f"{pod.namespace}/{pod.name}"] = tuple(addresses)
    return found


def _find(pid: int) -> Iterator[str]:
    """What the process itself, or its children, listen on: sockets of its network that it holds open."""
    own = {inode for member in _family(pid) for inode in _sockets(member)}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and fields[9] in own:
                    yield parse_address(fields[1])


def _family(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _sockets(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


def parse_address(text: str) -> str:
    """`HOST:PORT` of the kernel's `0100007F:1F90`; words of four bytes are in the machine's order."""
    host, _, port = text.partition(":")
    words = [int(host[start : start + 8], 16) for start in range(0, len(host), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    address = ipaddress.ip_address(packed)
    shown = f"[{address}]" if address.version == 6 else str(address)
    return f"{shown}:{int(port, 16)}"
