"""The delta variant of a session: only what differs is said, and removals by name."""

from mizzen.compile.resource import CLUSTER, ROUTE, VIRTUAL_HOST, ResourceSet
from mizzen.xds import kinds, on_demand
from mizzen.xds.requests import NO_NAMES, Names, Request, intern_names, intern_versions
from mizzen.xds.responses import Difference
from mizzen.xds.session import EVERYTHING, Leaving, Outcome, Response, Session
from mizzen.xds.watch import Watch


class DeltaSession(Session):
    """A client that holds what it was told until it is told otherwise."""

    delta = True

    def _receive(self, watch: Watch | None, request: Request) -> Outcome:
        if watch is None:
            self._open(request)
            return Outcome.SUBSCRIBED
        outcome = Outcome.SUBSCRIBED
        if request.nonce:
            outcome = Outcome.ACKED if watch.acknowledge(request.nonce) else Outcome.EXPIRED
        self._resubscribe(watch, request)
        return outcome

    def _rejected(self, watch: Watch, request: Request) -> None:
        self._resubscribe(watch, request)

    def _open(self, request: Request) -> None:
        """First request of a type: a new subscription, or that of a client that comes back.

        Names are always answered, even in the version that the client says it holds: Envoy may hold them no longer.
        """
        named = frozenset(request.names) - EVERYTHING
        nothing_said = not request.names and not request.unsubscribe
        everything = "*" in request.names or (nothing_said and request.type_url not in kinds.EXPLICIT)
        names = intern_names(named if everything else {*named, *request.initial_versions})
        watch = self.watches[request.type_url] = Watch(request.type_url, wildcard=everything, names=names)
        watch.asked = names if len(names) == len(named) else intern_names(named)
        held = request.initial_versions
        if not everything:
            # What is named is answered anyway; only the rest is compared.
            held = {name: version for name, version in held.items() if name not in named}
        watch.held = intern_versions(held) if held else None
        watch.must_answer = everything and not request.initial_versions
        self.due.add(request.type_url)
        if self._on_demand:
            self.due.update(on_demand.follow(self.watches, watch, request))

    def _resubscribe(self, watch: Watch, request: Request) -> None:
        if not request.names and not request.unsubscribe:
            return
        added, gone = frozenset(request.names), frozenset(request.unsubscribe)
        if "*" in added:
            watch.ask_for_everything()
        elif "*" in gone:
            watch.wildcard = False
        added, gone = added - EVERYTHING, (gone & watch.names) - added
        watch.names = intern_names((watch.names | added) - gone)
        watch.forget_names(gone)
        # Whoever holds everything cannot know whether a name it gave up is still part of that.
        asked = added | gone if watch.wildcard else added
        watch.asked = watch.asked | asked if watch.asked else intern_names(asked)
        self.due.add(watch.type_url)
        if self._on_demand:
            self.due.update(on_demand.follow(self.watches, watch, request))

    def _update(self, watch: Watch, target: ResourceSet, hold: bool, now: float) -> Response | None:
        # A request may wait for a virtual host: one that was rejected does not take it along.
        apart = watch.type_url == VIRTUAL_HOST and watch.asked
        extra = watch.asked | watch.owed if watch.owed and not apart else watch.asked
        late = self._leaving.pop(watch.type_url, None)
        if late is not None:
            extra = extra | late.names
        scope = self._scope(watch)
        if watch.held is not None and watch.sent is None:
            difference = self._responses.since(watch.held, target, scope, extra)
        else:
            difference = self._responses.difference(watch.sent, target, scope, extra)
        if hold and difference.removed:
            leaving = frozenset(difference.removed) - _answers(watch, late)
            if leaving:
                self._leaving[watch.type_url] = Leaving(target, leaving)
                difference = difference.without(leaving)
        if not difference and not watch.must_answer:
            watch.settle(target)
            return None
        watch.asked, watch.owed = NO_NAMES, watch.owed - extra if apart else NO_NAMES
        watch.held = None
        if watch.type_url == CLUSTER:
            self._note_clusters(watch, difference.upserts)
        elif watch.type_url == ROUTE and self._on_demand:
            self._note_routes(difference.upserts)
        return self._send(watch, target, difference, now)

    def _note_routes(self, routes: ResourceSet) -> None:
        hosts = self.watches.get(VIRTUAL_HOST)
        if hosts is not None:
            on_demand.ask_for_hosts(hosts, routes)
            if VIRTUAL_HOST not in self._steps:
                self.due.add(VIRTUAL_HOST)

    def _remove(self, watch: Watch, leaving: Leaving, now: float) -> Response | None:
        scope = self._scope(watch)
        difference = self._responses.difference(leaving.target, leaving.target, scope, leaving.names)
        if not difference:
            return None
        return self._send(watch, leaving.target, difference, now)

    def _encode(self, difference: Difference, nonce: str) -> bytes:
        return self._responses.delta(difference, nonce)

    def _scope(self, watch: Watch) -> Names | None:
        """The names whose absence is told; None for all."""
        if watch.type_url in kinds.NEVER_REMOVED:
            return watch.asked
        return None if watch.wildcard else watch.names


def _answers(watch: Watch, late: Leaving | None) -> Names:
    """Names that the client asks for and does not hold. That there is nothing is told at once: clusters wait for it."""
    asked = watch.asked - watch.owed - (late.names if late is not None else NO_NAMES)
    held = watch.sent if watch.sent is not None else watch.held.of if watch.held is not None else ()
    return frozenset(name for name in asked if name not in held)
