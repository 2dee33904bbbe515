"""One ADS stream at work: bytes in, bytes out, around a `Session`.

In: messages by `read`, `reached` and `push` when the mesh changed. Out: messages by `write`, one at a time; responses
come from the sending task alone, answers to debug requests in between. What a response says is fetched only when it can
be sent, for all due types in one go and of one state of the mesh; while a slow client takes its time the stream keeps
no more than a set of due types.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

from mizzen import observe
from mizzen.compile.resource import SECRET, ResourceSet
from mizzen.errors import DecodeError
from mizzen.model.proxy import Proxy
from mizzen.transport import Gone
from mizzen.xds import kinds, metrics
from mizzen.xds.costs import ProxyClass, charge
from mizzen.xds.identity import Refused
from mizzen.xds.pace import Pace
from mizzen.xds.push import Throttle
from mizzen.xds.requests import Request, decode_request
from mizzen.xds.roots import Followed, Push, Roots
from mizzen.xds.session import Outcome, Response, Session
from mizzen.xds.watch import Asks, Watch

_log = observe.scope("ads")

_ATTEMPTS = 3
"""How often a fetch starts anew because the mesh changed under it; the last one stands."""

_WARMING_PATIENCE = 1.0
"""Seconds that listeners and routes wait for the client to have new clusters at work."""
_OVERTAKING_PATIENCE = 20.0
"""Seconds after those that a change of a cluster waits, and all that needs it, while the client may warm the cluster.

Envoy gives up a secret after 15 s, and only then, or with the secret, is a cluster at work on a slow machine.
"""

_UNSERVED, _UNSERVED_LENGTH = 10, 200
"""Types that are not served here: so many are told of, and so much of the name of each."""


Read = Callable[[], Awaitable[bytes | None]]
"""The next message; None at the end of the stream."""
Write = Callable[[bytes], Awaitable[None]]
"""Returns when the transport has taken the message; raises Gone when it takes no more."""
AnswerDebug = Callable[[Request], Awaitable[bytes]]
"""The whole response to a request of a debug type."""
TakeHealth = Callable[[Request], None]
"""Takes what an agent says of its workload's health."""


