"""Lays the hub and the cables of pods with iproute2.

In: a plan of addresses (`Subnets`) and namespaces held by descriptors. The commands are built by pure functions and
run as batches, one process for many. A pod's address has no neighbours (/32): all traffic takes the hub, so Service
addresses can be translated there whoever asks. Service addresses that nobody serves are unreachable at once, as
otherwise each call to one would wait for a timeout.
"""

import os
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import msgspec

from mizzen.errors import LocalError
from mizzen.local.net import namespaces

BRIDGE = "mesh0"
_TIMEOUT_SECONDS = 20.0


class Subnets(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses of one mesh; every mesh may use the same, as none leaves its hub."""

    pods: IPv4Network = IPv4Network("10.44.0.0/16")
    services: IPv4Network = IPv4Network("10.96.0.0/16")

    @property
    def hub(self) -> IPv4Address:
        """The hub's address on the bridge: router, resolver and control plane."""
        return self.pods.network_address + 1

    @property
    def control_plane(self) -> IPv4Address:
        """The address of the control plane's Service."""
        return self.services.network_address + 1

    @property
    def resolver(self) -> IPv4Address:
        """The address that pods find in resolv.conf, where clusters by custom keep it."""
        return self.services.network_address + 10


def build_hub_commands(subnets: Subnets) -> tuple[str, ...]:
    """What turns an empty namespace into the hub."""
    return (
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"addr add {subnets.hub}/{subnets.pods.prefixlen} dev {BRIDGE}",
        f"addr add {subnets.resolver}/32 dev lo",
        f"link set {BRIDGE} up",
        f"route add unreachable {subnets.services}",
    )


def build_cable_commands(cable: int, namespace_path: str) -> tuple[str, ...]:
    """Run in the hub: a cable whose other end, eth0, lies in the pod's namespace."""
    return (
        f"link add pod{cable} type veth peer name eth0 netns {namespace_path}",
        f"link set pod{cable} master {BRIDGE}",
        f"link set pod{cable} up",
    )


def build_pod_commands(subnets: Subnets, address: IPv4Address) -> tuple[str, ...]:
    """Run in the pod: its address and the one way out."""
    return (
        "link set lo up",
        f"addr add {address}/32 dev eth0",
        "link set eth0 up",
        f"route add {subnets.hub} dev eth0 scope link",
        f"route add default via {subnets.hub}",
    )


def lay_hub(subnets: Subnets) -> None:
    """Makes the calling thread's namespace the hub."""
    run_ip(build_hub_commands(subnets))
    write_sysctl("net/ipv4/ip_forward", "1")
    for interface in ("all", BRIDGE):
        write_sysctl(f"net/ipv4/conf/{interface}/send_redirects", "0")


def lay_pod(subnets: Subnets, address: IPv4Address, cable: int) -> int:
    """A new pod's namespace, wired to the hub in which the caller runs; returns its descriptor."""
    namespace = namespaces.create()
    try:
        run_ip(build_cable_commands(cable, f"/proc/self/fd/{namespace}"), keep=(namespace,))
        with namespaces.inside(namespace):
            run_ip(build_pod_commands(subnets, address))
            # As container runtimes do, so that an unprivileged program may serve port 80.
            write_sysctl("net/ipv4/ip_unprivileged_port_start", "0")
    except BaseException:
        os.close(namespace)
        raise
    return namespace


def run_ip(commands: Sequence[str], keep: Sequence[int] = ()) -> None:
    """Runs a batch of `ip` commands in the calling thread's namespace; the first failure ends it."""
    text = "\n".join(commands) + "\n"
    run_tool(("ip", "-batch", "-"), text, keep)


def run_tool(argv: Sequence[str], text: str = "", keep: Sequence[int] = ()) -> str:
    """Runs one of the machine's network tools and returns what it printed; a failure names tool and reason."""
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, pass_fds=keep, check=False
        )
    except FileNotFoundError as error:
        raise LocalError(f"{argv[0]} is not installed: {remedy(argv[0])}") from error
    except subprocess.TimeoutExpired as error:
        raise LocalError(f"{argv[0]} did not end within {_TIMEOUT_SECONDS:g} s") from error
    if done.returncode != 0:
        reason = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise LocalError(f"{' '.join(argv)}: {reason}")
    return done.stdout


_PACKAGES = {
    "ip": "iproute2",
    "iptables-restore": "iptables",
    "iptables": "iptables",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
    "newuidmap": "uidmap",
}


def remedy(tool: str) -> str:
    """How to get a missing tool, in words for the user."""
    return f"install the package {_PACKAGES.get(tool, tool)} (Debian, Ubuntu: apt-get install), or use --no-capture"


def write_sysctl(name: str, value: str) -> None:
    """Sets a kernel parameter of the calling thread's namespace."""
    try:
        Path("/proc/sys", name).write_text(value)
    except OSError as error:
        raise LocalError(f"cannot set {name.replace('/', '.')}={value}: {error.strerror}") from error
