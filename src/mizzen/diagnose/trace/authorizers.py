"""External authorization: whether the authorizer is asked, and whether it can be.

In: the `ext_authz` filter, and the metadata by which a CUSTOM policy's shadow rules switch it on. Out: the denial where
the authorizer cannot be reached and requests then fail; else its answer is something that the verdict hangs on.
"""

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace import endpoints, matchers
from mizzen.diagnose.trace.state import State
from mizzen.diagnose.trace.verdict import Answer


def apply(state: State, name: str, config: Json, own: Json | None) -> Answer | None:
    """The filter for one request."""
    del name, own
    enabling = dump.message(config, "filter_enabled_metadata")
    if enabling and not matchers.match_metadata(enabling, state.metadata):
        return None
    hop = state.hop
    cluster = dump.text(config, "grpc_service", "envoy_grpc", "cluster_name") or dump.text(
        config, "http_service", "server_uri", "cluster"
    )
    failed = unreachable(state, cluster)
    opens = config.get("failureModeAllow") is True
    if not failed:
        hop.journal.note(hop.side, "filter", f"authorizer {cluster} is asked", state="unsure")
        hop.journal.hang_on(f"what the authorizer {cluster} answers")
        return None
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
