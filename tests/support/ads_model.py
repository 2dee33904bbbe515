"""A model of an ADS client and a driver of a server `Session`, with every message held back until a test delivers it.

The client follows the protocol to the letter: what it rejects changes nothing. In delta it drops what it is no longer
subscribed to; state of the world ignores requests that cross a response, so there it keeps what it may want again.
Messages in both directions wait in queues, so that a test can interleave them in any way.
"""

from collections import deque
from typing import Any

from mizzen import protos
from mizzen.compile.endpoints import unknown_assignments
from mizzen.compile.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource, ResourceSet
from mizzen.xds import kinds
from mizzen.xds.delta import DeltaSession
from mizzen.xds.requests import Rejection, Request
from mizzen.xds.responses import Responses
from mizzen.xds.session import Session
from mizzen.xds.sotw import SotwSession
from mizzen.xds.watch import Watch

_discovery = protos.package("envoy.service.discovery.v3")
_any = protos.package("google.protobuf").Any
_assignment = protos.package("envoy.config.endpoint.v3").ClusterLoadAssignment

TYPES = (CLUSTER, ENDPOINT, LISTENER, ROUTE)
SENTINEL = "sentinel"
"""A resource that always exists and is always subscribed to."""


def resource(type_url: str, name: str, content: str) -> Resource:
    """A resource that says its name and content; what it means does not matter to a session."""
    return Resource(name, protos.encode(_any(type_url=type_url, value=f"{name}={content}".encode())))


def read_resource(packed: Any) -> tuple[str, str]:
    """Its name and content, which is empty of endpoints that only say that their cluster is unknown."""
    if b"=" in packed.value:
        name, content = packed.value.decode().split("=")
        return name, content
    return _assignment.FromString(packed.value).cluster_name, ""


class Mesh:
    """What the server has now."""

    def __init__(self) -> None:
        self.resources: dict[str, dict[str, Resource]] = {t: {} for t in TYPES}
        for type_url in TYPES:
            for name in (SENTINEL, "a", "b"):
                self.set(type_url, name, "0")

    def set(self, type_url: str, name: str, content: str | None) -> None:
        """Set a resource, or remove it (None)."""
        if content is None:
            self.resources[type_url].pop(name, None)
        else:
            self.resources[type_url][name] = resource(type_url, name, content)

    def answer(self, watch: Watch) -> ResourceSet:
        """What this subscription should hold."""
        found: dict[str, Resource] = {}
        for names in watch.asks:
            found |= {n: r for n, r in self.resources[watch.type_url].items() if names is None or n in names}
        return ResourceSet(watch.type_url, found.values())


