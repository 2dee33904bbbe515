"""Each rule of admission: an input that breaks it, and one close by that does not.

`rules/KIND.yaml` holds `base`, a spec without fault, and `rules`: what is said, where, and the fields that replace
those of the base so that it is said (`fires`) and so that it is not (`quiet`; the base itself where that is enough).
`level` is `warning` for what is only warned of; `metadata` adds to the metadata of both inputs.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import validated
import yaml

TABLES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((Path(__file__).parent / "rules").glob("*"))}


def name_rule(kind: str, number: int, rule: Any) -> str:
    """What pytest calls the tests of a rule."""
    return f"{kind}-{number}-{re.sub('[^a-zA-Z]+', '-', rule['says'])[:40]}"


RULES = [
    pytest.param(kind, table["base"], rule, id=name_rule(kind, number, rule))
    for kind, table in TABLES.items()
    for number, rule in enumerate(table["rules"])
]


def said(kind: str, spec: Any, rule: Any) -> list[tuple[str, str, str]]:
    """Path, level and message of each Problem."""
    problems = validated.find_problems(kind, spec, **rule.get("metadata", {}))
    return [(problem.path, problem.level, problem.message) for problem in problems]


@pytest.mark.parametrize("kind", TABLES)
def test_the_base_of_each_table_is_without_fault(kind: str) -> None:
    problems = validated.find_problems(kind, TABLES[kind]["base"])

    assert [problem.message for problem in problems] == TABLES[kind].get("always", [])


@pytest.mark.parametrize(("kind", "base", "rule"), RULES)
def test_a_rule_fires_where_it_is_broken(kind: str, base: Any, rule: Any) -> None:
    wanted = (rule["at"], rule.get("level", "error"), rule["says"])

    assert wanted in said(kind, {**base, **rule["fires"]}, rule)


@pytest.mark.parametrize(("kind", "base", "rule"), RULES)
def test_a_rule_is_quiet_close_by(kind: str, base: Any, rule: Any) -> None:
    messages = [message for _, _, message in said(kind, {**base, **rule.get("quiet", {})}, rule)]

    assert rule["says"] not in messages
