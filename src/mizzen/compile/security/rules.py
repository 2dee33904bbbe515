"""One rule of an AuthorizationPolicy as an RBAC policy.

In: the rule, its policy's action, and whether the chain is HTTP or TCP. Out: the encoded `Policy`, or None where the
rule falls away: an ALLOW rule that holds something unmatchable, or an entry without any value, must not allow. For the
other actions what cannot be matched is left out, so that the rule matches more. Golden cases: security/authz-tcp,
security/authz-degenerate.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mizzen import protos
from mizzen.api.policy import Action, Condition, Operation, Rule, Source
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.security import permissions, principals
from mizzen.compile.security.attributes import Attribute, Field, InvalidValueError
from mizzen.compile.security.principals import Context

_rbac_v3 = protos.package("envoy.config.rbac.v3")

Matcher = dict[str, Any]

NEVER = protos.encode(
    _rbac_v3.Policy(permissions=[{"not_rule": {"any": True}}], principals=[{"not_id": {"any": True}}])
)
"""What stands for a policy without rules."""

ALWAYS = protos.encode(_rbac_v3.Policy(permissions=[{"any": True}], principals=[{"any": True}]))
"""What stands for a policy that cannot be compiled, as a denial."""


class _Unmatchable(Exception):
    """An ALLOW rule holds something that cannot be matched."""


def build_rule(rule: Rule, action: Action, context: Context, dialect: Dialect, *, tcp: bool) -> bytes | None:
    """The encoded RBAC policy of a rule, or None where it must not match anything."""
    if action == "ALLOW" and _is_vague(rule):
        return None
    builder = _Builder(action, tcp)
    try:
        called, calling = _conditions(rule.when, context, strict=action == "ALLOW")
        policy = _rbac_v3.Policy(
            permissions=[
                {"and_rules": {"rules": builder.element(_operation(o), called, "not_rule")}} for o in _operations(rule)
            ],
            principals=[
                {"and_ids": {"ids": builder.element(_source(s, context), calling, "not_id")}} for s in _sources(rule)
            ],
        )
    except _Unmatchable:
        return None
    if dialect == "envoy":
        for principal in policy.principals:
            _rename_metadata(principal)
        for permission in policy.permissions:
            _rename_metadata(permission)
    return protos.encode(policy)


class _Builder:
    """Fields of one element as matchers, for one action on one kind of chain."""

    def __init__(self, action: Action, tcp: bool) -> None:
        self._allow = action == "ALLOW"
        self._tcp = tcp

    def element(self, fields: Iterable[Field], conditions: Iterable[Field], negation: str) -> list[Matcher]:
        """The matchers that all must hold; `any` where there are none."""
        found = [m for field in (*fields, *conditions) for m in self._field(field, negation)]
        return found or [{"any": True}]

    def _field(self, field: Field, negation: str) -> Iterator[Matcher]:
        if not field.values and not field.excluded:
            return
        if field.attribute.http_only and self._tcp:
            self._skip()
            return
        for values, negated in ((field.values, False), (field.excluded, True)):
            if not values:
                continue
            try:
                matcher = field.attribute.build(values)
            except InvalidValueError:
                self._skip()
                continue
            yield {negation: matcher} if negated else matcher

    def _skip(self) -> None:
        if self._allow:
            raise _Unmatchable


def _is_vague(rule: Rule) -> bool:
    """Whether an entry names no value at all. Validation refuses such; let in, it would allow what it does not name."""
    return (
        any(entry.source in (None, Source()) for entry in rule.from_)
        or any(entry.operation in (None, Operation()) for entry in rule.to)
        or any(not condition.values and not condition.not_values for condition in rule.when)
    )


def _operations(rule: Rule) -> Sequence[Operation]:
    return [to.operation or Operation() for to in rule.to] or [Operation()]


def _sources(rule: Rule) -> Sequence[Source]:
    return [f.source or Source() for f in rule.from_] or [Source()]


def _operation(operation: Operation) -> Iterator[Field]:
    yield Field(attribute=permissions.HOSTS, values=operation.hosts, excluded=operation.not_hosts)
    yield Field(attribute=permissions.METHODS, values=operation.methods, excluded=operation.not_methods)
    yield Field(attribute=permissions.PATHS, values=operation.paths, excluded=operation.not_paths)
    yield Field(attribute=permissions.PORTS, values=operation.ports, excluded=operation.not_ports)


def _source(source: Source, context: Context) -> Iterator[Field]:
    def field(attribute: Attribute, values: tuple[str, ...], excluded: tuple[str, ...]) -> Field:
        return Field(attribute=attribute, values=values, excluded=excluded)

    yield field(principals.principal(context), source.principals, source.not_principals)
    yield field(principals.REQUEST_PRINCIPAL, source.request_principals, source.not_request_principals)
    yield field(principals.service_account(context), source.service_accounts, source.not_service_accounts)
    yield field(principals.trust_domain(context), source.trust_domains, source.not_trust_domains)
    yield field(principals.NAMESPACE, source.namespaces, source.not_namespaces)
    yield field(principals.CLIENT_ADDRESS, source.remote_ip_blocks, source.not_remote_ip_blocks)
    yield field(principals.PEER_ADDRESS, source.ip_blocks, source.not_ip_blocks)


def _conditions(when: Iterable[Condition], context: Context, *, strict: bool) -> tuple[list[Field], list[Field]]:
    """Conditions about the destination and about the source.

    One that cannot be understood ends an ALLOW rule; others match without it, where Istio drops the rule and lets in.
    """
    called: list[Field] = []
    calling: list[Field] = []
    for condition in when:
        try:
            destination = permissions.find_condition(condition.key)
            attribute = destination or principals.find_condition(condition.key, context)
            if attribute is None:
                raise InvalidValueError(f"nothing is known of {condition.key!r}")
        except InvalidValueError:
            if strict:
                raise _Unmatchable from None
            continue
        field = Field(attribute=attribute, values=condition.values, excluded=condition.not_values)
        (called if destination is not None else calling).append(field)
    return called, calling


def _rename_metadata(matcher: Any) -> None:
    """Upstream Envoy warns of the field `metadata`; its other name says the same."""
    kind = matcher.WhichOneof("rule" if matcher.DESCRIPTOR.name == "Permission" else "identifier")
    if kind == "metadata":
        inner = type(matcher.metadata)()
        inner.CopyFrom(matcher.metadata)
        matcher.sourced_metadata.metadata_matcher.CopyFrom(inner)
    elif kind in ("and_rules", "or_rules"):
        for rule in getattr(matcher, kind).rules:
            _rename_metadata(rule)
    elif kind in ("and_ids", "or_ids"):
        for identifier in getattr(matcher, kind).ids:
            _rename_metadata(identifier)
    elif kind in ("not_rule", "not_id"):
        _rename_metadata(getattr(matcher, kind))
