"""What Envoy did with a call beside what the evaluator decided, and which fields of which rules decided it.

Compared is more than the answer: the rule that Envoy names as its reason, whether an external authorizer was asked and
for which rule, what dry runs said, and whether the request was audited.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import truth_requests
import yaml
from truth_calls import Answer
from truth_requests import Pair

from mizzen.diagnose.authorization import evaluation
from mizzen.diagnose.authorization.decision import Decision

_SHADOWS = {"AUDIT": "", "DENY": "istio_dry_run_deny_", "ALLOW": "istio_dry_run_allow_"}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One pair, decided twice."""

    pair: Pair
    decision: Decision
    status: int
    """What the caller got; 0 for a connection that was closed."""
    entry: Mapping[str, Any]
    """Envoy's log entry."""
    faults: tuple[str, ...]

    def __str__(self) -> str:
        documents = yaml.safe_dump_all(self.pair.policies.documents, sort_keys=False)
        faults = "\n".join(f"    {fault}" for fault in self.faults)
        return (
            f"set {self.pair.policies.number} of world {self.pair.policies.world.name}\n{faults}\n"
            f"  call: {self.pair.call}\n  evaluator: {self.decision}\n  Envoy: {dict(self.entry)}\n{documents}"
        )


def judge(pair: Pair, answer: Answer, entry: Mapping[str, Any]) -> Verdict:
    """Holds Envoy's answer and its reasons against the evaluator's decision."""
    decision = decide(pair)
    expected, seen = _expected(pair, decision), _seen(pair, answer, entry)
    faults = tuple(f"{k}: {expected[k]!r} decided, {seen[k]!r} seen" for k in expected if expected[k] != seen[k])
    return Verdict(pair=pair, decision=decision, status=answer.status, entry=entry, faults=faults)


def decide(pair: Pair) -> Decision:
    """The evaluator's decision."""
    policies, workload = truth_requests.policies_of(pair.policies), pair.policies.world.workload
    return evaluation.decide(policies, workload, truth_requests.seen_by_policies(pair.call))


def _is_stopped(decision: Decision) -> bool:
    """Whether an external authorizer says no."""
    return decision.question is not None and decision.question.provider.startswith("no")


def _expected(pair: Pair, decision: Decision) -> dict[str, Any]:
    is_http = pair.call.protocol != "tcp"
    found: dict[str, Any] = {"status": 200, "details": ""}
    if _is_stopped(decision):
        found = {"status": 403 if is_http else 0, "details": "ext_authz_denied"}
    elif decision.outcome == "denied":
        found = {"status": decision.status, "details": decision.details}
    if decision.reason in ("bad-path", "redirected-path"):
        return found
    question = decision.question
    found["asked"] = f"istio-ext-authz-{question.provider}-{question.by.rule.name}" if question is not None else None
    if _is_stopped(decision) or (decision.reason.startswith("custom-") and decision.outcome == "denied"):
        return found
    found["audited"] = bool(decision.audited)
    if decision.reason == "allow-rule" and decision.by is not None and is_http:
        found["allowed by"] = decision.by.rule.name
    for dry_run in decision.dry_runs:
        if dry_run.action == "ALLOW" and decision.reason == "deny-rule":
            continue
        prefix = _SHADOWS[dry_run.action]
        found[f"{prefix}shadow_effective_policy_id"] = dry_run.by.rule.name if dry_run.by is not None else None
        if dry_run.action != "AUDIT":
            found[f"{prefix}shadow_engine_result"] = "allowed" if dry_run.allows else "denied"
    return found


class _Seen(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        return None


def _seen(pair: Pair, answer: Answer, entry: Mapping[str, Any]) -> dict[str, Any]:
    metadata = entry["http"] if pair.call.protocol != "tcp" else entry["network"]
    details = entry["termination"] or entry["details"]
    found = _Seen(metadata or {})
    found["status"] = answer.status
    found["details"] = "" if details in (None, "via_upstream") else details
    found["asked"] = found["istio_ext_authz_shadow_effective_policy_id"]
    found["audited"] = bool((entry["common"] or {}).get("access_log_hint"))
    found["allowed by"] = found["enforced_effective_policy_id"]
    return found
