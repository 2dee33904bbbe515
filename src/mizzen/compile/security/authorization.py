"""AuthorizationPolicies as filters: CUSTOM, then AUDIT, DENY and ALLOW, for HTTP and for TCP chains.

In: the keys of the policies that apply to a workload, in their order. Out: encoded filters; equal keys share them.
A policy that cannot be compiled at all denies everything. Golden cases: security/authz-* .
"""

from collections.abc import Iterable

from mizzen.api.meta import Key
from mizzen.api.policy import Action, AuthorizationPolicy
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.security import external, rbac, rules
from mizzen.compile.security.principals import Context
from mizzen.compile.security.rbac import CompiledPolicy, NamedRules, Rbac
from mizzen.incremental import Engine, attempt, query
from mizzen.model import identities

_DRY_RUN = "istio.io/dry-run"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_ORDER: tuple[tuple[Action, str], ...] = (("AUDIT", "LOG"), ("DENY", "DENY"), ("ALLOW", "ALLOW"))


@query
def compiled_policy(db: Engine, key: Key, dialect: Dialect, tcp: bool) -> CompiledPolicy | None:
    """The policy of that key, None once it is gone."""
    policy: AuthorizationPolicy | None = db.input(key)
    if policy is None:
        return None
    spec = policy.spec
    context = Context(namespace=key.namespace, trust_domains=identities.trust_domains(db))
    name = f"ns[{key.namespace}]-policy[{key.name}]"
    built = ((i, rules.build_rule(rule, spec.action, context, dialect, tcp=tcp)) for i, rule in enumerate(spec.rules))
    found = tuple((f"{name}-rule[{i}]", data) for i, data in built if data is not None)
    return CompiledPolicy(
        action=spec.action,
        provider=spec.provider.name if spec.provider is not None else "",
        dry_run=policy.metadata.annotations.get(_DRY_RUN, "").strip() in _TRUE,
        rules=found if spec.rules else ((f"{name}-rule[0]", rules.NEVER),),
    )


@query
def custom_http_filters(db: Engine, keys: tuple[Key, ...], dialect: Dialect) -> tuple[bytes, ...]:
    """The encoded HTTP filters of the CUSTOM policies among these."""
    return tuple(external.build_http_filters(db, _custom(_compiled(db, keys, dialect, tcp=False))))


@query
def http_filters(db: Engine, keys: tuple[Key, ...], dialect: Dialect) -> tuple[bytes, ...]:
    """The encoded HTTP filters of all other policies among these."""
    return tuple(rbac.build_http_filter(r) for r in _filters(_compiled(db, keys, dialect, tcp=False)))


@query
def network_filters(db: Engine, keys: tuple[Key, ...], dialect: Dialect) -> tuple[bytes, ...]:
    """The encoded network filters of these policies, for TCP chains."""
    compiled = _compiled(db, keys, dialect, tcp=True)
    return (
        *external.build_network_filters(db, _custom(compiled)),
        *(rbac.build_network_filter(r) for r in _filters(compiled)),
    )


def _compiled(db: Engine, keys: Iterable[Key], dialect: Dialect, *, tcp: bool) -> list[CompiledPolicy]:
    """The policies; one that is there and cannot be compiled denies everything."""
    found = []
    for key in keys:
        policy = attempt(compiled_policy, db, key, dialect, tcp)
        if policy is None and db.input(key) is not None:
            policy = CompiledPolicy(action="DENY", rules=((f"ns[{key.namespace}]-policy[{key.name}]", rules.ALWAYS),))
        if policy is not None:
            found.append(policy)
    return found


def _custom(policies: Iterable[CompiledPolicy]) -> list[CompiledPolicy]:
    return [policy for policy in policies if policy.action == "CUSTOM"]


def _filters(policies: list[CompiledPolicy]) -> Iterable[Rbac]:
    for action, envoy_action in _ORDER:
        of_action = [p for p in policies if p.action == action]
        if not of_action:
            continue
        dry = [p for p in of_action if p.dry_run]
        enforced = [p for p in of_action if not p.dry_run]
        yield Rbac(
            action=envoy_action,
            enforced=_joined(enforced) if enforced else None,
            shadow=_joined(dry) if dry else None,
            prefix=_shadow_prefix(action, dry=bool(dry)),
        )


def _joined(policies: Iterable[CompiledPolicy]) -> NamedRules:
    return tuple(rule for policy in policies for rule in policy.rules)


def _shadow_prefix(action: Action, *, dry: bool) -> str:
    if dry and action == "DENY":
        return "istio_dry_run_deny_"
    return "" if dry and action == "AUDIT" else "istio_dry_run_allow_"
