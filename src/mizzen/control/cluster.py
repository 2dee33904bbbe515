"""What a control plane has of the Kubernetes cluster whose objects it serves.

In: an `Access`. Out: one client, and over it the objects, the verdicts on tokens, and whoever writes to it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from mizzen.control.token_reviews import TokenReviews
from mizzen.sources.batches import Batch
from mizzen.sources.kube.access import Access
from mizzen.sources.kube.client import Client
from mizzen.sources.kube.source import KubeSource


class Cluster:
    """One cluster; somebody runs it."""

    def __init__(self, access: Access, audiences: Sequence[str], clock: Callable[[], float]) -> None:
        self.client = Client(access)
        self.source = KubeSource(self.client)
        self.token_reviews = TokenReviews(self.client, audiences, clock)
        self.writers: list[Callable[[], Coroutine[None, None, None]]] = []
        """What runs while the client is open, and has its last word before it is closed."""

    async def run(self, take: Callable[[Batch], None]) -> None:
        """Follow the objects; ends only when cancelled."""
        async with self.client, asyncio.TaskGroup() as tasks:
            for write in self.writers:
                tasks.create_task(write())
            await self.source.run(take)
