"""Service addresses for those who have no sidecar: the part that kube-proxy plays in a cluster.

In: the published ports of Services with the addresses of their ready endpoints. Out: one complete `nat` table for the
hub, loaded at once by `iptables-restore`; established connections keep the endpoint that they have. A caller that
reaches itself by its Service's address is masqueraded, or it would answer itself directly.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address

import msgspec

from mizzen.local.net import network

_CHAIN = "MESH-SERVICES"


class Target(msgspec.Struct, frozen=True, order=True):
    """One ready endpoint of a port."""

    address: IPv4Address
    port: int


class VirtualPort(msgspec.Struct, frozen=True, order=True):
    """One port of a Service address and where it leads."""

    address: IPv4Address
    protocol: str
    port: int
    targets: tuple[Target, ...]


def build_rules(ports: Iterable[VirtualPort]) -> str:
    """The hub's `nat` table as input for iptables-restore."""
    ordered = sorted(ports)
    lines = ["*nat", f":{_CHAIN} - [0:0]", f"-A PREROUTING -j {_CHAIN}", f"-A OUTPUT -j {_CHAIN}"]
    for port in ordered:
        lines += _port_rules(port)
    targets = {target.address for port in ordered for target in port.targets}
    lines += [f"-A POSTROUTING -s {address}/32 -d {address}/32 -j MASQUERADE" for address in sorted(targets)]
    return "\n".join([*lines, "COMMIT", ""])


def _port_rules(port: VirtualPort) -> list[str]:
    """The n-th of k targets takes one in (k - n) of what the earlier ones left over: equal shares."""
    match = f"-A {_CHAIN} -d {port.address}/32 -p {port.protocol} --dport {port.port}"
    rules = []
    for left in range(len(port.targets), 0, -1):
        target = port.targets[-left]
        share = f" -m statistic --mode random --probability {1 / left:.8f}" if left > 1 else ""
        rules.append(f"{match}{share} -j DNAT --to-destination {target.address}:{target.port}")
    return rules


def apply(ports: Iterable[VirtualPort]) -> None:
    """Replaces the rules of the hub, which must be the calling thread's namespace."""
    network.run_tool(("iptables-restore", "--wait", "5"), build_rules(ports))
