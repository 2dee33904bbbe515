"""Who is connected and what each proxy has got: what proxy-status and /debug read, and nothing else writes.

In: streams, as they open and close. Out: `Connections`, with a `TypeStatus` per proxy and type computed when asked, and
events for those who must know that a proxy came or went.
"""

import enum
from collections.abc import Callable, Iterator

import msgspec

from mizzen.compile.resource import ResourceSet
from mizzen.model.proxy import Proxy
from mizzen.model.spiffe import Identity
from mizzen.xds import kinds
from mizzen.xds.session import Session
from mizzen.xds.stream import Stream
from mizzen.xds.watch import State


class TypeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What one proxy has got of one type."""

    type_url: str
    state: State
    names: tuple[str, ...]
    """Names subscribed to, sorted; empty for everything."""
    sent_version: str
    """Version of the set last sent."""
    accepted_version: str
    """Version of the set last accepted; empty before the first ACK."""
    sent_nonce: str
    """For a proxy that came back holding everything already, the version stands in for both nonces."""
    acked_nonce: str
    sent_at: float
    """Clock time (seconds since 1970) of the last response; 0 when none was sent."""
    error: str
    """`Code:text` of the rejection in force; empty without one."""
    culprits: tuple[str, ...]
    """Resources that the rejection names."""


class Connection(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One connected proxy."""

    id: str
    """The proxy's id `<pod>.<namespace>` and a number, unique in this process."""
    proxy: Proxy
    address: str
    """The peer's address."""
    connected_at: float
    """Clock time (seconds since 1970)."""
    delta: bool
    identity: Identity | None
    """What its credentials proved; None on the plain port."""
    version: str
    """The ISTIO_VERSION of its node, or `unknown`."""
    session: Session
    stream: Stream
    """Close it to have the proxy come back."""

    def types(self) -> list[TypeStatus]:
        """The types that it watches, in order."""
        return [self._type(type_url) for type_url in kinds.in_order(self.session.watches)]

    def sent(self, type_url: str) -> ResourceSet | None:
        """The resources that it was told of one type; None before the first response."""
        watch = self.session.watches.get(type_url)
        return watch.sent if watch is not None else None

    def accepted(self, type_url: str) -> ResourceSet | None:
        """The resources of one type that it accepted last."""
        watch = self.session.watches.get(type_url)
        return watch.accepted if watch is not None else None

    def _type(self, type_url: str) -> TypeStatus:
        watch = self.session.watches[type_url]
        sent = watch.sent.version if watch.sent is not None else ""
        stands_in = sent if watch.confirmed and not watch.nonce else ""
        return TypeStatus(
            type_url=type_url,
            state=watch.state,
            names=tuple(sorted(watch.names)),
            sent_version=sent,
            accepted_version=watch.accepted.version if watch.accepted is not None else "",
            sent_nonce=watch.nonce or stands_in,
            acked_nonce=watch.acked_nonce or stands_in,
            sent_at=watch.sent_at,
            error=str(watch.rejection) if watch.rejection is not None else "",
            culprits=watch.culprits,
        )


class Event(enum.Enum):
    """What happened to a connection."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"


Listener = Callable[[Event, Connection], None]


class Connections:
    """The proxies connected now."""

    def __init__(self) -> None:
        self._connections: dict[str, Connection] = {}
        self._listeners: list[Listener] = []
        self._count = 0

    def next_id(self, proxy: Proxy) -> str:
        """A new connection's id."""
        self._count += 1
        return f"{proxy_id(proxy)}-{self._count}"

    def add(self, connection: Connection) -> None:
        """A proxy came."""
        self._connections[connection.id] = connection
        self._tell(Event.CONNECTED, connection)

    def remove(self, connection: Connection) -> None:
        """A proxy went."""
        del self._connections[connection.id]
        self._tell(Event.DISCONNECTED, connection)

    def listen(self, listener: Listener) -> None:
        """Call `listener` for every proxy that comes or goes from now on; it must not raise."""
        self._listeners.append(listener)

    def _tell(self, event: Event, connection: Connection) -> None:
        for listener in self._listeners:
            listener(event, connection)

    def __iter__(self) -> Iterator[Connection]:
        """Sorted by cluster, namespace and proxy id, as the reference lists them."""
        connections = self._connections.values()
        return iter(sorted(connections, key=lambda c: (c.proxy.cluster_id, c.proxy.namespace, c.id)))

    def __len__(self) -> int:
        return len(self._connections)

    def find(self, part: str) -> Connection | None:
        """The first connection whose id contains `part`, as the reference's `proxyID` parameter works."""
        return next((connection for connection in self._connections.values() if part in connection.id), None)

    def close(self) -> None:
        """End every stream."""
        for connection in list(self._connections.values()):
            connection.stream.close()


def proxy_id(proxy: Proxy) -> str:
    """`<pod>.<namespace>`, the part of the node id that istioctl shows."""
    parts = proxy.id.split("~")
    return parts[2] if len(parts) > 2 else proxy.id
