"""Retry policies. Golden cases: networking/vs-retries-timeouts, networking/mesh-http-settings."""

from typing import Any

from mizzen import protos
from mizzen.api.networking.virtual_service import HTTPRetry
from mizzen.compile.values import duration, wrapped

_previous_hosts_v3 = protos.package("envoy.extensions.retry.host.previous_hosts.v3")
_previous_priorities_v3 = protos.package("envoy.extensions.retry.priority.previous_priorities.v3")

_DEFAULT_ON = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
_DEFAULT_ATTEMPTS = 2
_HOST_ATTEMPTS = 5
_STATUS_CODES = "retriable-status-codes"


def _previous_hosts() -> dict[str, Any]:
    return {
        "name": "envoy.retry_host_predicates.previous_hosts",
        "typed_config": protos.pack(_previous_hosts_v3.PreviousHostsPredicate()),
    }


def _previous_priorities() -> dict[str, Any]:
    config = _previous_priorities_v3.PreviousPrioritiesConfig(update_frequency=2)
    return {"name": "envoy.retry_priorities.previous_priorities", "typed_config": protos.pack(config)}


def default_policy(mesh: HTTPRetry | None, *, avoid_hosts: bool = True) -> dict[str, Any] | None:
    """The policy of routes that say nothing: the built-in one under what the mesh sets."""
    if mesh is None:
        return _policy(HTTPRetry(attempts=_DEFAULT_ATTEMPTS), avoid_hosts=avoid_hosts)
    return _policy(mesh, avoid_hosts=avoid_hosts)


def build_policy(retries: HTTPRetry | None, mesh: HTTPRetry | None, *, avoid_hosts: bool) -> dict[str, Any] | None:
    """The policy of a route; None for no retries. `avoid_hosts` is off where hashing must choose the same host."""
    return (
        default_policy(mesh, avoid_hosts=avoid_hosts) if retries is None else _policy(retries, avoid_hosts=avoid_hosts)
    )


def _policy(retries: HTTPRetry, *, avoid_hosts: bool) -> dict[str, Any] | None:
    if retries.attempts <= 0:
        return None
    fields: dict[str, Any] = {
        "retry_on": _DEFAULT_ON,
        "num_retries": wrapped(retries.attempts),
        "host_selection_retry_max_attempts": _HOST_ATTEMPTS,
    }
    if retries.retry_on:
        fields["retry_on"], codes = _parse_conditions(retries.retry_on)
        if codes:
            fields["retriable_status_codes"] = codes
    if retries.retry_ignore_previous_hosts is not None:
        avoid_hosts = retries.retry_ignore_previous_hosts
    if avoid_hosts:
        fields["retry_host_predicate"] = [_previous_hosts()]
    if retries.per_try_timeout is not None:
        fields["per_try_timeout"] = duration(retries.per_try_timeout)
    if retries.retry_remote_localities:
        fields["retry_priority"] = _previous_priorities()
    if retries.backoff is not None:
        fields["retry_back_off"] = {"base_interval": duration(retries.backoff)}
    return fields


def _parse_conditions(text: str) -> tuple[str, list[int]]:
    """Conditions by word, and those that are status codes, for which a condition of their own is appended."""
    tokens = [t.strip() for t in text.split(",") if t.strip()]
    codes = [int(t) for t in tokens if t.isdigit()]
    words = [t for t in tokens if not t.isdigit()]
    joined = ",".join(words)
    return (f"{joined},{_STATUS_CODES}" if codes and _STATUS_CODES not in words else joined), codes
