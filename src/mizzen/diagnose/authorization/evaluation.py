"""The policies that apply, action by action, as Envoy asks them: what becomes of one request.

In: policies as objects, the workload, the request. Out: a `Decision`. First CUSTOM, before tokens are read; then AUDIT,
which only records, DENY, and ALLOW, of which one must match as soon as there is one. Dry-run policies are held against
the request beside those that are enforced, but for CUSTOM, where they deny for good.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from mizzen.api.meta import Key
from mizzen.api.policy import Action, AuthorizationPolicy
from mizzen.diagnose.authorization import paths, rules, tokens
from mizzen.diagnose.authorization.attributes import Facts
from mizzen.diagnose.authorization.decision import Decision, DryRun, Match, Miss, Question, Reason, RuleId
from mizzen.diagnose.authorization.request import Request
from mizzen.diagnose.authorization.workload import Workload

_DRY_RUN = "istio.io/dry-run"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")

Policies = Sequence[AuthorizationPolicy]


def decide(policies: Iterable[AuthorizationPolicy], workload: Workload, request: Request) -> Decision:
    """What the policies that apply to the workload make of the request; others among them count for nothing."""
    applying = _select(policies, workload)
    applied = tuple(_key(policy) for policy in applying)
    seen = _as_seen(request, workload)
    if isinstance(seen, Decision):
        return msgspec.structs.replace(seen, applied=applied)
    decision = _Round(applying, workload, seen).decide()
    return msgspec.structs.replace(decision, applied=applied, path=seen.path if seen.is_http else "")


def hold_rules(
    policies: Iterable[AuthorizationPolicy], workload: Workload, request: Request
) -> tuple[Match | Miss, ...]:
    """Every rule of every policy that applies, held against the request; none for one that reaches no policy."""
    seen = _as_seen(request, workload)
    return () if isinstance(seen, Decision) else tuple(_Round(_select(policies, workload), workload, seen).held())


def _select(policies: Iterable[AuthorizationPolicy], workload: Workload) -> list[AuthorizationPolicy]:
    """Those that apply, of the root namespace first, then by name."""
    return sorted(
        (p for p in policies if workload.is_selected_by(p)),
        key=lambda p: (p.metadata.namespace != workload.root_namespace, p.metadata.namespace, p.metadata.name),
    )


def is_dry_run(policy: AuthorizationPolicy) -> bool:
    """Whether the policy's annotation says so; what reads as no boolean does not."""
    return policy.metadata.annotations.get(_DRY_RUN, "").strip() in _TRUE


def _key(policy: AuthorizationPolicy) -> Key:
    return Key("AuthorizationPolicy", policy.metadata.namespace, policy.metadata.name)


def _as_seen(request: Request, workload: Workload) -> Request | Decision:
    """The request as Envoy hands it to the policies, or its end if it comes to none."""
    seen = msgspec.structs.replace(request, sni=request.sni.lower())
    if not request.is_http:
        return msgspec.structs.replace(seen, remote_ip=request.remote_ip or request.source_ip)
    path = paths.normalize_path(request.path, workload.normalization)
    if path.fate != "seen":
        return Decision(outcome="denied", reason=path.fate, path=path.text)
    claims = request.claims
    if claims is not None:
        claims = tokens.as_envoy_keeps(claims, workload.space_delimited_claims)
    client = request.remote_ip or _client(request.headers, workload) or request.source_ip
    return msgspec.structs.replace(seen, path=path.text, claims=claims, remote_ip=client)


def _client(headers: Iterable[tuple[str, str]], workload: Workload) -> str:
    """The address that `x-forwarded-for` names at the place that is trusted; empty if it names none there."""
    back = workload.trusted_hops + (0 if workload.is_edge else 1)
    addresses = ",".join(value for name, value in headers if name.lower() == "x-forwarded-for").split(",")
    if not 0 < back <= len(addresses):
        return ""
    try:
        return str(ipaddress.ip_address(addresses[-back].strip()))
    except ValueError:
        return ""


