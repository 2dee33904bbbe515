"""What a pod's capture rules must do, as one frozen value.

Filled by `arguments` (the flags of `istio-iptables`) or by hand. Two spellings need care, as in Istio: for what is
*included*, `"*"` means everything and an empty tuple means nothing. Nothing here touches the machine: resolvers and
the presence of IPv6 are fields, found by the caller.
"""

from enum import StrEnum
from typing import Literal

import msgspec

EVERYTHING: Literal["*"] = "*"

PortSelection = Literal["*"] | tuple[int, ...]
RangeSelection = Literal["*"] | tuple[str, ...]


class Mode(StrEnum):
    """How inbound connections reach the proxy."""

    REDIRECT = "REDIRECT"
    TPROXY = "TPROXY"
    NONE = "NONE"


class CaptureConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of one pod; the defaults are those of a sidecar without annotations."""

    mode: Mode = Mode.REDIRECT
    outbound_port: int = 15001
    inbound_port: int = 15006
    tunnel_port: int = 15008
    """HBONE: never captured, the proxy listens on it itself."""
    dns_port: int = 15053

    proxy_uids: tuple[int, ...] = (1337,)
    proxy_gids: tuple[int, ...] = (1337,)
    proxy_socket_mark: int | None = None
    """Tells the proxy's own traffic by a socket mark instead of its user, where only one uid is mapped."""

    include_inbound_ports: PortSelection = EVERYTHING
    exclude_inbound_ports: tuple[int, ...] = ()
    """Only heeded when all inbound ports are included."""
    include_outbound_ranges: RangeSelection = EVERYTHING
    exclude_outbound_ranges: tuple[str, ...] = ()
    include_outbound_ports: tuple[int, ...] = ()
    """Captured whatever their destination's range."""
    exclude_outbound_ports: tuple[int, ...] = ()

    virtual_interfaces: tuple[str, ...] = ()
    """Interfaces of virtual machines in the pod; what arrives on them counts as outbound."""
    exclude_interfaces: tuple[str, ...] = ()

    include_owner_groups: tuple[int, ...] | Literal["*"] = EVERYTHING
    exclude_owner_groups: tuple[int, ...] = ()

    redirect_dns: bool = False
    capture_all_dns: bool = False
    """DNS to any address, not only to the pod's resolvers."""
    dns_servers: tuple[str, ...] = ()

    drop_invalid: bool = False
    tproxy_mark: int = 1337
    tproxy_table: int = 133
    loopback_v4: str = "127.0.0.1/32"
    ipv6: bool = False
    """Whether the pod has an IPv6 address; without one no IPv6 rule is loaded."""
