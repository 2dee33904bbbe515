"""What only the API server refuses: rules of a CRD's schema that no webhook repeats.

In: the Problems of `api.validate`. Out: MZ0004.
"""

from mizzen.analysis import own_codes
from mizzen.analysis.findings import Finding, report
from mizzen.analysis.rules import validation
from mizzen.api.meta import Key
from mizzen.api.validate import faults
from mizzen.incremental import Engine, query


@query
def check_schema(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Faults by the schema alone."""
    return tuple(
        report(own_codes.REFUSED_BY_SCHEMA, key, f"{problem.path}: {problem.message}", path=problem.path)
        for problem in validation.problems(db, key)
        if problem.code == faults.REFUSED_BY_SCHEMA
    )
