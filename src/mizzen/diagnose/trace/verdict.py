"""What a trace comes to: steps, the answer, and the verdict made of both.

In: nothing of its own. Out: the frozen values that the walk fills: `Step` (one decision with the values that decided
it), `Answer` (what came back, by whom, and which link broke), `Cause` (the object at fault) and `Trace`. `to_json` is
the contract of `mizzen trace -o json`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Outcome = Literal[
    "delivered",
    "denied",
    "failed",
    "redirected",
    "responded",
    "aborted",
    "limited",
]
"""`responded` is a direct response of a proxy, `limited` a rate limit; `delivered` reached the program."""
Link = Literal[
    "",
    "name",
    "capture",
    "listener",
    "filter_chain",
    "filter",
    "jwt",
    "policy",
    "route",
    "cluster",
    "endpoint",
    "connection",
    "tls",
    "secret",
    "application",
]
Kind = Literal["response", "refused", "timeout", "closed", "tls"]
State = Literal["ok", "fails", "unsure"]

NO_FLAG = "-"
_FIRST_FLAGS = ("URX", "DI", "FI")


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """An object, and where it stands in files; line 0 where only the file is known."""

    kind: str
    namespace: str = ""
    name: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        who = f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"
        place = f" ({self.file}:{self.line})" if self.file and self.line else f" ({self.file})" if self.file else ""
        return who + place


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One decision on the way."""

    side: str
    """The proxy that decides, as `POD.NAMESPACE`; `network` between them."""
    link: Link
    title: str
    state: State = "ok"
    facts: tuple[tuple[str, str], ...] = ()
    """The values that decided."""
    passed_over: tuple[str, ...] = ()
    """What came before in order and did not match, and why."""
    object: Cause | None = None
    """The object that made what was chosen."""


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """Where a connection was taken: by a filter chain of a proxy, or by the program of a pod."""

    side: str
    """The pod, as `NAME.NAMESPACE`."""
    listener: str = ""
    """Empty for a program."""
    chain: Any = None
    """The filter chain as protobuf JSON."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What comes back to whoever called: an HTTP response, or the way in which the connection failed."""

    kind: Kind = "response"
    outcome: Outcome = "failed"
    status: int = 0
    flag: str = NO_FLAG
    details: str = ""
    side: str = ""
    """Who answers."""
    link: Link = ""
    """The link that breaks; empty where none does."""
    reason: str = ""
    """In words."""
    transport: str = ""
    """The transport failure reason, for connections that failed in TLS or before."""
    cause: Cause | None = None
    destination: str = ""
    """The pod that was reached, `NAME.NAMESPACE`, or an address."""
    about: tuple[str, ...] = ()
    """What the causes are looked for by: the cluster, the host, the policy."""
    via: str = NO_FLAG
    """The flags of the proxy that passes on what another answers."""
    after: float = 0.0
    """Seconds until it came."""
    connected: bool = True
    """Of a connection that failed: whether it had been established."""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two answers the same for whoever asks."""
        return (self.outcome, self.status, self.flag, self.details, self.link)


def join_flags(*flags: str) -> str:
    """All these flags, some of which may be several, in the order in which Envoy of this time writes them."""
    found = {flag for text in flags for flag in text.split(",") if flag not in ("", NO_FLAG)}
    order = {flag: place for place, flag in enumerate(_FIRST_FLAGS)}
    return ",".join(sorted(found, key=lambda flag: (order.get(flag, len(order)), flag))) or NO_FLAG


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """Something of a proxy's configuration that the request came by: a route, a cluster, a rule that decided."""

    side: str
    kind: Literal["route", "cluster", "rule"]
    name: str
    """Its name in the configuration; empty for a route that has none."""
    resource: Mapping[str, Any] = {}
    """Of a route, the route itself."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, and how it was reached."""

    steps: tuple[Step, ...]
    outcome: Outcome
    status: int
    flag: str
    details: str
    certain: bool
    depends_on: tuple[str, ...] = ()
    link: Link = ""
    cause: Cause | None = None
    fix: str = ""
    side: str = ""
    """The proxy or program that answers."""
    reason: str = ""
    destination: str = ""
    seen_by_client: tuple[int, str, str] = (0, NO_FLAG, "")
    """Status, flag and details in the access log of the first proxy, which may hear the answer from the second."""
    shares: tuple[tuple[str, int], ...] = ()
    """Clusters by weight, where a route splits."""
    message: Any = None
    """The `request.Message` that arrives at the end, or None for other protocols."""
    policy: str = ""
    """The authorization rule that decided, as Envoy names it."""
    divides: bool = False
    """Whether a choice that is left open leads to another outcome than this, which is the likeliest."""
    visits: tuple[Visit, ...] = ()
    """In the order of the way."""
    response: tuple[tuple[str, str | None], ...] = ()
    """Headers that proxies set on the response; None for those that they remove."""
    ways: tuple[tuple[Passage, ...], ...] = ()
    """What a connection passes: one way for each choice that is left open, as that of an endpoint."""


def to_json(trace: Trace) -> dict[str, Any]:
    """The verdict as `mizzen trace -o json` prints it."""
    plain = msgspec.to_builtins(msgspec.structs.replace(trace, message=None, ways=(), visits=()))
    names = ("steps", "outcome", "status", "flag", "details", "certain", "depends_on", "link", "cause", "fix")
    document = {name: plain[name] for name in names}
    for step in document["steps"]:
        step["facts"] = [list(pair) for pair in step["facts"]]
    return document