class Stream:
    """One client and its session."""

    __slots__ = (
        "_closed",
        "_failure",
        "_followed",
        "_id",
        "_pace",
        "_pending",
        "_proxy",
        "_reading",
        "_rejections",
        "_roots",
        "_sender",
        "_session",
        "_spent",
        "_stopped",
        "_take_health",
        "_throttle",
        "_timer",
        "_unfinished",
        "_unserved",
        "_write",
        "_written",
    )

    def __init__(
        self,
        connection_id: str,
        proxy: Proxy,
        session: Session,
        roots: Roots,
        throttle: Throttle,
        pace: Pace,
        take_health: TakeHealth | None = None,
    ) -> None:
        self._id = connection_id
        self._proxy = proxy
        self._session = session
        self._roots = roots
        self._throttle = throttle
        self._pace = pace
        self._take_health = take_health
        self._rejections = metrics.Rejections(proxy.id)
        self._followed: dict[str, tuple[Asks, tuple[Followed, ...]]] = {}
        self._pending: Push | None = None
        self._unfinished: Push | None = None
        self._spent = 0
        """Bytes sent for the push that is not finished."""
        self._written = 0.0
        """Monotonic time of the last of them."""
        self._timer: asyncio.TimerHandle | None = None
        self._unserved: frozenset[str] = frozenset()
        self._write: Write | None = None
        """Where to send, while the stream runs."""
        self._sender: asyncio.Task[None] | None = None
        """While there is something to send: most streams say nothing most of the time."""
        self._failure: Exception | None = None
        """Why sending has failed."""
        self._reading: asyncio.Timeout | None = None
        self._stopped = False
        self._closed = False

    async def run(self, read: Read, write: Write, answer_debug: AnswerDebug) -> None:
        """Serve until the client ends the stream or `close` is called.

        Raises Refused for a broken protocol, and Gone if the stream ended in the middle of a response.
        """
        gone: Gone | None = None
        try:
            async with asyncio.timeout(None) as self._reading:
                if self._closed:
                    self._stop_reading()
                self._write = write
                self._send_soon()
                await self._receive(read, write, answer_debug)
        except Gone as error:
            gone = error
        except TimeoutError:
            if not self._stopped:
                raise
        finally:
            self._reading = self._write = None
            self._rejections.forget()
            if self._sender is not None:
                # gRPC may cancel this, too: a client that has gone is told of twice.
                self._sender.cancel()
                await asyncio.wait((self._sender,))
        # That the stream is gone may be why sending has failed, but not the other way round.
        if failure := self._failure or gone:
            raise failure

    def close(self) -> None:
        """End the stream, also one that does not run yet."""
        self._closed = True
        self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reading is not None and not self._stopped:
            self._stopped = True
            self._reading.reschedule(0.0)

    # -- the mesh changed -----------------------------------------------------------------------------------------

    def reached(self, type_url: str) -> None:
        """A root of this type has another value."""
        self._session.mark((type_url,))

    def stale(self) -> Iterator[Followed]:
        """The roots to fetch; of those that it has left meanwhile none."""
        for _, roots in tuple(self._followed.values()):
            for followed in roots:
                if followed.root.stale and self in followed.followers:
                    yield followed

    @property
    def is_due(self) -> bool:
        """Whether a response is due."""
        return bool(self._session.due)

    def push(self, push: Push) -> None:
        """Send what is due as soon as there is a place."""
        self._pending = push.merge(self._pending)
        self._send_soon()

    def resend(self) -> None:
        """Send everything again, whether or not the client has it."""
        self._session.ask_again()
        self._send_soon()

    # -- requests -------------------------------------------------------------------------------------------------

    async def _receive(self, read: Read, write: Write, answer_debug: AnswerDebug) -> None:
        while (data := await read()) is not None:
            await self._pace.turn()
            try:
                request = decode_request(data, delta=self._session.delta).request
            except DecodeError as broken:
                raise Refused("INVALID_ARGUMENT", str(broken)) from broken
            if kinds.is_debug(request.type_url):
                await write(await answer_debug(request))
            else:
                self.take(request)
            del request, data

    def take(self, request: Request) -> None:
        """Take one request; what it makes due is sent by `run`."""
        if request.type_url == kinds.HEALTH:
            if self._take_health is not None:
                self._take_health(request)
            return
        outcome = self._session.receive(request)
        if outcome is Outcome.UNSERVED:
            self._report_unserved(request.type_url)
            return
        if outcome is Outcome.REJECTED:
            self._report_rejection(request)
        elif outcome is Outcome.EXPIRED:
            metrics.EXPIRED_NONCES.labels(kinds.short_name(request.type_url)).inc()
        self._follow(request.type_url)
        if self._proxy.on_demand:
            for type_url in kinds.FOLLOWS:
                self._follow(type_url)
        if self._session.due or self._session.ready:
            self._send_soon()

    def _report_rejection(self, request: Request) -> None:
        error = request.rejection.code_name if request.rejection is not None else ""
        self._rejections.count(request.type_url, error)
        word = kinds.short_name(request.type_url).upper()
        _log.warning("ADS:%s: ACK ERROR %s %s", word, self._id, request.rejection)

    def _report_unserved(self, type_url: str) -> None:
        shown = type_url[:_UNSERVED_LENGTH]
        if shown not in self._unserved and len(self._unserved) < _UNSERVED:
            self._unserved |= {shown}
            _log.warning("ADS: %s asks for %s, which is not served here", self._id, shown)

    # -- roots ----------------------------------------------------------------------------------------------------

    def _follow(self, type_url: str) -> None:
        """Follow exactly the roots that the type's subscription asks for."""
        watch = self._session.watches.get(type_url)
        asks = watch.asks if watch is not None else ()
        before = self._followed.get(type_url, ((), ()))
        if asks == before[0]:
            return
        # New roots first: what old and new share must not be forgotten in between.
        roots = tuple(self._roots.follow(self, self._proxy, type_url, names) for names in asks)
        self._unfollow(before[1])
        if roots:
            self._followed[type_url] = (asks, roots)
        else:
            self._followed.pop(type_url, None)

    def _unfollow(self, roots: tuple[Followed, ...]) -> None:
        for followed in roots:
            self._roots.leave(self, followed)

    def leave(self) -> None:
        """Let go of everything; call it after the end."""
        self._watch_clusters(False)
        self._end_push()
        for _, roots in self._followed.values():
            self._unfollow(roots)
        self._followed.clear()
        # A stream that was cancelled is part of cycles, and outlives its end until those are looked for.
        self._session.close()

    async def _fetch(self) -> dict[str, ResourceSet]:
        """What the client should hold of every due type."""
        for attempt in range(_ATTEMPTS):
            await self._pace.turn()
            commit = self._roots.commits
            for followed in self.stale():
                followed.fetch()
                await self._pace.turn()
            watches = self._session.take_due()
            targets: dict[str, ResourceSet] = {}
            for watch in watches:
                target = self._target(watch)
                if target is not None:
                    targets[watch.type_url] = target
                await self._pace.turn()
            if commit == self._roots.commits or attempt == _ATTEMPTS - 1:
                break
            self._session.mark(watch.type_url for watch in watches)
        for watch in watches:
            if watch.type_url == SECRET and (secrets := targets.get(SECRET)) is not None:
                metrics.SECRET_ERRORS.inc(len(watch.names.difference(secrets.names)))
        return targets

    def _target(self, watch: Watch) -> ResourceSet | None:
        """None where nothing could be compiled yet."""
        _, roots = self._followed.get(watch.type_url, ((), ()))
        target = ResourceSet(watch.type_url, ())
        for position, followed in enumerate(roots):
            resources = followed.fetch()
            if resources is None:
                return None
            target = self._session.union(target, resources) if position else resources
        return target

    # -- responses ------------------------------------------------------------------------------------------------

    def _send_soon(self) -> None:
        if self._sender is None and self._write is not None:
            sending = self._send(self._write)
            self._sender = asyncio.get_running_loop().create_task(sending, name=self._id)

    async def _send(self, write: Write) -> None:
        try:
            while self._session.due or self._session.ready:
                async with self._throttle.place():
                    await self._send_due(write)
            self._pending = None
            self._watch_clusters(self._session.waiting)
        except Exception as error:
            self._failure = error
            self._stop_reading()
        finally:
            self._sender = None

    async def _send_due(self, write: Write) -> None:
        push, self._pending = self._pending, None
        if push is not None:
            self._unfinished = push.merge(self._unfinished)
            metrics.QUEUE_TIME.observe(time.monotonic() - push.since)
            for reason in push.reasons:
                metrics.TRIGGERS.labels(reason).inc()
        self._session.plan(await self._fetch())
        started = time.monotonic()
        while (response := self._session.next(time.time())) is not None:
            built = time.monotonic()
            await self._write_response(response, write)
            finished = time.monotonic()
            metrics.count_response(response.type_url, len(response.data), built - started, finished - built)
            started = finished
            if self._unfinished is not None and not response.first:
                self._spent += len(response.data)
                self._written = finished
        if self._unfinished is not None and not self._session.waiting:
            if self._spent:
                metrics.CONVERGENCE.observe(self._written - self._unfinished.since)
            self._end_push()

    def _end_push(self) -> None:
        """What has become due because of changes is written, or never will be."""
        push, self._unfinished = self._unfinished, None
        if push is not None and push.causes and self._spent:
            charge(push.causes, ProxyClass(self._proxy.kind, self._proxy.namespace), self._spent)
        self._spent = 0

    def _watch_clusters(self, waiting: bool) -> None:
        """Bound the wait for clusters."""
        if waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WARMING_PATIENCE, self._stop_waiting)
        elif not waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_waiting(self) -> None:
        """Go on, but for changes of clusters that may not be at work yet."""
        self._timer = None
        self._session.stop_waiting()
        if self._session.overtaking:
            self._timer = asyncio.get_running_loop().call_later(_OVERTAKING_PATIENCE, self._stop_holding)
        self._send_soon()

    def _stop_holding(self) -> None:
        self._timer = None
        self._session.stop_holding()
        self._send_soon()

    async def _write_response(self, response: Response, write: Write) -> None:
        try:
            await write(response.data)
        except Gone:
            metrics.count_send_error(response.type_url)
            raise
        if _log.isEnabledFor(10):
            word = kinds.short_name(response.type_url).upper()
            size = len(response.data)
            text = "%s: PUSH for node:%s resources:%d removed:%d size:%dB"
            _log.debug(text, word, self._id, response.resources, response.removed, size)
