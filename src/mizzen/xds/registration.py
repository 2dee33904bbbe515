"""Proxies that stand for a workload outside Kubernetes: who is told of them, and of how their workload is.

In: connections that are about to be served, have ended, or say how healthy their workload is. What is made of it (an
object in a cluster, nothing at all) is the registrar's matter, which the composition root brings.
"""

from typing import Protocol

import msgspec

from mizzen.xds.requests import Request
from mizzen.xds.status import Connection


class Health(msgspec.Struct, frozen=True):
    """How a workload is, as its agent has probed it."""

    healthy: bool
    message: str = ""
    """Why not."""


class Registrar(Protocol):
    """Hears of every proxy with a stream."""

    async def admit(self, connection: Connection) -> None:
        """A proxy wants to be served; raises Refused where it must not be."""
        ...

    def leave(self, connection: Connection) -> None:
        """A proxy that was to be admitted is gone, admitted or not."""
        ...

    def hear(self, connection: Connection, health: Health) -> None:
        """An admitted proxy says how its workload is."""
        ...


class NoRegistrar:
    """Nobody registers workloads."""

    async def admit(self, connection: Connection) -> None:
        """Everybody may come."""

    def leave(self, connection: Connection) -> None:
        """Nothing to do."""

    def hear(self, connection: Connection, health: Health) -> None:
        """Nothing to do."""


def read_health(request: Request) -> Health:
    """What a HealthInformation request says: an error is why the workload is not healthy."""
    rejection = request.rejection
    return Health(rejection is None, rejection.message if rejection is not None else "")
