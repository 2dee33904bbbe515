"""The state machine of one ADS stream, in both variants of the protocol: requests in, responses out, no I/O.

`receive` takes a decoded request and leaves in `due` the types that may need a response; `mark` adds those that a
change reached. The owner then fetches what each should hold (`Watch.asks`) and hands all of it to `plan` in one go;
`next` yields the responses one by one: what is used before what uses it, removals after both. Endpoints follow clusters
unasked and at once, because an Envoy does not ACK clusters before it has those. Only listeners and routes wait for that
ACK, and only where clusters are new: a request to a cluster that still warms fails. So does another version of a
cluster that is not ACKed yet: an Envoy that is told of it while the first one waits for a secret, and of that secret
right after, takes the second for the first, and crashes once that is complete. The owner bounds both waits.

The variants are in `delta` and `sotw`. Fetching resources, encoding them and moving bytes are elsewhere (`roots`,
`responses`, `stream`).
"""

import abc
import enum
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mizzen.compile.resource import CLUSTER, ENDPOINT, ResourceSet
from mizzen.xds import kinds
from mizzen.xds.requests import NO_NAMES, Names, Request
from mizzen.xds.responses import Difference, Responses
from mizzen.xds.watch import Asks, Sent, Watch

EVERYTHING = frozenset(("*",))
"""The name by which a client asks for all resources of a type."""


class Outcome(enum.Enum):
    """What a request turned out to be."""

    SUBSCRIBED = "subscribed"
    UNSUBSCRIBED = "unsubscribed"
    ACKED = "acked"
    REJECTED = "rejected"
    EXPIRED = "expired"
    """It answers a response that is not the last one, or none of this stream."""
    UNSERVED = "unserved"
    """Its type is not served here."""


class Response(NamedTuple):
    """One message to the client."""

    type_url: str
    nonce: str
    data: bytes
    resources: int
    removed: int
    first: bool
    """Whether it is what the client is given of this type when it comes, and not because of a change."""


class _Step(NamedTuple):
    asks: Asks
    target: ResourceSet


class Leaving(NamedTuple):
    """A removal that waits for the end of the plan."""

    target: ResourceSet
    names: Names


