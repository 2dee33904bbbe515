"""The HTTP filters before the router: which of them ends a request, and what the others leave behind.

In: the state of a request. Out: the answer of the filter that ends it, or None. Tokens and policies have modules of
their own. What asks somebody outside (authorizers, rate limit services, extensions) makes the verdict hang on them.
"""

from collections.abc import Callable, Mapping

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import actions, authorizers, jwt, matchers, policies, rbac
from mizzen.diagnose.trace.actions import seconds
from mizzen.diagnose.trace.state import State
from mizzen.diagnose.trace.verdict import Answer, join_flags

Filter = Callable[[State, str, Json, Json | None], Answer | None]
"""State, the filter's name, its configuration, and the route's override of it."""


def run(state: State) -> Answer | None:
    """All filters in order."""
    for each in dump.items(state.manager, "http_filters"):
        name = dump.text(each, "name")
        own = state.override(name)
        if (each if own is None else own).get("disabled") is True:
            continue
        config = dump.message(each, "typed_config") or _discovered(state, name)
        kind = dump.text(config, "@type")
        for part, apply in _FILTERS.items():
            if part in kind:
                answer = apply(state, name, config, own)
                if answer is not None:
                    if answer.link == "policy":
                        _corroborate(state, answer)
                    return answer
                break
    _corroborate(state, None)
    return None


def _corroborate(state: State, denied: Answer | None) -> None:
    """Policies guard what arrives at a workload and what enters a gateway."""
    if state.hop.is_inbound or state.hop.pod.proxy == "router":
        payload = state.metadata.get(jwt.FILTER, {}).get("payload")
        policies.corroborate(state.hop, state.message, payload, denied)


def _discovered(state: State, name: str) -> Json:
    """A filter's configuration that came over ECDS."""
    return dump.message(state.hop.held.extensions.get(name, {}), "typed_config")


# -- faults -----------------------------------------------------------------------------------------------------------


def _fault(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    del name
    fault = own if own is not None else config
    if not all(matchers.match_header(h, state.message) for h in dump.items(fault, "headers")):
        return None
    hop = state.hop
    delay, abort = dump.message(fault, "delay"), dump.message(fault, "abort")
    origin = hop.world.origin(state.selected.route or {})
    if part := matchers.share(dump.message(delay, "percentage")):
        wait = dump.text(delay, "fixed_delay")
        hop.journal.note(hop.side, "filter", f"fault: {part:.4g} of requests wait {wait}", origin=origin)
        state.flags.update({"DI"} if part >= 0.5 else ())
        if part < 1:
            hop.journal.hang_on(f"the share of delayed requests, {100 * part:.4g} %")
    part = matchers.share(dump.message(abort, "percentage"))
    if not part:
        return None
    status = dump.number(abort, "http_status") or 200  # A gRPC status travels in a trailer of a 200.
    hop.journal.note(
        hop.side, "filter", f"fault: {part:.4g} of requests end with {status}", state="fails", origin=origin
    )
    if part < 1:
        hop.journal.hang_on(f"the share of aborted requests, {100 * part:.4g} %")
    if part < 0.5:
        return None
    return Answer(
        outcome="aborted",
        status=status,
        flag=join_flags("FI", *state.flags),
        details="fault_filter_abort",
        side=hop.side,
        link="filter",
        reason=f"a fault of the route ends the request with {status}",
        about=("fault",),
    )


# -- cross-origin requests --------------------------------------------------------------------------------------------


def _cors(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    del name, config
    message, hop = state.message, state.hop
    origin = message.header("origin")
    if own is None or not origin or message.method != "OPTIONS" or not message.header("access-control-request-method"):
        return None
    allowed = any(matchers.match_string(m, origin) for m in dump.items(own, "allow_origin_string_match"))
    if not allowed and own.get("forwardNotMatchingPreflights") is not False:
        hop.journal.note(hop.side, "filter", "CORS: the origin is not allowed, the preflight is forwarded")
        return None
    hop.journal.note(hop.side, "filter", f"CORS answers the preflight: origin {'' if allowed else 'not '}allowed")
    return Answer(outcome="responded", status=200, details="cors_response", side=hop.side)


# -- limits -----------------------------------------------------------------------------------------------------------


def _local_rate_limit(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    del name
    limit = own if own is not None else config
    bucket = dump.message(limit, "token_bucket")
    enforced = matchers.share(dump.message(limit, "filter_enforced", "default_value"))
    enabled = matchers.share(dump.message(limit, "filter_enabled", "default_value"))
    hop = state.hop
    if not bucket or not enabled or not enforced:
        return None
    tokens = dump.number(bucket, "max_tokens")
    hop.journal.note(
        hop.side,
        "filter",
        f"local rate limit: {tokens} requests, refilled every {seconds(dump.text(bucket, 'fill_interval')):g}s",
    )
    asked = hop.request.earlier
    if asked < tokens:
        if asked + hop.request.at_once > tokens:
            hop.journal.hang_on(f"which of the requests are the {tokens} that the rate limit lets through")
        return None
    status = dump.number(limit, "status", "code") or 429
    return Answer(
        outcome="limited",
        status=status,
        flag="RL",
        details="local_rate_limited",
        side=hop.side,
        link="filter",
        reason=f"the local rate limit lets {tokens} requests through, and {asked} came before",
        about=("rate limit", dump.text(limit, "stat_prefix"), f"={hop.wire.port},"),
    )


def _rate_limit(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    del name, own
    hop = state.hop
    action = dump.message(state.selected.route or {}, "route")
    if not (action.get("rateLimits") or state.host.get("rateLimits")):
        return None
    cluster = dump.text(config, "rate_limit_service", "grpc_service", "envoy_grpc", "cluster_name")
    failed = authorizers.unreachable(state, cluster)
    if not failed:
        hop.journal.note(hop.side, "filter", f"rate limit service {cluster} is asked", state="unsure")
        hop.journal.hang_on(f"what the rate limit service {cluster} answers")
        return None
    denies = config.get("failureModeDeny") is True
    title = f"rate limit service {cluster} cannot be asked"
    hop.journal.note(hop.side, "filter", title, ("why", failed), state="fails" if denies else "ok")
    if not denies:
        return None
    return Answer(
        outcome="limited",
        status=dump.number(config, "status_on_error", "code") or 500,
        flag="RLSE",
        details="rate_limiter_error",
        side=hop.side,
        link="filter",
        reason=f"{title}: {failed}",
        about=("rate limit", dump.text(config, "domain"), cluster),
    )


# -- the rest ---------------------------------------------------------------------------------------------------------


def _header_mutation(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    del name
    for source in (config, own or {}):
        for mutation in dump.items(source, "mutations", "request_mutations"):
            if "remove" in mutation:
                state.message = state.message.without_header(dump.text(mutation, "remove"))
            elif "append" in mutation:
                state.message = actions.add_header(state.message, dump.message(mutation, "append"))
    return None


def _extension(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    del config, own
    state.hop.journal.note(state.hop.side, "filter", f"extension {name} runs", state="unsure")
    state.hop.journal.hang_on(f"what the extension {name} does")
    return None


_FILTERS: Mapping[str, Filter] = {
    ".http.fault.": _fault,
    ".http.cors.": _cors,
    ".http.jwt_authn.": jwt.apply,
    ".http.rbac.": rbac.http,
    ".http.ext_authz.": authorizers.apply,
    ".http.local_ratelimit.": _local_rate_limit,
    ".http.ratelimit.": _rate_limit,
    ".http.header_mutation.": _header_mutation,
    ".http.lua.": _extension,
    ".http.wasm.": _extension,
    ".http.ext_proc.": _extension,
}
