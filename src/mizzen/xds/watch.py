"""One type on one stream: what the client subscribed to, what it was told, what it accepted.

Holds references to shared sets, never copies. The rules of ACK and NACK live here; how a subscription is read from a
request and how a response is built differ between the two variants of the protocol and live in `session`.
"""

import enum
import re
from typing import NamedTuple

from mizzen.compile.resource import ResourceSet
from mizzen.xds.requests import NO_NAMES, Names, Rejection, Versions
from mizzen.xds.responses import Difference

_CULPRITS_SHOWN = 10
_MOST_IN_FLIGHT = 16
"""A client that answers nothing must not make us remember more."""
_NOT_BEFORE, _NOT_AFTER = r"(?<![\w|/.-])", r"(?![\w|/-]|\.\w)"
"""What may not stand beside a resource's name in a text, for then it is another, longer name."""

Asks = tuple[Names | None, ...]
"""The questions to the generator whose answers, put together, the client should hold; None asks for everything."""


class State(enum.Enum):
    """Whether a client holds what it should, by the reference's rules; the value is what istioctl prints."""

    SYNCED = "SYNCED"
    NOT_SENT = "NOT SENT"
    STALE = "STALE"
    ERROR = "ERROR"


class Sent(NamedTuple):
    """A response that the client has not answered yet."""

    nonce: str
    resources: ResourceSet
    difference: Difference
    before: Names = NO_NAMES
    """Names of responses before it that were left unanswered for too long to be kept apart."""

    @property
    def touched(self) -> Names:
        """The names that the client has not got if it rejects this."""
        return self.difference.touched | self.before if self.before else self.difference.touched


class Watch:
    """The state of one type on one stream."""

    __slots__ = (
        "accepted",
        "acked_nonce",
        "asked",
        "confirmed",
        "culprits",
        "follows",
        "held",
        "in_flight",
        "must_answer",
        "named",
        "names",
        "nonce",
        "owed",
        "rejection",
        "sent",
        "sent_at",
        "type_url",
        "whole",
        "wildcard",
    )

    def __init__(self, type_url: str, *, wildcard: bool, names: Names, whole: bool = False) -> None:
        self.type_url = type_url
        self.whole = whole
        """Whether every response holds all that the client should hold, so that nothing is ever owed."""
        self.wildcard = wildcard
        self.names = names
        """Names subscribed to one by one."""
        self.follows: Names | None = None
        """On demand: names of another kind from which it follows what everything is."""
        self.named = bool(names)
        """Whether the client ever used names; an empty list means everything only as long as it did not."""
        self.sent: ResourceSet | None = None
        """What the client holds if it accepts all that is in flight."""
        self.accepted: ResourceSet | None = None
        self.in_flight: tuple[Sent, ...] = ()
        self.asked: Names = NO_NAMES
        """Names to speak of in the next response, which is due because of them."""
        self.owed: Names = NO_NAMES
        """Names whose delivery failed: the next response, due for whatever reason, speaks of them again."""
        self.held: Versions | None = None
        """What a reconnected client said it holds, until the first comparison."""
        self.must_answer = False
        """Whether a response is due even if it says nothing."""
        self.confirmed = False
        """Whether a reconnected client was found to hold everything, so that nothing had to be sent."""
        self.nonce = ""
        self.acked_nonce = ""
        self.rejection: Rejection | None = None
        self.culprits: tuple[str, ...] = ()
        """Resources of the rejected response that the rejection's text names."""
        self.sent_at = 0.0
        """Clock time of the last response; 0 before the first."""

    @property
    def asks(self) -> Asks:
        """What to ask the generator for this subscription."""
        if self.follows is not None:
            return (self.names | self.follows,)
        if self.wildcard:
            return (None, self.names) if self.names else (None,)
        return (self.names,) if self.names else ()

    @property
    def state(self) -> State:
        """As proxy-status shows it. ERROR stays until an ACK and wins over STALE, as in the reference."""
        if self.rejection is not None:
            return State.ERROR
        if not self.nonce:
            return State.SYNCED if self.confirmed else State.NOT_SENT
        return State.STALE if self.in_flight else State.SYNCED

    def record(self, sent: Sent, now: float) -> None:
        """A response was handed to the transport."""
        self.sent = sent.resources
        self.nonce = sent.nonce
        self.in_flight = (*self.in_flight, sent)
        if len(self.in_flight) > _MOST_IN_FLIGHT:
            first, second, *rest = self.in_flight
            self.in_flight = (second._replace(before=first.touched | second.before), *rest)
        self.sent_at = now
        self.must_answer = False

    def settle(self, target: ResourceSet) -> None:
        """The client needs no response to hold `target`."""
        if self.held:
            self.confirmed = True
        self.held = None
        self.sent = target
        if self.owed and not self.in_flight:
            # What was rejected is wanted no more, or there no more.
            self.rejection, self.culprits = None, ()
        self.asked = self.owed = NO_NAMES
        if not self.in_flight and self.rejection is None and (self.nonce or self.confirmed):
            self.accepted = target

    def acknowledge(self, nonce: str) -> bool:
        """An ACK; it stands for all earlier responses too, as clients may merge them. False for an unknown nonce."""
        position = self._position(nonce)
        if position is None:
            return False
        answered = self.in_flight[position]
        self.accepted = answered.resources
        self.in_flight = self.in_flight[position + 1 :]
        self.acked_nonce = answered.nonce
        if not self.in_flight and not self.owed:
            self.rejection, self.culprits = None, ()
        return True

    def reject(self, nonce: str, rejection: Rejection) -> bool:
        """A NACK: the response counts as undelivered as a whole, its good resources included.

        The same content is not sent again by itself. True when a later response has already replaced part of it: then
        the rest is worth another try at once.
        """
        self.rejection, self.culprits = rejection, ()
        position = self._position(nonce)
        if position is None:
            return False
        touched = self.in_flight[position].touched
        self.in_flight = self.in_flight[position + 1 :]
        self.culprits = _named_in(rejection.message, touched)
        if self.whole:
            return False
        undelivered = touched.difference(*(later.touched for later in self.in_flight))
        self.owed = self.owed | undelivered if self.owed else undelivered
        if undelivered and len(undelivered) < len(touched):
            self.asked = self.asked | undelivered
            return True
        return False

    def ask_for_everything(self) -> None:
        """Everything is wanted, and what was told before is wanted again: the client may have dropped it."""
        self.wildcard = True
        self.must_answer = True
        self.asked = self.asked.union(
            self.sent.names if self.sent is not None else (), self.held.of if self.held else ()
        )

    def ask_again(self) -> None:
        """What is subscribed to is wanted again, whatever was sent before."""
        self.must_answer = True
        self.asked = self.asked.union(self.names, self.sent.names if self.sent is not None else ())

    def forget_names(self, names: Names) -> None:
        """Names that the client no longer wants are owed to it no longer; nor is it wrong when no others were."""
        self.asked = self.asked - names
        if self.owed & names:
            self.owed = self.owed - names
            if not self.owed and not self.in_flight:
                self.rejection, self.culprits = None, ()

    def _position(self, nonce: str) -> int | None:
        return next((i for i, sent in enumerate(self.in_flight) if sent.nonce == nonce), None)


def _named_in(text: str, names: Names) -> tuple[str, ...]:
    found = (n for n in names if n and n in text and re.search(_NOT_BEFORE + re.escape(n) + _NOT_AFTER, text))
    return tuple(sorted(found)[:_CULPRITS_SHOWN])
