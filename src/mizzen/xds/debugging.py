"""Debug types over ADS: who may ask is told the control plane's own state on the stream that asks.

In: a request whose type is a debug type, and the identities that the caller has proved. Out: one response, at once. It
belongs to no subscription: no watch begins, and no nonce of one changes. What the answers hold is the knowledge of
whoever implements `Console`; here they become messages of either variant of the protocol.
"""

import datetime
from collections.abc import Sequence
from typing import Protocol

import msgspec

from mizzen import protos
from mizzen.model.spiffe import Identity
from mizzen.xds.identity import Refused
from mizzen.xds.requests import Request

_discovery_v3 = protos.package("envoy.service.discovery.v3")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one debug request."""

    resources: tuple[tuple[str, bytes], ...]
    """Names and encoded `google.protobuf.Any`s; only the delta variant tells the names."""
    identifier: str = ""
    """Who answers, where the type tells it (the response's `control_plane.identifier`)."""


class Console(Protocol):
    """Whoever knows the control plane's state."""

    async def answer(self, request: Request, identities: Sequence[Identity]) -> Document:
        """The document asked for; raises Refused for who may not see it."""
        ...


class NoConsole:
    """Refuses everybody: for servers without a control plane around them."""

    async def answer(self, request: Request, identities: Sequence[Identity]) -> Document:
        """Never an answer."""
        del identities
        raise Refused("PERMISSION_DENIED", f"{request.type_url} is not served here")


class DebugAnswers:
    """The answers of one stream."""

    def __init__(self, console: Console, identities: Sequence[Identity], *, delta: bool) -> None:
        self._console = console
        self._identities = identities
        self._delta = delta
        self._count = 0

    async def answer(self, request: Request) -> bytes:
        """The whole response to a request of a debug type; raises Refused."""
        document = await self._console.answer(request, self._identities)
        self._count += 1
        version = f"{datetime.datetime.now(datetime.UTC).isoformat().removesuffix('+00:00')}Z/{self._count}"
        return _encode(document, request.type_url, version, delta=self._delta)


def _encode(document: Document, type_url: str, version: str, *, delta: bool) -> bytes:
    response = _discovery_v3.DeltaDiscoveryResponse() if delta else _discovery_v3.DiscoveryResponse()
    response.type_url = type_url
    response.nonce = f"debug/{version}"
    if delta:
        response.system_version_info = version
        for name, data in document.resources:
            resource = response.resources.add(name=name, version=version)
            resource.resource.ParseFromString(data)
    else:
        response.version_info = version
        for _, data in document.resources:
            response.resources.add().ParseFromString(data)
    if document.identifier:
        response.control_plane.identifier = document.identifier
    return protos.encode(response)
