"""External authorization: whether the authorizer is asked, and whether it can be.

In: the `ext_authz` filter, and the metadata by which a CUSTOM policy's shadow rules switch it on. Out: the denial where
the authorizer cannot be reached and requests then fail; else its answer is something that the verdict hangs on.
"""

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import endpoints, matchers
from mizzen.diagnose.trace.state import State
from mizzen.diagnose.trace.verdict import Answer, Visit

_OK, _ERROR = 200, 500


def apply(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    """The filter for one request."""
    del name, own
    enabling = dump.message(config, "filter_enabled_metadata")
    if enabling and not matchers.match_metadata(enabling, state.metadata):
        return None
    hop, rule = state.hop, _rule(enabling, state)
    if rule:
        hop.journal.visits.append(Visit(side=hop.side, kind="rule", name=rule))
        hop.journal.policy = rule
    cluster = dump.text(config, "grpc_service", "envoy_grpc", "cluster_name") or dump.text(
        config, "http_service", "server_uri", "cluster"
    )
    failed = unreachable(state, cluster)
    opens = config.get("failureModeAllow") is True
    if not failed:
        return _asked(state, config, cluster, rule)
    hop.journal.note(
        hop.side,
        "filter",
        f"authorizer {cluster} cannot be asked",
        ("why", failed),
        ("fails open", "yes" if opens else "no"),
        state="ok" if opens else "fails",
    )
    if opens:
        return None
    return Answer(
        outcome="denied",
        status=dump.number(config, "status_on_error", "code") or 403,
        flag="UAEX",
        details="ext_authz_error",
        side=hop.side,
        link="filter",
        reason=f"the authorizer {cluster} cannot be asked: {failed}",
        about=("cluster", cluster, hop.side),
    )


def _rule(enabling: Json, state: State) -> str:
    """The rule that had the authorizer asked, as Envoy names it."""
    found = state.metadata.get(dump.text(enabling, "filter"), {})
    for segment in dump.items(enabling, "path"):
        found = found.get(dump.text(segment, "key"), "") if isinstance(found, dict) else ""
    return str(found)


def _asked(state: State, config: Json, cluster: str, rule: str) -> Answer | None:
    hop, answers = state.hop, state.hop.request.authorizer
    hop.journal.note(hop.side, "filter", f"authorizer {cluster} is asked", state="ok" if answers else "unsure")
    if not answers:
        hop.journal.hang_on(f"what the authorizer {cluster} answers")
        return None
    if answers == _OK:
        return None
    is_error = answers >= _ERROR
    if is_error and config.get("failureModeAllow") is True:
        return None
    return Answer(
        outcome="denied",
        status=(dump.number(config, "status_on_error", "code") or 403) if is_error else answers,
        flag="UAEX",
        details="ext_authz_error" if is_error else "ext_authz_denied",
        side=hop.side,
        link="filter",
        reason=f"the authorizer {cluster} answers {answers}",
        about=("authorizer", rule),
    )


def unreachable(state: State, name: str) -> str:
    """Why a cluster that a filter calls cannot be reached, as far as endpoints say; empty where it can."""
    cluster = state.hop.held.clusters.get(name)
    if cluster is None:
        return f"cluster {name} does not exist"
    if dump.text(cluster, "type") in ("", "EDS", "STATIC"):
        choice = endpoints.choose(cluster, state.hop.held.assignment(cluster))
        if not choice.hosts:
            return f"cluster {name} has no healthy endpoint"
    return ""
