"""Routes that upstream Envoy would refuse, and with each of them a whole route configuration.

In: a finished Route. Out: a Route that Envoy takes, or None, and why it is another. Where only the action is at fault
(no destination with a weight, a header's name or value that is none, a limit of time below zero) the requests that it
means are answered with 503, as they must not go to whoever stands next in the list. Where the match itself is at fault
nobody can say which requests it means: it goes. Istio's proxies get what the reference sends.
"""

import operator
import re
from typing import Any

from mizzen import protos
from mizzen.compile.filters import formats
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.patches.refusals import constraints
from mizzen.model.patterns import UNSPEAKABLE

_route_v3 = protos.package("envoy.config.route.v3")

_STATE = re.compile(r"%PER_REQUEST_STATE\([^\n)]+\)%")
"""A command of headers alone."""
_UNAVAILABLE = {"status": 503}
_LIMITS = {
    path: operator.attrgetter(path)
    for path in (
        "route.timeout",
        "route.retry_policy.per_try_timeout",
        "route.max_stream_duration.max_stream_duration",
        "route.max_stream_duration.grpc_timeout_header_max",
    )
}


def without_violations(route: Any, dialect: Dialect) -> tuple[Any | None, str | None]:
    """The route as it can be sent, and why Envoy would refuse it as it was; None where it would not."""
    refused = _refusal(route) if dialect == "envoy" else None
    if refused is None:
        return route, None
    kept = {name: getattr(route, name) for name in ("match", "metadata", "decorator") if route.HasField(name)}
    answer = _route_v3.Route(name=route.name, direct_response=_UNAVAILABLE, **kept)
    return (answer if constraints.violation(answer) is None else None), refused


def _refusal(route: Any) -> str | None:
    return constraints.violation(route) or _unreadable_value(route) or _negative_limit(route)


def _negative_limit(route: Any) -> str | None:
    """The first limit of time below zero."""
    for path, read in _LIMITS.items():
        limit = read(route)
        if limit.seconds < 0 or limit.nanos < 0:
            return f"{path}: must not be negative"
    return None


def _unreadable_value(route: Any) -> str | None:
    """The first header value that is no format of Envoy's."""
    for changed in (route, *route.route.weighted_clusters.clusters):
        for field in ("request_headers_to_add", "response_headers_to_add"):
            for option in getattr(changed, field):
                if not formats.is_readable(_STATE.sub("", option.header.value)):
                    return f"{field}: Envoy cannot read the value {option.header.value!r} of {option.header.key}"
    return None


def is_domain(text: str) -> bool:
    """Whether Envoy takes the text for a domain of a virtual host."""
    return bool(text) and UNSPEAKABLE.search(text) is None
