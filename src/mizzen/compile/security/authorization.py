"""AuthorizationPolicies as RBAC filters: AUDIT, DENY and ALLOW, in this order, for HTTP and for TCP chains.

In: the keys of the policies that apply to a workload, in their order. Out: encoded filters; equal keys share them.
CUSTOM policies are `external`'s. Golden cases: security/authz-* .
"""

from collections.abc import Iterable

import msgspec

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.api.policy import Action, AuthorizationPolicy
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.security import rules
from mizzen.compile.security.principals import Context
from mizzen.incremental import Engine, query
from mizzen.model import identities

_rbac_v3 = protos.package("envoy.config.rbac.v3")
_hcm_v3 = protos.package("envoy.extensions.filters.network.http_connection_manager.v3")
_listener_v3 = protos.package("envoy.config.listener.v3")
_http_rbac_v3 = protos.package("envoy.extensions.filters.http.rbac.v3")
_network_rbac_v3 = protos.package("envoy.extensions.filters.network.rbac.v3")

HTTP_FILTER = "envoy.filters.http.rbac"
NETWORK_FILTER = "envoy.filters.network.rbac"
NETWORK_STAT_PREFIX = "tcp."
_DRY_RUN = "istio.io/dry-run"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_ENVOY_ACTIONS = {"ALLOW": "ALLOW", "DENY": "DENY", "AUDIT": "LOG", "CUSTOM": "DENY"}
_ORDER: tuple[Action, ...] = ("AUDIT", "DENY", "ALLOW")


class CompiledPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One AuthorizationPolicy: its rules as encoded RBAC policies, by name."""

    action: Action
    provider: str = ""
    """Of a CUSTOM policy."""
    dry_run: bool = False
    rules: tuple[tuple[str, bytes], ...] = ()


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
def http_filters(db: Engine, keys: tuple[Key, ...], dialect: Dialect) -> tuple[bytes, ...]:
    """The encoded HTTP filters of these policies."""
    return tuple(_http_filter(rbac) for rbac in _filters(_compiled(db, keys, dialect, tcp=False)))


@query
def network_filters(db: Engine, keys: tuple[Key, ...], dialect: Dialect) -> tuple[bytes, ...]:
    """The encoded network filters of these policies, for TCP chains."""
    return tuple(_network_filter(rbac) for rbac in _filters(_compiled(db, keys, dialect, tcp=True)))


def _compiled(db: Engine, keys: Iterable[Key], dialect: Dialect, *, tcp: bool) -> list[CompiledPolicy]:
    found = (compiled_policy(db, key, dialect, tcp) for key in keys)
    return [policy for policy in found if policy is not None]


class Rbac(msgspec.Struct, frozen=True, kw_only=True):
    """One RBAC filter: enforced rules, shadow rules, and the prefix of what the shadow leaves in metadata."""

    action: str
    enforced: tuple[tuple[str, bytes], ...] | None = None
    shadow: tuple[tuple[str, bytes], ...] | None = None
    prefix: str = ""


def _filters(policies: list[CompiledPolicy]) -> Iterable[Rbac]:
    for action in _ORDER:
        of_action = [p for p in policies if p.action == action]
        if not of_action:
            continue
        dry = [p for p in of_action if p.dry_run]
        enforced = [p for p in of_action if not p.dry_run]
        yield Rbac(
            action=_ENVOY_ACTIONS[action],
            enforced=_joined(enforced) if enforced else None,
            shadow=_joined(dry) if dry else None,
            prefix=_shadow_prefix(action, dry=bool(dry)),
        )


def _joined(policies: Iterable[CompiledPolicy]) -> tuple[tuple[str, bytes], ...]:
    return tuple(rule for policy in policies for rule in policy.rules)


def _shadow_prefix(action: Action, *, dry: bool) -> str:
    if dry and action == "DENY":
        return "istio_dry_run_deny_"
    return "" if dry and action == "AUDIT" else "istio_dry_run_allow_"


def _fields(rbac: Rbac) -> dict[str, object]:
    fields: dict[str, object] = {"shadow_rules_stat_prefix": rbac.prefix}
    for name, entries in (("rules", rbac.enforced), ("shadow_rules", rbac.shadow)):
        if entries is not None:
            message = _rbac_v3.RBAC(action=rbac.action)
            for policy_name, data in entries:
                message.policies[policy_name].MergeFromString(data)
            fields[name] = message
    return fields


def _http_filter(rbac: Rbac) -> bytes:
    config = _http_rbac_v3.RBAC(**_fields(rbac))
    return protos.encode(_hcm_v3.HttpFilter(name=HTTP_FILTER, typed_config=protos.pack(config)))


def _network_filter(rbac: Rbac) -> bytes:
    config = _network_rbac_v3.RBAC(stat_prefix=NETWORK_STAT_PREFIX, **_fields(rbac))
    return protos.encode(_listener_v3.Filter(name=NETWORK_FILTER, typed_config=protos.pack(config)))