class Session(abc.ABC):
    """What both variants share."""

    delta = False

    def __init__(self, responses: Responses, served: Collection[str], token: str, *, on_demand: bool = False) -> None:
        """`served`: the type URLs answered here; `token` begins every nonce and is the stream's own.

        `on_demand`: the client asks for virtual hosts as requests name them, and gets the clusters that they need.
        """
        self._on_demand = on_demand
        self._responses = responses
        self._served = served
        self._token = token
        self._count = 0
        self._steps: dict[str, _Step] = {}
        self._leaving: dict[str, Leaving] = {}
        self._new_clusters = ""
        """Nonce of the response that brought the client clusters it did not have; empty when that is of no interest."""
        self._settled: ResourceSet | None = None
        """Clusters in flight that are changed without their ACK, which has been waited for in vain."""
        self.watches: dict[str, Watch] = {}
        self.due: set[str] = set()

    # -- in -------------------------------------------------------------------------------------------------------

    def receive(self, request: Request) -> Outcome:
        """Take one request."""
        if request.type_url not in self._served:
            return Outcome.UNSERVED
        watch = self.watches.get(request.type_url)
        if request.rejection is None:
            return self._receive(watch, request)
        if watch is None:
            return Outcome.EXPIRED
        if watch.reject(request.nonce, request.rejection):
            self.due.add(watch.type_url)
        self._rejected(watch, request)
        return Outcome.REJECTED

    def mark(self, type_urls: Iterable[str]) -> None:
        """Something changed for these types."""
        self.due.update(t for t in type_urls if t in self.watches)

    def ask_again(self) -> None:
        """Everything is to be sent again."""
        for watch in self.watches.values():
            watch.ask_again()
        self.due.update(self.watches)

    def close(self) -> None:
        """The client has gone: nothing that it held or was to hold is known any more."""
        for known in (self.watches, self.due, self._steps, self._leaving):
            known.clear()
        self._settled = None

    # -- out ------------------------------------------------------------------------------------------------------

    def take_due(self) -> list[Watch]:
        """The watches that may need a response, in order; they count as due no longer.

        Endpoints always come with clusters, for they have to follow a cluster that is sent again.
        """
        due, self.due = self.due, set()
        if CLUSTER in due:
            due.add(ENDPOINT)
        return [self.watches[t] for t in kinds.in_order(due) if t in self.watches]

    def plan(self, targets: Mapping[str, ResourceSet]) -> None:
        """What the client should hold of each type; all of one state of the mesh. Replaces what still waits."""
        for type_url, target in targets.items():
            watch = self.watches.get(type_url)
            if watch is not None:
                self._steps[type_url] = _Step(watch.asks, target)

    @property
    def waiting(self) -> bool:
        """Whether a part of the plan waits until clusters are at work."""
        return bool(self._steps) and not self.ready

    @property
    def ready(self) -> bool:
        """Whether a part of the plan may be said now."""
        return self._next_step() is not None

    @property
    def _warming(self) -> bool:
        if not self._new_clusters:
            return False
        clusters = self.watches.get(CLUSTER)
        return clusters is not None and any(sent.nonce == self._new_clusters for sent in clusters.in_flight)

    @property
    def overtaking(self) -> bool:
        """Whether the plan changes a cluster that the client may still be warming."""
        step, watch = self._steps.get(CLUSTER), self.watches.get(CLUSTER)
        if step is None or watch is None or watch.sent is None or not watch.in_flight:
            return False
        unsettled = self._changed(self._settled or watch.accepted, watch.sent)
        return any(name in unsettled for name in self._changed(watch.sent, step.target).iter_names())

    def _changed(self, before: ResourceSet | None, after: ResourceSet) -> ResourceSet:
        return self._responses.difference(before, after, NO_NAMES).upserts

    def stop_waiting(self) -> None:
        """Go on without the client's word that new clusters are at work."""
        self._new_clusters = ""

    def stop_holding(self) -> None:
        """Change clusters, too, that the client may still be warming."""
        clusters = self.watches.get(CLUSTER)
        self._settled = clusters.sent if clusters is not None else None

    def union(self, one: ResourceSet, other: ResourceSet) -> ResourceSet:
        """The answers to two questions of one subscription, put together."""
        return self._responses.union(one, other)

    def next(self, now: float) -> Response | None:
        """The next response, to be sent before the next call; None when there is none, or none that may go now."""
        while (type_url := self._next_step()) is not None:
            step = self._steps.pop(type_url)
            watch = self.watches.get(type_url)
            # A subscription that changed meanwhile is due again, with resources that fit it.
            if watch is not None and watch.asks == step.asks:
                hold = bool(self._steps) and type_url in kinds.LEAVE_LAST
                response = self._update(watch, step.target, hold, now)
                if response is not None:
                    return response
        while self._leaving and not self._steps:
            type_url = min(self._leaving, key=kinds.LEAVE_LAST.index)
            leaving, watch = self._leaving.pop(type_url), self.watches.get(type_url)
            if watch is not None and watch.sent is not None:
                response = self._remove(watch, leaving, now)
                if response is not None:
                    return response
        return None

    def _next_step(self) -> str | None:
        if not self._steps:
            return None
        overtaking = self.overtaking
        warming = overtaking or self._warming
        for type_url in kinds.in_order(self._steps):
            if not (warming and type_url in kinds.NEED_CLUSTERS) and not (overtaking and type_url == CLUSTER):
                return type_url
        return None

    # -- the variants' own ----------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _receive(self, watch: Watch | None, request: Request) -> Outcome:
        """Take a request that rejects nothing."""

    def _rejected(self, watch: Watch, request: Request) -> None:  # noqa: B027  # the state of the world adds nothing
        """Take what a NACK says besides."""

    @abc.abstractmethod
    def _update(self, watch: Watch, target: ResourceSet, hold: bool, now: float) -> Response | None:
        """The response, if any, towards `target`; with `hold` its removals are left for the end of the plan."""

    @abc.abstractmethod
    def _remove(self, watch: Watch, leaving: Leaving, now: float) -> Response | None:
        """The response that tells removals which were left for the end."""

    @abc.abstractmethod
    def _encode(self, difference: Difference, nonce: str) -> bytes:
        """The difference as a message of this variant."""

    # -- shared steps ---------------------------------------------------------------------------------------------

    def _send(self, watch: Watch, target: ResourceSet, difference: Difference, now: float) -> Response:
        nonce = self._next_nonce()
        self._count += 1
        first = watch.sent is None  # Who came back with all of it was settled, and is told of changes from then on.
        watch.record(Sent(nonce, target, difference), now)
        removed = len(difference.removed) if self.delta else 0
        data = self._encode(difference, nonce)
        return Response(watch.type_url, nonce, data, len(difference.upserts), removed, first)

    def _note_clusters(self, watch: Watch, clusters: ResourceSet) -> None:
        """These clusters are being sent. Envoy holds each back until its endpoints come, and does not ask again."""
        endpoints = self.watches.get(ENDPOINT)
        wanted = endpoints.names.intersection(clusters.iter_names()) if endpoints is not None else NO_NAMES
        if endpoints is not None and wanted:
            endpoints.asked = endpoints.asked | wanted
            if ENDPOINT not in self._steps:
                self.due.add(ENDPOINT)
        if not watch.in_flight:
            self._settled = None
        if any(watch.sent is None or name not in watch.sent for name in clusters.iter_names()):
            self._new_clusters = self._next_nonce()

    def _next_nonce(self) -> str:
        return f"{self._token}{self._count + 1}"
