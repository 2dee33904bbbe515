"""Injection: the faults that a route makes on purpose."""

from mizzen.api.message import names
from mizzen.api.networking.virtual_service import Abort, Delay, HTTPFaultInjection
from mizzen.api.validate.faults import Faults, at, error, quote, warning
from mizzen.api.validate.values.numbers import duration_fault, fraction_fault, percent_fault
from mizzen.api.validate.virtual_service.actions import status_fault

_GRPC_STATUSES = names(
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "UNAUTHENTICATED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE "
    "DATA_LOSS"
)
_GRPC_LIST = "https://github.com/grpc/grpc/blob/master/doc/statuscodes.md"


def check_injection(injection: HTTPFaultInjection, path: str) -> Faults:
    """Delays and aborts, one of which has to be there."""
    if injection.abort is None and injection.delay is None:
        yield error(path, "HTTP fault injection must have an abort and/or a delay")
    if injection.abort is not None:
        yield from _check_abort(injection.abort, f"{path}.abort")
    if injection.delay is not None:
        yield from _check_delay(injection.delay, f"{path}.delay")


def _check_abort(abort: Abort, path: str) -> Faults:
    yield from at(f"{path}.percentage", fraction_fault(abort.percentage))
    if abort.grpc_status is not None:
        if abort.grpc_status not in _GRPC_STATUSES:
            message = (
                f"gRPC status {quote(abort.grpc_status)} is not supported. "
                f"See {_GRPC_LIST} for a list of supported codes, for example 'NOT_FOUND'"
            )
            yield error(f"{path}.grpcStatus", message)
    elif abort.http2_error is not None:
        yield error(f"{path}.http2Error", "HTTP/2 abort fault injection not supported yet")
    elif abort.http_status is not None:
        yield from at(f"{path}.httpStatus", status_fault(abort.http_status))
    else:
        yield warning(path, "abort configured, but error type not set")


def _check_delay(delay: Delay, path: str) -> Faults:
    yield from at(f"{path}.percent", percent_fault(delay.percent))
    yield from at(f"{path}.percentage", fraction_fault(delay.percentage))
    yield from at(f"{path}.fixedDelay", duration_fault(delay.fixed_delay))
    if delay.exponential_delay is not None:
        yield from at(f"{path}.exponentialDelay", duration_fault(delay.exponential_delay))
        yield error(f"{path}.exponentialDelay", "exponentialDelay not supported yet")
