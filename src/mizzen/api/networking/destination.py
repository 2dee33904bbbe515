"""Where traffic goes: a host of the registry, a subset of its endpoints and one of its ports."""

from mizzen.api.message import ProtoMessage
from mizzen.api.scalars import UInt32


class PortSelector(ProtoMessage, frozen=True, kw_only=True):
    """A port by its number."""

    number: UInt32 = 0


class Destination(ProtoMessage, frozen=True, kw_only=True):
    """A host as written (short names are completed by the model), its subset and port."""

    host: str = ""
    subset: str = ""
    port: PortSelector | None = None


class Percent(ProtoMessage, frozen=True, kw_only=True):
    """A share of requests, 0.0 to 100.0."""

    value: float = 0.0
