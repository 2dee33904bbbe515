"""Every attempt is refused by what is meant to refuse it, and the same without what is forged gets in."""

import re

import pytest
from attack_catalogue import ATTEMPTS

_EXPLAINED = tuple(attempt for attempt in ATTEMPTS if attempt.details)
_LEAST = 40


def _name(attempt):
    return attempt.name


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=_name)
def test_an_attack_is_refused_and_its_twin_is_not(attempt, ledger, mesh):
    record = ledger.make(attempt)
    assert not record.attack.let_in, f"let in: {record.attack.answer}"
    assert re.search(attempt.answer, record.attack.answer), "refused, but not as is meant"
    assert record.counted, f"the Envoy of {record.attack.pod} does not count it under {attempt.counter}"
    assert record.twin.let_in, f"the twin is refused: {record.twin.answer}"


@pytest.mark.afterwards
@pytest.mark.parametrize("attempt", _EXPLAINED, ids=_name)
def test_the_access_log_names_what_refused_it(attempt, ledger, mesh):
    record = ledger.make(attempt)
    lines = mesh.logged(record.attack.pod, record.attack.case)
    assert all(re.search(attempt.details, line) for line in lines), lines


def test_an_attack_differs_from_its_twin_in_what_is_forged_alone():
    for attempt in ATTEMPTS:
        changed = {name for name in attempt.twin.__struct_fields__ if _differs(attempt, name)}
        assert changed, f"{attempt.name} is its own twin"
        assert changed <= set(attempt.forged), attempt.name


def _differs(attempt, name):
    return getattr(attempt.attack, name) != getattr(attempt.twin, name)


@pytest.mark.afterwards
def test_nobody_gets_in(ledger, mesh):
    """Counts what was made in this run, so it means something when all attempts were asked for."""
    records = [ledger.make(attempt) for attempt in ATTEMPTS]
    assert len(records) >= _LEAST
    assert [record.attempt.name for record in records if record.attack.let_in] == []
    assert [record.attempt.name for record in records if not record.refused] == []
    assert [record.attempt.name for record in records if not record.twin.let_in] == []
