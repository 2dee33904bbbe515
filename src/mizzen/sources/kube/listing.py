"""Everything that an API server has of some kinds, once, as plain documents.

For who reads a cluster without following it, and needs more of an object than a mesh acts on: its status, and kinds
that only analysis reads. What may not be listed is told, and the rest is read.
"""

import contextlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from mizzen.api.kinds import KINDS, Kind
from mizzen.errors import SourceError
from mizzen.sources.kube.access import Access
from mizzen.sources.kube.client import Client, Refused
from mizzen.sources.kube.served import Resource, find_served


class Extra(NamedTuple):
    """A kind that has no Struct in `api`."""

    api_version: str
    kind: str
    plural: str

    @property
    def path(self) -> str:
        return f"/apis/{self.api_version}/{self.plural}"


class Listing(NamedTuple):
    """What was read."""

    documents: list[dict[str, Any]]
    refused: list[str]
    """What may not be listed, and why."""


async def list_documents(access: Access, kinds: Iterable[Kind] = KINDS, extras: Iterable[Extra] = ()) -> Listing:
    """The objects in order of kinds. Raises SourceError when the server cannot be asked."""
    listing = Listing([], [])
    async with Client(access) as client:
        served = await find_served(client, kinds)
        for resource in served.values():
            await _list(client, resource.path, resource.query, _heads(resource), listing)
        for extra in extras:
            heads = {"apiVersion": extra.api_version, "kind": extra.kind}
            await _list(client, extra.path, {}, heads, listing)
    return listing


def _heads(resource: Resource) -> dict[str, str]:
    group = resource.kind.group
    version = f"{group}/{resource.version}" if group else resource.version
    return {"apiVersion": version, "kind": resource.kind.kind}


async def _list(client: Client, path: str, query: Any, heads: dict[str, str], listing: Listing) -> None:
    try:
        async with contextlib.aclosing(client.list_pages(path, query)) as pages:
            async for page in pages:
                for raw in page.items:
                    try:
                        listing.documents.append({**msgspec.json.decode(raw), **heads})
                    except (msgspec.DecodeError, TypeError) as error:
                        raise SourceError(f"{path}: an item is no object") from error
    except Refused as refusal:
        if refusal.status == 403:
            listing.refused.append(f"{path}: {refusal}")
        elif refusal.status != 404:
            raise
