"""Which listener takes a connection, and what its listener filters find out before a chain is chosen.

In: a proxy's listeners and a destination. Out: the listener: the one of that address and port, else the wildcard one of
the port, else the one that catches everything. `inspect` runs the TLS and HTTP inspectors where they are not switched
off for the port.
"""

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace.capture import INBOUND_PORT, OUTBOUND_PORT
from mizzen.diagnose.trace.filter_chains import Seen
from mizzen.diagnose.trace.wire import Wire
from mizzen.diagnose.trace.world import Holdings

_TLS_INSPECTOR = ".tls_inspector."
_HTTP_INSPECTOR = ".http_inspector."
_WILDCARDS = ("0.0.0.0", "::")


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A listener and how it was found."""

    listener: Json
    why: str


def outbound(held: Holdings, address: str, port: int) -> Chosen | None:
    """The listener for what a pod's program sends, by its original destination."""
    virtual = _first(held, _WILDCARDS, OUTBOUND_PORT)
    exact = _first(held, (address,), port) if address else None
    if exact is not None:
        return Chosen(listener=exact, why=f"listens at {address}:{port}")
    wildcard = _first(held, _WILDCARDS, port)
    if wildcard is not None and wildcard is not virtual:
        return Chosen(listener=wildcard, why=f"takes port {port} of every address")
    if virtual is None:
        return None
    return Chosen(listener=virtual, why=f"no listener has {address or 'this address'}:{port}, this one takes the rest")


def inbound(held: Holdings) -> Chosen | None:
    """The listener for what arrives at a pod and is captured."""
    found = _first(held, _WILDCARDS, INBOUND_PORT)
    return Chosen(listener=found, why="what arrives is captured") if found is not None else None


def bound(held: Holdings, address: str, port: int) -> Chosen | None:
    """The listener that a proxy has really opened on a port; those that only take what is captured are none."""
    at = (each for place in (address, *_WILDCARDS) for each in held.listening(place, port))
    found = next((each for each in at if dump.field(each, "bind_to_port") is not False), None)
    return Chosen(listener=found, why=f"is bound to port {port}") if found is not None else None


def _first(held: Holdings, addresses: tuple[str, ...], port: int) -> Json | None:
    return next((each for address in addresses for each in held.listening(address, port)), None)


def inspect(listener: Json, wire: Wire) -> Seen:
    """What is known of the connection once the listener filters have run."""
    seen = Seen(address=wire.address, port=wire.port, source=wire.source)
    kinds = [
        dump.text(each, "typed_config", "@type")
        for each in dump.items(listener, "listener_filters")
        if not _is_disabled(dump.message(each, "filter_disabled"), wire.port)
    ]
    if wire.hello is not None and any(_TLS_INSPECTOR in kind for kind in kinds):
        return msgspec.structs.replace(
            seen, transport="tls", server_name=wire.hello.server_name, protocols=wire.hello.protocols
        )
    if wire.hello is None and wire.message is not None and any(_HTTP_INSPECTOR in kind for kind in kinds):
        return msgspec.structs.replace(seen, protocols=("h2c",) if wire.message.http2 else ("http/1.1",))
    return seen


def _is_disabled(predicate: Json, port: int) -> bool:
    """ListenerFilterChainMatchPredicate, as far as ports decide it."""
    if "destinationPortRange" in predicate:
        start = dump.number(predicate, "destination_port_range", "start")
        return start <= port < dump.number(predicate, "destination_port_range", "end")
    if "orMatch" in predicate:
        return any(_is_disabled(rule, port) for rule in dump.items(predicate, "or_match", "rules"))
    if "andMatch" in predicate:
        return all(_is_disabled(rule, port) for rule in dump.items(predicate, "and_match", "rules"))
    if "notMatch" in predicate:
        return not _is_disabled(dump.message(predicate, "not_match"), port)
    return predicate.get("anyMatch") is True
