"""What a route tells HTTP filters: faults and cross-origin sharing.

Golden cases: networking/vs-faults, networking/vs-mirrors-cors-headers, gateway/cors-and-ratelimit.
"""

from typing import Any

from mizzen import protos
from mizzen.api.networking.destination import Percent
from mizzen.api.networking.virtual_service import CorsPolicy, HTTPFaultInjection, StringMatch
from mizzen.compile.values import duration, wrapped

_fault_v3 = protos.package("envoy.extensions.filters.http.fault.v3")
_cors_v3 = protos.package("envoy.extensions.filters.http.cors.v3")

FAULT = "envoy.filters.http.fault"
CORS = "envoy.filters.http.cors"

_GRPC_STATUS = {
    name: number
    for number, name in enumerate(
        (
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        )
    )
}


def fraction(percentage: Percent | None, whole: int = 100) -> dict[str, Any]:
    """A FractionalPercent in millionths, or `whole` hundredths where no percentage is given."""
    if percentage is None:
        return {"numerator": whole} if whole else {}
    return {"numerator": int(percentage.value * 10_000), "denominator": "MILLION"}


def build_fault(fault: HTTPFaultInjection) -> Any:
    """Delays and aborts; a fault that says neither is there and does nothing."""
    fields: dict[str, Any] = {}
    delay, abort = fault.delay, fault.abort
    if delay is not None and delay.fixed_delay is not None:
        fields["delay"] = {
            "fixed_delay": duration(delay.fixed_delay),
            "percentage": fraction(delay.percentage, delay.percent),
        }
    if abort is not None:
        aborts: dict[str, Any] = {}
        if abort.grpc_status is not None:
            number = grpc_status(abort.grpc_status)
            if number is not None:
                aborts["grpc_status"] = number
        elif abort.http_status is not None:
            aborts["http_status"] = abort.http_status
        if abort.percentage is not None:
            aborts["percentage"] = fraction(abort.percentage)
        if "grpc_status" in aborts or "http_status" in aborts:
            fields["abort"] = aborts
    return protos.pack(_fault_v3.HTTPFault(**fields))


def grpc_status(text: str) -> int | None:
    """A gRPC status by name or number."""
    if text.isdigit():
        return int(text)
    return _GRPC_STATUS.get(text.upper())


def build_cors(policy: CorsPolicy) -> Any:
    """Cross-origin sharing of a route."""
    origins = [m for origin in policy.allow_origins if (m := _origin(origin)) is not None]
    origins += [{"exact": origin} for origin in policy.allow_origin if not policy.allow_origins]
    fields: dict[str, Any] = {
        "allow_origin_string_match": origins,
        "allow_methods": ",".join(policy.allow_methods),
        "allow_headers": ",".join(policy.allow_headers),
        "expose_headers": ",".join(policy.expose_headers),
        "filter_enabled": {"default_value": {"numerator": 100}},
        "forward_not_matching_preflights": wrapped(policy.unmatched_preflights != "IGNORE"),
    }
    if policy.max_age is not None:
        fields["max_age"] = str(policy.max_age // 1_000_000_000)
    if policy.allow_credentials is not None:
        fields["allow_credentials"] = wrapped(policy.allow_credentials)
    return protos.pack(_cors_v3.CorsPolicy(**fields))


def _origin(origin: StringMatch) -> dict[str, Any] | None:
    if origin.exact is not None:
        return {"exact": origin.exact}
    if origin.prefix is not None:
        return {"prefix": origin.prefix}
    if origin.regex is not None:
        return {"safe_regex": {"regex": origin.regex}}
    return None
