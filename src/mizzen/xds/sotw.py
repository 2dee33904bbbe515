"""The state of the world variant of a session: what is absent from a response is gone, or cannot be told."""

from mizzen.compile.endpoints import unknown_assignments
from mizzen.compile.resource import CLUSTER, ENDPOINT, ResourceSet
from mizzen.xds import kinds
from mizzen.xds.requests import NO_NAMES, Request, intern_names
from mizzen.xds.responses import Difference
from mizzen.xds.session import EVERYTHING, Leaving, Outcome, Response, Session
from mizzen.xds.watch import Watch


class SotwSession(Session):
    """A client whose list of names replaces the one before.

    Clusters and listeners (all types but the explicit ones) are always sent as a whole, and what is absent is gone. Of
    the explicit types only what differs is sent, and an absence cannot be told. But an Envoy waits for the endpoints of
    a cluster that it warms: of one that is unknown it is told that there are none.
    """

    def _receive(self, watch: Watch | None, request: Request) -> Outcome:
        if not request.names and request.type_url in kinds.EXPLICIT:
            self.watches.pop(request.type_url, None)
            self.due.discard(request.type_url)
            return Outcome.UNSUBSCRIBED
        if watch is None or not request.nonce:
            self._open(request)
            return Outcome.SUBSCRIBED
        watch.acknowledge(request.nonce)
        if request.nonce != watch.nonce:
            return Outcome.EXPIRED
        self._resubscribe(watch, request)
        return Outcome.ACKED

    def _open(self, request: Request) -> None:
        names = intern_names(frozenset(request.names) - EVERYTHING)
        everything = "*" in request.names or not request.names
        watch = Watch(request.type_url, wildcard=everything, names=names, whole=request.type_url not in kinds.EXPLICIT)
        watch.asked = names
        watch.must_answer = True
        self.watches[request.type_url] = watch
        self.due.add(request.type_url)

    def _resubscribe(self, watch: Watch, request: Request) -> None:
        names = intern_names(frozenset(request.names) - EVERYTHING)
        everything = "*" in request.names or not (names or watch.named)
        if everything == watch.wildcard and names == watch.names:
            return
        added = names - watch.names
        watch.forget_names(watch.names - names)
        watch.asked = watch.asked | added if watch.asked else intern_names(added)
        watch.must_answer = watch.whole
        watch.wildcard, watch.names, watch.named = everything, names, watch.named or bool(names)
        self.due.add(watch.type_url)

    def _update(self, watch: Watch, target: ResourceSet, hold: bool, now: float) -> Response | None:
        if not watch.whole:
            return self._update_some(watch, target, hold, now)
        goal = target
        self._leaving.pop(watch.type_url, None)
        if hold and watch.sent is not None:
            goal = self._responses.union(target, watch.sent)
            if goal.version != target.version:
                self._leaving[watch.type_url] = Leaving(target, NO_NAMES)
        if watch.sent == goal and not watch.must_answer:
            watch.settle(goal)
            return None
        watch.asked = NO_NAMES
        if watch.type_url == CLUSTER:
            self._note_clusters(watch, self._responses.difference(watch.sent, goal, NO_NAMES).upserts)
        return self._send_all(watch, goal, now)

    def _update_some(self, watch: Watch, target: ResourceSet, hold: bool, now: float) -> Response | None:
        if watch.type_url == ENDPOINT:
            target = self._with_unknown(watch, target, hold)
        extra = watch.asked | watch.owed if watch.owed else watch.asked
        difference = self._responses.difference(watch.sent, target, NO_NAMES, extra)
        watch.must_answer = False
        if not difference.upserts:
            watch.settle(target)
            return None
        watch.asked = watch.owed = NO_NAMES
        return self._send(watch, target, difference, now)

    def _with_unknown(self, watch: Watch, target: ResourceSet, hold: bool) -> ResourceSet:
        """The endpoints with those of unknown clusters: none, or with `hold` what the client has until all is said."""
        self._leaving.pop(ENDPOINT, None)
        unknown = target.lacks(watch.names)
        if not unknown:
            return target
        held = ResourceSet(
            ENDPOINT, watch.sent.among(frozenset(unknown - watch.asked)) if hold and watch.sent is not None else ()
        )
        if held:
            self._leaving[ENDPOINT] = Leaving(target, NO_NAMES)
        return ResourceSet.join(ENDPOINT, (target, held, unknown_assignments(held.lacks(unknown))))

    def _remove(self, watch: Watch, leaving: Leaving, now: float) -> Response | None:
        if not watch.whole:
            return self._update_some(watch, leaving.target, False, now)
        return self._send_all(watch, leaving.target, now) if watch.sent != leaving.target else None

    def _send_all(self, watch: Watch, target: ResourceSet, now: float) -> Response:
        return self._send(watch, target, self._responses.difference(None, target, NO_NAMES), now)

    def _encode(self, difference: Difference, nonce: str) -> bytes:
        return self._responses.sotw(difference, nonce)
