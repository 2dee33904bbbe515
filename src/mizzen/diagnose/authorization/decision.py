"""The answer of the policies to one request, with what an operator asks next.

Who decided and by which fields; of a request that no rule allows, which rule came closest and what it failed on; which
external authorizer is asked; what dry runs would have said; what is audited.
"""

from typing import Literal

import msgspec

from mizzen.api.meta import Key
from mizzen.api.policy import Action

Outcome = Literal["allowed", "denied", "asked"]
Reason = Literal[
    "no-allow-policy",
    "allow-rule",
    "deny-rule",
    "no-allow-rule",
    "custom-rule",
    "custom-unusable",
    "custom-dry-run",
    "bad-path",
    "redirected-path",
]


class RuleId(msgspec.Struct, frozen=True):
    """One rule of one policy; a policy without rules has a rule 0, which never matches."""

    policy: Key
    index: int

    @property
    def name(self) -> str:
        """As Envoy's statistics, logs and details of responses name it."""
        return f"ns[{self.policy.namespace}]-policy[{self.policy.name}]-rule[{self.index}]"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a rule held against the request."""

    field: str
    """Its place in the rule, such as `from[0].source.principals` or `when[1] request.headers[x-a]`."""
    values: tuple[str, ...]
    excluded: bool = False
    """Whether these are values that the request must not have."""
    actual: str = ""
    """What the request has; empty where it has none."""
    holds: bool
    problem: str = ""
    """Why the field cannot be held against the request. An ALLOW rule then never matches, others go without it."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that matches; without checks it matches everything."""

    rule: RuleId
    action: Action
    checks: tuple[Check, ...] = ()


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that does not match, by the alternative of it that came closest."""

    rule: RuleId
    action: Action
    failed: tuple[Check, ...] = ()
    """Empty for a policy without rules."""
    held: tuple[Check, ...] = ()


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What the dry-run policies of one action say, were they enforced."""

    action: Action
    allows: bool
    by: Match | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An external authorizer that is asked about the request."""

    provider: str
    by: Match


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the request.

    `denied` does not depend on any external authorizer's answer; `asked` is allowed if the authorizer allows it.
    """

    outcome: Outcome
    reason: Reason
    by: Match | None = None
    """The rule that decided; None where no rule did."""
    nearest: Miss | None = None
    """Of a request that no rule allows: the ALLOW rule that failed on the fewest fields."""
    question: Question | None = None
    provider: str = ""
    """The external authorizer that cannot be asked, of `custom-…` denials."""
    audited: tuple[Match, ...] = ()
    dry_runs: tuple[DryRun, ...] = ()
    applied: tuple[Key, ...] = ()
    """The policies that apply to the workload, those of the root namespace first, then by name."""
    path: str = ""
    """The path as the policies saw it; empty for a bare connection."""

    @property
    def details(self) -> str:
        """What Envoy gives as the details of its denial, in access logs; empty for anything else."""
        prefix = f"istio-ext-authz-{self.provider}-" if self.provider else ""
        suffix = "-deny-due-to-bad-CUSTOM-action" if self.reason == "custom-unusable" else ""
        name = f"{prefix}{self.by.rule.name}{suffix}" if self.by is not None else "none"
        if self.reason in ("bad-path", "redirected-path"):
            return "path_normalization_failed"
        return f"rbac_access_denied_matched_policy[{name}]" if self.outcome == "denied" else ""

    @property
    def status(self) -> int:
        """Of the answer that Envoy gives itself; 0 where it passes the request on, or for a bare connection."""
        if self.outcome != "denied" or not self.path:
            return 0
        return {"bad-path": 400, "redirected-path": 307}.get(self.reason, 403)
