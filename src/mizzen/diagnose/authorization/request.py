"""What is known of one request, or of one bare connection, when it reaches a workload's policies.

Who calls is told by the identity in its certificate; namespace and service account are read from that, as Envoy does.
Headers and claims are those that the policies see, so after token rules have removed a token or added headers.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

Claims = Mapping[str, Any]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request over HTTP, or with `is_http=False` a connection, of which only the first group counts."""

    is_http: bool = True
    principal: str = ""
    """The identity in the caller's certificate, such as `spiffe://cluster.local/ns/shop/sa/web`; empty without one."""
    source_ip: str = ""
    """The address at the other end of the connection."""
    remote_ip: str = ""
    """The client's address as Envoy believes it; empty: taken from `x-forwarded-for`, else the connection's."""
    destination_ip: str = ""
    port: int = 0
    """The workload's port, not the service's."""
    sni: str = ""
    metadata: Mapping[str, Mapping[str, Any]] = {}
    """Dynamic metadata that other filters left, by the filter's name and key."""

    method: str = "GET"
    host: str = ""
    """The `:authority` or `Host`, with its port if it has one."""
    path: str = "/"
    """As sent, with its query."""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers, names in any case; of several with one name each counts by itself."""
    claims: Claims | None = None
    """The payload of a token that was found valid."""
