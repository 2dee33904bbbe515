"""How long a request may take: the timeout of a route, and the deadline that a gRPC call brings along.

Istio's proxies are told both in the way of the reference: gRPC calls wait as long as `grpc-timeout` says, but no longer
than the route's timeout. Upstream Envoy warns of that field on every route and has one successor, which switches the
route's timeout off. So it stands where there is no timeout to lose: there a call's own deadline counts. Where a timeout
is set it holds for every request, and a shorter deadline is kept by the caller and by the called, which both know it.
"""

from typing import Any

from mizzen.compile.filters.dialect import Dialect


def build_timeouts(timeout: dict[str, int], dialect: Dialect) -> dict[str, Any]:
    """Fields of a RouteAction; an empty duration means no limit."""
    if dialect == "istio":
        return {"timeout": timeout, "max_grpc_timeout": timeout}
    if timeout:
        return {"timeout": timeout}
    return {"timeout": timeout, "max_stream_duration": {"grpc_timeout_header_max": {}}}


def to_istio(action: Any) -> None:
    """Give the timeouts of a RouteAction for upstream Envoy, in place, the fields that Istio's proxies know."""
    only_deadline = type(action)(max_stream_duration={"grpc_timeout_header_max": {}}).max_stream_duration
    if action.HasField("max_stream_duration") and action.max_stream_duration == only_deadline:
        action.ClearField("max_stream_duration")
        action.max_grpc_timeout.SetInParent()


def to_upstream(action: Any) -> None:
    """Give the timeouts of a RouteAction with Istio's fields, in place, the form of `build_timeouts`."""
    if not action.HasField("max_grpc_timeout"):
        return
    if _is_zero(action, "timeout") and not action.HasField("max_stream_duration"):
        action.max_stream_duration.grpc_timeout_header_max.CopyFrom(action.max_grpc_timeout)
    action.ClearField("max_grpc_timeout")


def _is_zero(action: Any, name: str) -> bool:
    value = getattr(action, name)
    return bool(action.HasField(name)) and not value.seconds and not value.nanos
