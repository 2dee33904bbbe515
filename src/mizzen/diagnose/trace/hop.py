"""One proxy on the way of a request: what its decisions are made from, and how they are written down.

In: the world, the pod, the connection as it arrived. Out: `Hop`, handed from the listener to the cluster. `arrive`
leads on to the next hop; it is a field so that the modules below do not know the walk above.
"""

from collections.abc import Callable

import msgspec

from mizzen.diagnose.trace.journal import Journal
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import Answer, Link
from mizzen.diagnose.trace.wire import Peer, Wire
from mizzen.diagnose.trace.world import Holdings, Workload, World


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy, and the connection that it serves."""

    world: World
    request: Request
    pod: Workload
    held: Holdings
    journal: Journal
    wire: Wire
    arrive: Callable[[Wire, Journal], Answer]
    peer: Peer = Peer()
    is_inbound: bool = False
    """Whether what leaves goes to the pod's own program."""

    @property
    def side(self) -> str:
        """The proxy as steps name it."""
        return self.pod.reference

    def with_journal(self, journal: Journal) -> "Hop":
        """The same hop on one of several ways on."""
        return msgspec.structs.replace(self, journal=journal)

    def closed(self, link: Link, reason: str, *, flag: str, details: str, about: tuple[str, ...] = ()) -> Answer:
        """The proxy closes the connection: as its own log has it."""
        return Answer(kind="closed", flag=flag, details=details, side=self.side, link=link, reason=reason, about=about)