class _Round:
    """One request at the policies of one workload."""

    def __init__(self, policies: Policies, workload: Workload, request: Request) -> None:
        self._policies = policies
        self._workload = workload
        self._request = request

    def decide(self) -> Decision:
        question = self._custom()
        if isinstance(question, Decision):
            return question
        audited = tuple(self._matches(self._enforced("AUDIT"), self._request))
        decision = self._denied() or self._allowed()
        if question is not None and decision.outcome == "allowed":
            decision = Decision(outcome="asked", reason="custom-rule", by=question.by)
        return msgspec.structs.replace(decision, question=question, audited=audited, dry_runs=tuple(self._dry_runs()))

    # -- actions ------------------------------------------------------------------------------------------------------

    def _custom(self) -> Decision | Question | None:
        """Who is asked, or why nobody can be; at this point the token has not been read."""
        request = msgspec.structs.replace(self._request, claims=None)
        grouped: dict[str, list[AuthorizationPolicy]] = {}
        for policy in self._of("CUSTOM"):
            grouped.setdefault(policy.spec.provider.name if policy.spec.provider is not None else "", []).append(policy)
        for provider, policies in sorted(grouped.items()):
            kind = self._workload.providers.get(provider) if len(grouped) == 1 else None
            if kind is None:
                decision: Decision | Question | None = self._refused(policies, request, provider, "custom-unusable")
            elif kind == "http" and not request.is_http:
                decision = None
            else:
                dry = [policy for policy in policies if is_dry_run(policy)]
                decision = self._refused(dry, request, provider, "custom-dry-run")
                by = self._first([policy for policy in policies if not is_dry_run(policy)], request)
                if decision is None and by is not None:
                    decision = Question(provider=provider, by=by)
            if decision is not None:
                return decision
        return None

    def _refused(self, policies: Policies, request: Request, provider: str, reason: Reason) -> Decision | None:
        by = self._first(policies, request)
        return Decision(outcome="denied", reason=reason, by=by, provider=provider) if by is not None else None

    def _denied(self) -> Decision | None:
        by = self._first(self._enforced("DENY"), self._request)
        return Decision(outcome="denied", reason="deny-rule", by=by) if by is not None else None

    def _allowed(self) -> Decision:
        policies = self._enforced("ALLOW")
        if not policies:
            return Decision(outcome="allowed", reason="no-allow-policy")
        by = self._first(policies, self._request)
        if by is not None:
            return Decision(outcome="allowed", reason="allow-rule", by=by)
        missed = (one for one in self._held(policies, self._request) if isinstance(one, Miss))
        nearest = min(missed, key=lambda m: (not m.failed, len(m.failed), -len(m.held)), default=None)
        return Decision(outcome="denied", reason="no-allow-rule", nearest=nearest)

    def _dry_runs(self) -> Iterator[DryRun]:
        for action in ("AUDIT", "DENY", "ALLOW"):
            policies = [p for p in self._of(action) if is_dry_run(p)]
            if policies:
                by = self._first(policies, self._request)
                yield DryRun(action=action, allows=(by is None) if action == "DENY" else (by is not None), by=by)

    def _first(self, policies: Policies, request: Request) -> Match | None:
        """Of all rules that match the one that Envoy reports: the first by name."""
        return min(self._matches(policies, request), key=lambda match: match.rule.name, default=None)

    # -- rules --------------------------------------------------------------------------------------------------------

    def _of(self, action: Action) -> list[AuthorizationPolicy]:
        return [policy for policy in self._policies if policy.spec.action == action]

    def _enforced(self, action: Action) -> list[AuthorizationPolicy]:
        return [policy for policy in self._of(action) if not is_dry_run(policy)]

    def _matches(self, policies: Policies, request: Request) -> Iterator[Match]:
        return (one for one in self._held(policies, request) if isinstance(one, Match))

    def held(self) -> Iterator[Match | Miss]:
        """All rules of all policies; those of CUSTOM ones without the token."""
        early = msgspec.structs.replace(self._request, claims=None)
        for policy in self._policies:
            yield from self._held([policy], early if policy.spec.action == "CUSTOM" else self._request)

    def _held(self, policies: Policies, request: Request) -> Iterator[Match | Miss]:
        """All rules of the policies, in the order of the policies."""
        for policy in policies:
            key, spec = _key(policy), policy.spec
            facts = Facts(request=request, namespace=key.namespace, trust_domains=self._workload.trust_domains)
            for i, rule in enumerate(spec.rules):
                yield rules.hold_rule(rule, RuleId(key, i), spec.action, facts)
            if not spec.rules:
                yield Miss(rule=RuleId(key, 0), action=spec.action)
