"""Validation against the recordings: over the whole corpus it says what the reference's analyzer said, word for word.

The analyzer's codes for what validation finds are IST0106 (refused), IST0133 (warned of), IST0130 and IST0131 (rules
and matches of VirtualServices that nothing reaches). It sees objects without labels and annotations.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mizzen.api.decode import decode_object
from mizzen.api.kinds import kind_named
from mizzen.api.meta import ObjectMeta
from mizzen.api.problems import Problem
from mizzen.api.validate import faults
from mizzen.api.validate.objects import validate_object
from mizzen.sources import documents

CORPUS = Path(__file__).parents[3] / "golden" / "corpus"
CASES = sorted(
    path for path in CORPUS.glob("*/*.yaml") if path.with_suffix(".expected").joinpath("analyze.json").exists()
)
CODES = {
    faults.REFUSED: ("IST0106", "Schema validation error: {}"),
    faults.QUESTIONABLE: ("IST0133", "Schema validation warning: {}"),
    faults.UNREACHABLE_RULE: ("IST0130", "{}"),
    faults.INEFFECTIVE_MATCH: ("IST0131", "{}"),
}

Finding = tuple[str, str, str]


def objects_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of the corpus."""
    chunks = documents.split_yaml(path.read_text())
    found = [document.value for chunk in chunks for document in documents.parse_yaml(chunk.text)]
    return [value for value in found if value and "kind" in value]


def problems_of(path: Path, *, with_metadata: bool) -> list[Problem]:
    """What validation says of the objects of a file."""
    problems: list[Problem] = []
    for raw in objects_of(path):
        decoded = decode_object(raw)
        if decoded.object is None or decoded.key is None:
            continue
        found = decoded.object
        if not with_metadata:
            bare: ObjectMeta = type(found.metadata)(name=found.metadata.name, namespace=found.metadata.namespace)
            found = msgspec.structs.replace(found, metadata=bare)
        problems += validate_object(decoded.key, found)
    return problems


def findings_of(path: Path) -> set[Finding]:
    """Code, message and object, as the analyzer would tell them."""
    found: set[Finding] = set()
    for problem in problems_of(path, with_metadata=False):
        if problem.code in CODES:
            code, form = CODES[problem.code]
            found.add((code, form.format(problem.message), str(problem.key)))
    return found


def recorded(findings: list[dict[str, Any]]) -> set[Finding]:
    """The recorded findings of validation."""
    codes = {code for code, _ in CODES.values()}
    return {(each["code"], each["message"], each["origin"]) for each in findings if each["code"] in codes}


@pytest.fixture(scope="module")
def base() -> set[Finding]:
    return findings_of(CORPUS / "base.yaml")


def test_the_base_is_judged_as_recorded(base: set[Finding]) -> None:
    assert base == recorded(json.loads((CORPUS / "base" / "analyze.json").read_text()))


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_every_case_is_judged_as_recorded(path: Path, base: set[Finding]) -> None:
    expected = json.loads(path.with_suffix(".expected").joinpath("analyze.json").read_text())

    assert findings_of(path) - base == recorded(expected["added"]) - base


def test_a_schema_refuses_nothing_that_was_recorded() -> None:
    refused = [
        problem
        for path in CASES
        for problem in problems_of(path, with_metadata=True)
        if problem.code == faults.REFUSED_BY_SCHEMA and problem.key is not None
    ]

    # The recordings were made of objects of Istio that an API server with these CRDs had taken.
    assert [problem for problem in refused if kind_named(problem.key.kind).group.endswith(".istio.io")] == []


def test_admission_refuses_the_annotations_that_the_notes_say_it_refuses() -> None:
    refused = {
        (path.stem, str(problem.key))
        for path in CASES
        for problem in problems_of(path, with_metadata=True)
        if problem.code == faults.REFUSED_METADATA
    }

    assert refused == {
        ("authz-custom-grpc", "AuthorizationPolicy pay/iso-trial"),
        ("authz-dry-run", "AuthorizationPolicy shop/real-deny-typo"),
        ("authz-dry-run", "AuthorizationPolicy shop/try-audit"),
    }
