"""What EnvoyFilters put there: rate limits.

In: the answer, with words of the configuration that decided. Out: the EnvoyFilter that applies to the proxy and holds
the most of those words.
"""

from mizzen.api.meta import Key
from mizzen.api.networking.envoy_filter import EnvoyFilter
from mizzen.diagnose.trace.causes.found import Case, Found, selects
from mizzen.model import mesh, objects


def rate_limited(case: Case) -> Found:
    """The EnvoyFilter that put the limit there."""
    key = _patching(case, "ratelimit", *case.answer.about[1:])
    if key is None:
        return Found(reason=case.answer.reason, fix="raise the limit")
    reason = f"{case.world.cause(key)} limits requests at {case.answer.side}"
    return case.blame(key, reason, "raise its limit")


def _patching(case: Case, subject: str, *words: str) -> Key | None:
    """The EnvoyFilter at the answering proxy about the subject, with the most of those words."""
    server = case.pod(case.answer.side)
    spaces = ("" if server is None else server.namespace, mesh.root_namespace(case.db))
    found: list[tuple[int, tuple[float, str, str], Key]] = []
    for key in objects.of_kind(case.db, "EnvoyFilter"):
        written: EnvoyFilter = case.db.input(key)
        selector = written.spec.workload_selector
        applies = server is None or (key[1] in spaces and (selector is None or selects(selector.labels, server.labels)))
        text = str(written.spec)
        if applies and subject in text:
            fitting = sum(word in text for word in words if word)
            found.append((-fitting, written.metadata.age_order, key))
    return min(found)[2] if found else None
