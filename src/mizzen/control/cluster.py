"""What a control plane has of the Kubernetes cluster whose objects it serves.

In: an `Access`, settings. Out: one client, and over it the objects, what they say about injection, the verdicts on
tokens, and whoever writes to it.
"""

import asyncio
from collections.abc import Callable, Coroutine

from mizzen import settings
from mizzen.control.options import Options
from mizzen.control.token_reviews import TokenReviews
from mizzen.control.webhooks.installation import follow_installation
from mizzen.sources.batches import Batch
from mizzen.sources.kube.access import Access
from mizzen.sources.kube.client import Client
from mizzen.sources.kube.source import KubeSource


class Cluster:
    """One cluster; somebody runs it."""

    def __init__(self, access: Access, options: Options, config: settings.Settings, clock: Callable[[], float]) -> None:
        self.client = Client(access)
        self.source = KubeSource(self.client)
        self.installation = follow_installation(self.source, options, config)
        self.token_reviews = TokenReviews(self.client, config.authority.audiences, clock)
        self.writers: list[Callable[[], Coroutine[None, None, None]]] = []
        """What runs while the client is open, and has its last word before it is closed."""

    async def run(self, take: Callable[[Batch], None]) -> None:
        """Follow the objects; ends only when cancelled."""
        async with self.client, asyncio.TaskGroup() as tasks:
            for write in self.writers:
                tasks.create_task(write())
            await self.source.run(take)
