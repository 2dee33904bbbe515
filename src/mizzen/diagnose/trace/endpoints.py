"""Which hosts of a cluster may be chosen: health, priorities, panic, and drops.

In: a load assignment and its cluster. Out: `Choice`: the hosts that the balancer chooses among, or why there are none.
Envoy spreads over priorities by their health: a priority keeps all traffic while 1.4 times its healthy share covers it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import matchers
from mizzen.model.names import is_ip

_HEALTHY = ("", "UNKNOWN", "HEALTHY")
_DEFAULT_PANIC = 50.0
_OVERPROVISIONED = 140


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint."""

    address: str
    """Empty for a pipe or an internal listener."""
    port: int = 0
    name: str = ""
    """A DNS name to resolve."""
    health: str = ""
    weight: int = 1
    priority: int = 0
    locality: str = ""
    metadata: Any = None
    """The endpoint's metadata as JSON."""

    @property
    def is_healthy(self) -> bool:
        """Whether a balancer takes it as healthy."""
        return self.health in _HEALTHY

    def __str__(self) -> str:
        return f"{self.address or self.name}:{self.port}"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that the balancer chooses among."""

    hosts: tuple[Host, ...] = ()
    all: tuple[Host, ...] = ()
    in_panic: bool = False
    dropped: float = 0.0
    """The share that the assignment tells Envoy to drop."""


def socket_labels(metadata: Any) -> str:
    """The labels by which a cluster chooses its transport socket for a host."""
    found = dump.message(metadata or {}, "filter_metadata", "envoy.transport_socket_match")
    return ",".join(f"{name}={value}" for name, value in sorted(found.items()))


def choose(cluster: Json, assignment: Json) -> Choice:
    """The choice of a cluster."""
    everything = tuple(_hosts(assignment))
    dropped = sum(
        matchers.share(dump.message(d, "drop_percentage")) for d in dump.items(assignment, "policy", "drop_overloads")
    )
    dropped = min(dropped, 1.0)
    if not everything:
        return Choice(dropped=dropped)
    levels = sorted({host.priority for host in everything})
    health = {level: _health(everything, level) for level in levels}
    loads, total = _loads(health), sum(health.values())
    panic = _panic_threshold(cluster)
    healthy = [h for h in everything if h.is_healthy]
    if not healthy:
        hosts = everything if panic > 0 else ()
        return Choice(hosts=hosts, all=everything, in_panic=panic > 0, dropped=dropped)
    chosen: list[Host] = []
    for level in levels:
        own = [h for h in everything if h.priority == level]
        if loads.get(level, 0) <= 0:
            continue
        share = 100 * sum(h.is_healthy for h in own) / len(own)
        chosen += own if total < 100 and share < panic else [h for h in own if h.is_healthy]
    in_panic = any(not h.is_healthy for h in chosen)
    return Choice(hosts=tuple(chosen), all=everything, in_panic=in_panic, dropped=dropped)


def _health(everything: tuple[Host, ...], level: int) -> int:
    """How much of a hundred a priority can take."""
    own = [h for h in everything if h.priority == level]
    return min(100, 100 * sum(h.is_healthy for h in own) // len(own) * _OVERPROVISIONED // 100)


def _loads(health: Mapping[int, int]) -> dict[int, int]:
    """How much of a hundred goes to each priority, by what each can take."""
    total = min(100, sum(health.values()))
    if total == 0:
        return {min(health): 100}
    loads: dict[int, int] = {}
    left = 100
    for level, own in health.items():
        loads[level] = min(left, own * 100 // total)
        left -= loads[level]
    if left > 0:
        first = next(level for level, own in health.items() if own > 0)
        loads[first] += left
    return loads


def _panic_threshold(cluster: Json) -> float:
    stated = dump.field(cluster, "common_lb_config", "healthy_panic_threshold")
    if stated is None:
        return _DEFAULT_PANIC
    value = stated.get("value", 0.0) if isinstance(stated, dict) else 0.0
    return float(value)


def _hosts(assignment: Json) -> list[Host]:
    found = []
    for group in dump.items(assignment, "endpoints"):
        locality = dump.message(group, "locality")
        place = "/".join(
            part for part in (dump.text(locality, name) for name in ("region", "zone", "sub_zone")) if part
        )
        for entry in dump.items(group, "lb_endpoints"):
            socket = dump.message(entry, "endpoint", "address", "socket_address")
            address = dump.text(socket, "address")
            is_name = bool(address) and not is_ip(address)
            found.append(
                Host(
                    address="" if is_name else address,
                    name=address if is_name else "",
                    port=dump.number(socket, "port_value"),
                    health=dump.text(entry, "health_status"),
                    weight=dump.number(entry, "load_balancing_weight") or 1,
                    priority=dump.number(group, "priority"),
                    locality=place,
                    metadata=dump.message(entry, "metadata"),
                )
            )
    return found
