"""Whether a client and a server agree about TLS on one port, and which objects make each side as it is.

In: a world, two pods and a Service's host with its port. Out: `Pair`. The walk of a plain connection is asked, so that
this and `trace` can never differ.
"""

import msgspec

from mizzen.diagnose.trace import walk
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import Cause, Trace
from mizzen.diagnose.trace.world import Workload, World
from mizzen.model import services

_TLS_LINKS = ("tls", "secret")


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One client, one server, one port."""

    client: str
    server: str
    port: int
    client_mode: str
    """`mutual TLS`, `TLS` or `plain text`: what the client's proxy speaks."""
    server_mode: str
    """What the server's chain took: `mutual TLS`, `TLS` or `plain text`; empty where none took it."""
    agrees: bool
    reason: str = ""
    cause: Cause | None = None
    trace: Trace | None = None


def agree_on_tls(world: World, client: Workload, server: Workload, port: int, host: str = "") -> Pair:
    """Whether a connection from the client to the server's port gets through TLS.

    With `host` the connection goes to that Service, by its rules and in the protocol of its port; without it to the
    server's address.
    """
    request = Request(
        source=client.reference,
        scheme=_scheme(world, host, port),
        host=host or (server.addresses[0] if server.addresses else ""),
        port=port,
    )
    found = walk.trace(world, request)
    agrees = found.link not in _TLS_LINKS
    return Pair(
        client=client.reference,
        server=server.reference,
        port=port,
        client_mode=_client_mode(found, client.reference),
        server_mode=_server_mode(found, server.reference) if agrees else "",
        agrees=agrees,
        reason="" if agrees else found.reason,
        cause=None if agrees else found.cause,
        trace=found,
    )


def _scheme(world: World, host: str, port: int) -> str:
    """What the port speaks: a sidecar treats a connection in another protocol as none of the Service's."""
    for known in services.services_of_host(world.db, host) if world.db is not None and host else ():
        found = known.port(port)
        if found is not None:
            return "http" if found.protocol.is_http or found.protocol.is_auto else "tcp"
    return "http"


def _client_mode(found: Trace, side: str) -> str:
    for step in found.steps:
        if step.side == side and step.link == "tls" and step.title.startswith("to "):
            facts = dict(step.facts)
            if facts.get("certificate"):
                return "mutual TLS"
            return "TLS" if facts.get("by") and "plain" not in step.title else "plain text"
    return "plain text"


def _server_mode(found: Trace, side: str) -> str:
    for step in found.steps:
        if step.side == side and step.link == "tls" and step.title.endswith("agrees"):
            return "mutual TLS" if step.title.startswith("mutual") else "TLS"
    return "plain text"
