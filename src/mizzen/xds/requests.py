"""Discovery requests, decoded from the wire into one form for both variants of the protocol.

In: bytes of a DiscoveryRequest or DeltaDiscoveryRequest. Out: `Request`, and the node where the message carries one.
What a request means is decided in `session`.
"""

import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from google.protobuf import json_format
from google.protobuf.message import DecodeError as WireError

from mizzen import protos
from mizzen.errors import DecodeError

_discovery_v3 = protos.package("envoy.service.discovery.v3")

_NAMES = (
    *("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists"),
    *("PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented"),
    *("Internal", "Unavailable", "DataLoss", "Unauthenticated"),
)
_CODES = dict(enumerate(_NAMES))
_MOST_TEXT = 8192
"""Letters of a rejection that are kept, logged and searched for names; Envoy itself says 4096 bytes at most."""

Names = frozenset[str]
NO_NAMES: Names = frozenset()


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """Why a client refused a response (its `error_detail`)."""

    code: int
    message: str

    @property
    def code_name(self) -> str:
        """The code's name in gRPC, which takes one that it does not know for Unknown."""
        return _CODES.get(self.code, "Unknown")

    def __str__(self) -> str:
        return f"{_CODES.get(self.code, self.code)}:{self.message}"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says about one type."""

    type_url: str
    nonce: str = ""
    """The response that is answered; empty for a request on the client's own account."""
    rejection: Rejection | None = None
    names: tuple[str, ...] = ()
    """State of the world: all names wanted. Delta: names added to the subscription."""
    unsubscribe: tuple[str, ...] = ()
    """Delta: names taken from the subscription."""
    initial_versions: Mapping[str, str] = {}
    """Delta, first request of a type on a stream: what the client still holds, name → version."""


class Received(NamedTuple):
    """A decoded message: the request, and the node (protobuf JSON) if it carried one."""

    request: Request
    node: dict[str, Any] | None


def decode_request(data: bytes, *, delta: bool) -> Received:
    """The request in a message's bytes; raises DecodeError where they are none."""
    message = _discovery_v3.DeltaDiscoveryRequest() if delta else _discovery_v3.DiscoveryRequest()
    try:
        message.ParseFromString(data)
    except WireError as broken:
        raise DecodeError(f"not a discovery request: {broken}") from broken
    detail = message.error_detail
    rejection = None
    if message.HasField("error_detail"):
        rejection = Rejection(code=detail.code, message=detail.message[:_MOST_TEXT])
    request = Request(
        type_url=sys.intern(message.type_url),
        nonce=message.response_nonce,
        rejection=rejection,
        names=tuple(message.resource_names_subscribe if delta else message.resource_names),
        unsubscribe=tuple(message.resource_names_unsubscribe) if delta else (),
        initial_versions=dict(message.initial_resource_versions) if delta else {},
    )
    return Received(request, _decode_node(message.node) if message.HasField("node") else None)


def _decode_node(node: Any) -> dict[str, Any]:
    """The node as JSON, without the hundreds of extensions that an Envoy lists."""
    node.ClearField("extensions")
    try:
        return protos.to_json(node)
    except (json_format.Error, ValueError, TypeError) as broken:
        raise DecodeError(f"the node has no JSON form: {broken}") from broken


class Versions:
    """What a client says it holds, name → version; those who say the same share one."""

    __slots__ = ("__weakref__", "digest", "of")

    def __init__(self, of: Mapping[str, str], digest: int) -> None:
        self.of = of
        self.digest = digest


_known_versions: weakref.WeakValueDictionary[int, Versions] = weakref.WeakValueDictionary()


def intern_versions(versions: Mapping[str, str]) -> Versions:
    """The one object for these versions: a crowd that comes back costs little, and is compared once."""
    # In no order; keyed by the process, so that nobody outside can make two alike.
    digest = hash(frozenset(versions.items()))
    found = _known_versions.get(digest)
    if found is None:
        found = _known_versions[digest] = Versions(versions, digest)
    return found


_interned: weakref.WeakKeyDictionary[Names, weakref.ref[Names]] = weakref.WeakKeyDictionary()


def intern_names(names: Iterable[str]) -> Names:
    """The one frozenset of these names: proxies that subscribe to the same share it."""
    wanted = frozenset(names)
    if not wanted:
        return NO_NAMES
    known = _interned.get(wanted)
    found = known() if known is not None else None
    if found is None:
        _interned[wanted] = weakref.ref(wanted)
        return wanted
    return found
