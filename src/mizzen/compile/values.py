"""Small protobuf values from plain ones, in the dict form that message constructors take."""

from typing import Any

from mizzen.api.scalars import Duration

MAX_UINT32 = 4294967295

ADS_SOURCE: dict[str, Any] = {"ads": {}, "initial_fetch_timeout": {}, "resource_api_version": "V3"}
"""Resources over the aggregated stream, waited for without a limit."""


def duration(value: Duration) -> dict[str, int]:
    """A `google.protobuf.Duration`; zero is present and empty."""
    seconds, nanos = divmod(value, 1_000_000_000)
    return {key: n for key, n in (("seconds", seconds), ("nanos", nanos)) if n}


def wrapped(value: float | bool) -> dict[str, Any]:
    """A wrapper message (`UInt32Value`, `BoolValue`, …), present even for zero."""
    return {"value": value} if value else {}


def percent(value: float) -> dict[str, float]:
    """An `envoy.type.v3.Percent`."""
    return {"value": value} if value else {}


def socket_address(address: str, port: int) -> dict[str, Any]:
    """A TCP address; the port is there even when it is 0."""
    return {"socket_address": {"address": address, "port_value": port}}
