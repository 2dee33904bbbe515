"""One rule of a policy held against one request, field by field.

A rule matches if one of its sources, one of its operations and all of its conditions do. What cannot be held against
the request (an attribute of HTTP on a bare connection, a value or a key that means nothing, an entry without any value)
ends an ALLOW rule, in whichever alternative it stands, and is left out of rules of other actions, which so match more.
"""

from collections.abc import Iterable, Iterator, Sequence

from mizzen.api.policy import Action, Condition, Operation, Rule, Source
from mizzen.diagnose.authorization import attributes
from mizzen.diagnose.authorization.attributes import Facts, Field
from mizzen.diagnose.authorization.decision import Check, Match, Miss, RuleId

Checks = tuple[Check, ...]


def hold_rule(rule: Rule, identity: RuleId, action: Action, facts: Facts) -> Match | Miss:
    """Whether the rule matches, by its best source and operation."""
    strict = action == "ALLOW"
    sources = [_hold(place, fields, facts, strict) for place, fields in _sources(rule)]
    operations = [_hold(place, fields, facts, strict) for place, fields in _operations(rule)]
    conditions = tuple(_conditions(rule.when, facts, strict=strict))
    unusable = [c for c in (*_joined(sources), *_joined(operations), *conditions) if strict and c.problem]
    if unusable:
        return Miss(rule=identity, action=action, failed=tuple(unusable))
    checks = (*_best(sources), *_best(operations), *conditions)
    failed = tuple(check for check in checks if not check.holds)
    if not failed:
        return Match(rule=identity, action=action, checks=checks)
    return Miss(rule=identity, action=action, failed=failed, held=tuple(c for c in checks if c.holds))


def _sources(rule: Rule) -> Iterator[tuple[str, Iterable[Field]]]:
    for i, alternative in enumerate(rule.from_):
        place = f"from[{i}].source"
        yield place, attributes.source_fields(alternative.source or Source(), place)
    if not rule.from_:
        yield "", ()


def _operations(rule: Rule) -> Iterator[tuple[str, Iterable[Field]]]:
    for i, alternative in enumerate(rule.to):
        place = f"to[{i}].operation"
        yield place, attributes.operation_fields(alternative.operation or Operation(), place)
    if not rule.to:
        yield "", ()


def _hold(place: str, fields: Iterable[Field], facts: Facts, strict: bool) -> Checks:
    """The checks of one alternative; nothing stands for all that a rule says nothing of."""
    checks = tuple(_check(field, facts, strict) for field in fields)
    return checks or (_vague(place) if place and strict else ())


def _vague(name: str) -> Checks:
    return (_unusable(name, (), False, "it names no value", strict=True),)


def _check(field: Field, facts: Facts, strict: bool) -> Check:
    attribute = field.attribute
    if attribute.http_only and not facts.request.is_http:
        return _unusable(field.name, field.values, field.excluded, "a connection that is not HTTP has none", strict)
    problem = next((fault for value in field.values if (fault := attribute.fault(value))), "")
    if problem:
        return _unusable(field.name, field.values, field.excluded, problem, strict)
    return Check(
        field=field.name,
        values=field.values,
        excluded=field.excluded,
        actual=attribute.show(facts.request),
        holds=any(attribute.matches(value, facts) for value in field.values) != field.excluded,
    )


def _unusable(name: str, values: tuple[str, ...], excluded: bool, problem: str, strict: bool) -> Check:
    return Check(field=name, values=values, excluded=excluded, holds=not strict, problem=problem)


def _conditions(when: Iterable[Condition], facts: Facts, *, strict: bool) -> Iterator[Check]:
    for i, condition in enumerate(when):
        name = f"when[{i}] {condition.key}"
        attribute = attributes.of_condition(condition.key)
        if attribute is None:
            yield _unusable(name, condition.values or condition.not_values, False, "nothing is known of this", strict)
            continue
        if strict and not condition.values and not condition.not_values:
            yield from _vague(name)
        for values, excluded in ((condition.values, False), (condition.not_values, True)):
            if values:
                yield _check(Field(name=name, attribute=attribute, values=values, excluded=excluded), facts, strict)


def _joined(alternatives: Iterable[Checks]) -> Iterator[Check]:
    return (check for checks in alternatives for check in checks)


def _best(alternatives: Sequence[Checks]) -> Checks:
    """The alternative that matches, or else the one with the fewest fields that fail; the first of equals."""
    return min(alternatives, key=lambda checks: sum(not check.holds for check in checks))
