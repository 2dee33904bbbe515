"""The console over ADS: what `istioctl proxy-status` and `istioctl x internal-debug` ask.

In: requests of the debug types and the identities behind them. Out: documents for `xds.debugging`. `istio.io/debug`
gives the bytes of one page; `…/syncz` a `ClientConfig` for each proxy, and who answers; `…/config_dump` the sections of
one proxy's dump. Callers outside the system namespace are told about proxies of their own namespace.
"""

import asyncio
import json
import urllib.parse
from collections.abc import Mapping, Sequence

from mizzen import protos
from mizzen.control.debug import clients, dumps
from mizzen.control.debug.access import Access, Denied
from mizzen.control.debug.console import Console, Query
from mizzen.model.spiffe import Identity
from mizzen.xds import kinds
from mizzen.xds.debugging import Document
from mizzen.xds.identity import Refused
from mizzen.xds.requests import Request
from mizzen.xds.status import Connections

SYNCZ = f"{kinds.DEBUG}/syncz"
CONFIG_DUMP = f"{kinds.DEBUG}/config_dump"

_UNAUTHENTICATED = "authentication required"


class DebugStreams:
    """Answers the debug types."""

    def __init__(
        self, console: Console, connections: Connections, access: Access, identifier: Mapping[str, object]
    ) -> None:
        """`identifier` says who answers, under istiod's keys."""
        self._console = console
        self._connections = connections
        self._access = access
        self._identifier = json.dumps(identifier, separators=(",", ":"))

    async def answer(self, request: Request, identities: Sequence[Identity]) -> Document:
        """The document asked for; raises Refused."""
        if request.type_url == kinds.DEBUG:
            return await self._page(request, identities)
        limit = self._access.limit(identities)
        if limit is None:
            raise Refused("UNAUTHENTICATED", _UNAUTHENTICATED)
        if request.type_url == SYNCZ:
            return self._syncz(limit)
        if request.type_url == CONFIG_DUMP:
            return await self._config_dump(request, limit)
        raise Refused("INVALID_ARGUMENT", f"{request.type_url} is no debug type that is served here")

    async def _page(self, request: Request, identities: Sequence[Identity]) -> Document:
        if not identities:
            raise Refused("UNAUTHENTICATED", _UNAUTHENTICATED)
        if len(request.names) != 1:
            raise Refused("INVALID_ARGUMENT", "exactly one debug request is required")
        (name,) = request.names
        path, _, parameters = name.partition("?")
        try:
            limit = self._access.limit_on(path, identities)
        except Denied:
            text = f'the debug info is not available for current identity: "{identities[0]}"'
            raise Refused("PERMISSION_DENIED", text) from None
        read = dict(urllib.parse.parse_qsl(parameters, keep_blank_values=True))
        answer = await self._console.ask(Query(page=path, parameters=read, namespace=limit))
        packed = protos.message_class("google.protobuf.Any")(type_url=kinds.DEBUG, value=answer.body)
        return Document(resources=((name, protos.encode(packed)),))

    def _syncz(self, limit: str) -> Document:
        shown = filter(clients.is_agent, clients.in_namespace(self._connections, limit))
        configs = map(clients.client_config, shown)
        resources = tuple((config.node.id, protos.encode(protos.pack(config))) for config in configs)
        return Document(resources=resources, identifier=self._identifier)

    async def _config_dump(self, request: Request, limit: str) -> Document:
        found = None
        if len(request.names) == 1:
            found = clients.find_part(self._connections, request.names[0], limit)
        if found is None:
            return Document(resources=())
        sections = await asyncio.to_thread(dumps.packed_sections, dumps.sent_to(found))
        return Document(resources=tuple((request.names[0], section) for section in sections))