class Pair:
    """A client and the server's session for it, and the messages between them."""

    def __init__(self, mesh: Mesh, *, delta: bool) -> None:
        self.mesh = mesh
        self.delta = delta
        self.responses = Responses()
        self.held: dict[str, dict[str, str]] = {t: {} for t in TYPES}
        self.names: dict[str, set[str]] = {t: {SENTINEL, "a"} if t in kinds.EXPLICIT else set() for t in TYPES}
        self.wildcard = {t: t not in kinds.EXPLICIT for t in TYPES}
        self.bytes_received = 0
        self._streams = 0
        self.connect()

    # -- the stream -----------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """A new stream: all messages under way are lost, and the client says what it holds."""
        self._streams += 1
        session = DeltaSession if self.delta else SotwSession
        self.session: Session = session(self.responses, TYPES, f"stream{self._streams}/")
        self.to_server: deque[Request] = deque()
        self.to_client: deque[bytes] = deque()
        self._planned = False
        self.last_nonce = dict.fromkeys(TYPES, "")
        for type_url in TYPES:
            names = tuple(sorted(self.names[type_url]))
            if self.delta:
                star = ("*",) if self.wildcard[type_url] and names else ()
                if names or self.wildcard[type_url]:
                    initial = dict(self.held[type_url])
                    self.request(type_url, names=star + names, initial_versions=initial)
            else:
                self.request(type_url, names=names)

    def request(self, type_url: str, **fields: Any) -> None:
        """The client sends a request."""
        self.to_server.append(Request(type_url=type_url, **fields))

    def deliver_requests(self, count: int) -> None:
        """The server takes the next requests."""
        for _ in range(min(count, len(self.to_server))):
            self.session.receive(self.to_server.popleft())

    def serve(self) -> None:
        """The server sends one response, if one is due."""
        if not self._planned:
            targets = {watch.type_url: self.mesh.answer(watch) for watch in self.session.take_due()}
            self.session.plan(targets)
            self._planned = True
        response = self.session.next(1.0)
        if response is None:
            self._planned = False
        else:
            self.to_client.append(response.data)

    # -- the client -----------------------------------------------------------------------------------------------

    def change_names(self, type_url: str, add: set[str], remove: set[str]) -> None:
        """The client changes a subscription by name."""
        remove = remove - add - {SENTINEL}
        self.names[type_url] = (self.names[type_url] | add) - remove
        if self.delta:
            if add or remove:
                self.request(type_url, names=tuple(sorted(add)), unsubscribe=tuple(sorted(remove)))
        else:
            nonce = self.last_nonce[type_url]
            self.request(type_url, names=tuple(sorted(self.names[type_url])), nonce=nonce)
        if self.delta and not self.wildcard[type_url]:
            for name in remove:
                self.held[type_url].pop(name, None)

    def change_wildcard(self, type_url: str, wanted: bool) -> None:
        """Delta: the client wants everything, or no longer."""
        if wanted != self.wildcard[type_url]:
            self.wildcard[type_url] = wanted
            self.request(type_url, **({"names": ("*",)} if wanted else {"unsubscribe": ("*",)}))
            if not wanted:
                held = self.held[type_url]
                self.held[type_url] = {n: v for n, v in held.items() if n in self.names[type_url]}

    def deliver_response(self, *, accept: bool) -> None:
        """The client takes one response and answers it."""
        if not self.to_client:
            return
        data = self.to_client.popleft()
        self.bytes_received += len(data)
        message = (_discovery.DeltaDiscoveryResponse if self.delta else _discovery.DiscoveryResponse).FromString(data)
        type_url = message.type_url
        self.last_nonce[type_url] = message.nonce
        if accept:
            self._accept(message)
        rejection = None if accept else Rejection(code=13, message="no")
        names = () if self.delta else tuple(sorted(self.names[type_url]))
        self.request(type_url, nonce=message.nonce, rejection=rejection, names=names)

    def _accept(self, message: Any) -> None:
        held = self.held[message.type_url]
        if self.delta:
            got = {r.name: Resource(r.name, protos.encode(r.resource)) for r in message.resources}
            assert all(r.version == got[r.name].version for r in message.resources)
        else:
            packed = [(a.value.decode().partition("=")[0], protos.encode(a)) for a in message.resources]
            got = {name: Resource(name, data) for name, data in packed}
            if message.type_url not in kinds.EXPLICIT:
                held.clear()
        for name, found in got.items():
            if not self.delta or self.wildcard[message.type_url] or name in self.names[message.type_url]:
                held[name] = found.version
        for name in message.removed_resources if self.delta else ():
            held.pop(name, None)

    # -- what must be true ----------------------------------------------------------------------------------------

    def run_until_quiet(self) -> None:
        """Deliver everything, accepting it, until nothing moves."""
        for _ in range(1000):
            before = (self.session.due, len(self.to_server), len(self.to_client), self._planned)
            self.deliver_requests(1)
            self.serve()
            self.deliver_response(accept=True)
            under_way = self.to_server or self.to_client or self._planned
            idle = not (self.session.due or self.session.ready or self.session.waiting or under_way)
            if idle and not before[0]:
                return
        raise AssertionError("the conversation never ends")

    def expected(self, type_url: str) -> dict[str, str]:
        """What the client should hold."""
        wanted = self.mesh.resources[type_url]
        everything = self.wildcard[type_url]
        return {n: r.version for n, r in wanted.items() if everything or n in self.names[type_url]}

    def goal(self, watch: Watch) -> ResourceSet:
        """What the server means the client to hold: where absence cannot be told, that there are no endpoints."""
        found = self.mesh.answer(watch)
        if self.delta or watch.type_url != ENDPOINT:
            return found
        return ResourceSet.join(ENDPOINT, (found, unknown_assignments(found.lacks(watch.names))))

    def shown(self, type_url: str) -> dict[str, str]:
        """What it holds. State of the world cannot tell that a named resource is gone: only what it wants counts."""
        held = self.held[type_url]
        if self.delta or type_url not in kinds.EXPLICIT:
            return held
        return {n: v for n, v in held.items() if n in self.expected(type_url)}


class Said:
    """A decoded response, short."""

    def __init__(self, data: bytes, *, delta: bool) -> None:
        message: Any = (_discovery.DeltaDiscoveryResponse if delta else _discovery.DiscoveryResponse).FromString(data)
        self.type_url: str = message.type_url
        self.nonce: str = message.nonce
        packed = [r.resource for r in message.resources] if delta else message.resources
        self.contents = dict(map(read_resource, packed))
        self.removed = list(message.removed_resources) if delta else []

    def __repr__(self) -> str:
        removed = f" -{self.removed}" if self.removed else ""
        return f"{kinds.short_name(self.type_url)} {self.contents}{removed}"

    @property
    def short(self) -> str:
        """`cds a b -c`: the type, what was sent, what was taken away."""
        words = [kinds.short_name(self.type_url), *sorted(self.contents), *(f"-{name}" for name in self.removed)]
        return " ".join(words)


def say_due(session: Session, mesh: Mesh) -> list[Said]:
    """All responses that are due now, of one state of the mesh."""
    session.plan({watch.type_url: mesh.answer(watch) for watch in session.take_due()})
    said = []
    while (response := session.next(1.0)) is not None:
        said.append(Said(response.data, delta=session.delta))
    return said
