"""What a leader asks of the API server: so many requests a second, and no writes once another may lead.

In: a client, and whether this process leads. Out: answers; none for what was not written any more. Who writes stands
beside every field that it writes, under the name of a manager; so each writer has one of its own.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping

from mizzen.control.retries import Budget
from mizzen.sources.kube.client import APPLY_PATCH, MERGE_PATCH, Client, Page


class LeaderRequests:
    """Requests of one term."""

    def __init__(self, client: Client, leads: Callable[[], bool]) -> None:
        self._client, self._leads = client, leads
        self._budget = Budget()

    async def get(self, path: str) -> bytes:
        """The body at a path."""
        await self._budget.spend()
        return await self._client.get(path)

    async def list_pages(self, path: str, query: Mapping[str, str]) -> AsyncGenerator[Page, None]:
        """A list in pages, as one request."""
        await self._budget.spend()
        async with contextlib.aclosing(self._client.list_pages(path, query)) as pages:
            async for page in pages:
                yield page

    async def write(
        self, method: str, path: str, body: object, *, manager: str, content_type: str = MERGE_PATCH
    ) -> bytes | None:
        """The answer's body; None where nothing was written, since somebody else may lead by now."""
        await self._budget.spend()
        if not self._leads():
            return None
        query = {"fieldManager": manager, **({"force": "true"} if content_type == APPLY_PATCH else {})}
        return await self._client.call(method, path, body, query=query, content_type=content_type)
