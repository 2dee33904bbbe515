"""Validation: what admission refuses or warns of, as findings.

In: objects of Istio's kinds, held against `api.validate` without their labels and annotations, as the reference does.
Out: IST0106, IST0133, IST0130, IST0131. What only a CRD's schema refuses is not the reference's to say: `own.schema`.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from mizzen.analysis import catalogue
from mizzen.analysis.findings import Finding, Message, report
from mizzen.api.meta import Key, Object
from mizzen.api.problems import Problem
from mizzen.api.validate import faults
from mizzen.api.validate.objects import validate_object
from mizzen.incremental import Engine, query

_UNREACHABLE = re.compile(r"virtualService rule (.+?) not used \((.*)\)", re.DOTALL)
_INEFFECTIVE = re.compile(
    r"virtualService rule (.+?) match (.+?) is not used \(duplicate/overlapping match in rule (.*)\)", re.DOTALL
)
_SPECIAL: Mapping[str, tuple[re.Pattern[str], Message]] = {
    faults.UNREACHABLE_RULE: (_UNREACHABLE, catalogue.VIRTUAL_SERVICE_UNREACHABLE_RULE),
    faults.INEFFECTIVE_MATCH: (_INEFFECTIVE, catalogue.VIRTUAL_SERVICE_INEFFECTIVE_MATCH),
}


@query
def problems(db: Engine, key: Key) -> tuple[Problem, ...]:
    """All that is wrong with an object by itself."""
    found: Object | None = db.input(key)
    if found is None:
        return ()
    bare = type(found.metadata)(name=found.metadata.name, namespace=found.metadata.namespace)
    return validate_object(key, msgspec.structs.replace(found, metadata=bare))


@query
def check_object(db: Engine, key: Key) -> tuple[Finding, ...]:
    """What the webhook would say of an object."""
    return tuple(finding for problem in problems(db, key) for finding in _translate(key, problem))


def _translate(key: Key, problem: Problem) -> Iterator[Finding]:
    if problem.code in _SPECIAL:
        pattern, message = _SPECIAL[problem.code]
        match = pattern.fullmatch(problem.message)
        if match is not None:
            yield report(message, key, *match.groups(), path=problem.path)
            return
    if problem.code == faults.REFUSED:
        yield report(catalogue.SCHEMA_VALIDATION_ERROR, key, problem.message, path=problem.path)
    elif problem.code not in (faults.REFUSED_BY_SCHEMA, faults.REFUSED_METADATA):
        yield report(catalogue.SCHEMA_WARNING, key, problem.message, path=problem.path)
