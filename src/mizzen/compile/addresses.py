"""Addresses: what a proxy binds to, and under which address a service is reached through it.

In: the proxy's address families and its cluster; a service. Out: addresses as text, the first of them the one that
names a listener. Golden cases: networking/ip-families, networking/service-types, networking/se-static-and-none.
"""

from typing import NamedTuple

import msgspec

from mizzen.compile.context import Families, families
from mizzen.model.proxy import Proxy
from mizzen.model.services import UNSPECIFIED, Service

UNIX = "unix://"
_WILDCARDS: dict[Families, tuple[str, ...]] = {"IPv4": ("0.0.0.0",), "IPv6": ("::",), "dual": ("0.0.0.0", "::")}
_LOCALHOSTS: dict[Families, tuple[str, ...]] = {"IPv4": ("127.0.0.1",), "IPv6": ("::1",), "dual": ("127.0.0.1", "::1")}


class Bind(NamedTuple):
    """Where a listener listens: the address that names it, and further ones."""

    address: str
    extra: tuple[str, ...] = ()

    @property
    def is_unix(self) -> bool:
        """Whether it is a Unix socket."""
        return self.address.startswith(UNIX)


class Network(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What a proxy's own addresses decide about its listeners."""

    families: Families = "IPv4"
    dual_stack: bool = False
    """Whether the mesh serves both families."""
    use_allocated: bool = False
    """Whether addresses allocated for ServiceEntries reach the proxy: its DNS resolves them."""

    @property
    def wildcard(self) -> Bind:
        """Every address of the proxy."""
        first, *extra = _WILDCARDS[self.families]
        return Bind(first, tuple(extra))

    @property
    def localhost(self) -> Bind:
        """The loopback addresses."""
        first, *extra = _LOCALHOSTS[self.families]
        return Bind(first, tuple(extra))

    @property
    def virtual_wildcard(self) -> Bind:
        """Where virtual listeners and gateways listen: of the second family only in a dual-stack mesh."""
        return self.wildcard if self.dual_stack else Bind(self.wildcard.address)

    @property
    def dns_family(self) -> str:
        """The families that names are resolved to for the proxy."""
        if self.families == "IPv6":
            return "V6_ONLY"
        return "ALL" if self.families == "dual" and self.dual_stack else "V4_ONLY"

    def is_wildcard(self, address: str) -> bool:
        """Whether a listener on that address takes every destination."""
        return address in (UNSPECIFIED, "::")

    def reaches(self, address: str) -> bool:
        """Whether the proxy has the address's family."""
        return self.families == "dual" or (":" in address) == (self.families == "IPv6")


def network(proxy: Proxy, *, dual_stack: bool) -> Network:
    """The network of a proxy."""
    return Network(families=families(proxy), dual_stack=dual_stack, use_allocated=proxy.dns_capture)


def service_bind(service: Service, own: Network) -> Bind:
    """The address of a service for a proxy: its virtual addresses of the proxy's families, else the allocated ones,
    else its default address, whatever the family. A range of addresses is returned as written."""
    usable = tuple(a for a in service.addresses if own.reaches(a))
    if usable:
        return Bind(usable[0], usable[1:] if own.dual_stack and own.families == "dual" else ())
    if own.use_allocated and service.address == UNSPECIFIED and service.auto_addresses:
        family = [a for a in service.auto_addresses if (":" in a) == (own.families == "IPv6")]
        if family:
            return Bind(family[0])
    return Bind(service.address)
