"""What travels between two hops: the destination, the TLS hello if there is one, and the HTTP message if it is HTTP.

In: what the sender decided. Out: `Wire`, which the receiver inspects. `Peer` is who the receiver knows the sender to be
once TLS is terminated.
"""

from typing import Any

import msgspec

from mizzen.diagnose.trace.request import Message

SOMEBODY = "198.51.100.7"
"""Stands for the address of a client outside of which nothing is known (a documentation range)."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What a side presents in a handshake."""

    identity: str = ""
    """Its URI name; empty where it has none or it is not known."""
    names: tuple[str, ...] = ()
    """DNS names."""
    root: str = "mesh"
    """Who signed it: `mesh`, or empty for anybody else."""
    expired: bool = False
    source: str = ""
    """The secret's name."""
    pem: bytes = b""
    """The chain itself, where it is known."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The TLS that the sender speaks."""

    server_name: str = ""
    protocols: tuple[str, ...] = ()
    certificate: Certificate | None = None
    """The client's certificate, which it shows if it is asked."""
    checks: "Checks | None" = None
    """What the client demands of the server's certificate; None for a program's own TLS, of which nothing is known."""


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """What a client demands of a server's certificate."""

    roots: Any
    """`certificates.Roots`."""
    names: tuple[tuple[str, Any], ...] = ()
    """Kinds of name (`URI`, `DNS` or empty for any) with their matchers; one of them must fit."""


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """One connection as it arrives."""

    source: str = ""
    """The sender's address."""
    address: str
    port: int
    hello: Hello | None = None
    message: Message | None = None
    """The HTTP request inside; None for other protocols and for HTTP inside a TLS that nobody opens."""
    depth: int = 0
    """How many hops came before."""

    @property
    def is_tls(self) -> bool:
        """Whether it is TLS."""
        return self.hello is not None


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who sent a request, as the receiving proxy knows it."""

    address: str = ""
    client: str = ""
    """The address of the client behind it, as far as the proxy believes `x-forwarded-for`; of HTTP only."""
    is_mutual: bool = False
    identity: str = ""
    """From the certificate; empty without mutual TLS."""
    server_name: str = ""
    port: int = 0
    """The port at which it arrived."""
    destination: str = ""
