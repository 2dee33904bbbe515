"""The ServiceEntries of all revisions, for the one leader that the cluster has for their virtual addresses.

In: a client, the selectors of namespaces that are in force. Out: a source and an engine of their own, since the control
plane takes the entries of its own revision alone, and an address that another revision's entry has must be given to
nobody else.
"""

import asyncio
from collections.abc import Callable, Sequence

from mizzen.api.kinds import kind_named
from mizzen.api.selectors import Selector
from mizzen.incremental import Engine
from mizzen.sources.batches import Batch
from mizzen.sources.kube.client import Client
from mizzen.sources.kube.source import KubeSource

_KINDS = (kind_named("Namespace"), kind_named("ServiceEntry"))
_EVERY = 0.5


class AllEntries:
    """Those of the selected namespaces; somebody runs it."""

    def __init__(self, client: Client, selectors: Callable[[], Sequence[Selector]]) -> None:
        self._selectors = selectors
        self.source = KubeSource(client, kinds=_KINDS, is_measured=False)
        self.db = Engine()
        self._select()

    async def run(self) -> None:
        """Ends only when cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.source.run(self._take))
            while True:
                await asyncio.sleep(_EVERY)
                self._select()

    def _select(self) -> None:
        self.source.select(selectors=self._selectors())

    def _take(self, batch: Batch) -> None:
        for key, value in batch.sets.items():
            self.db.set(key, value)
        for key in batch.removes:
            self.db.remove(key)
