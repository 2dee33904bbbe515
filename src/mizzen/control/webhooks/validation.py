"""Validation on admission: the review of one of the mesh's objects, answered by the rules of `api.validate`.

In: a `Request`. Out: an `Answer`: refused with every error of the object, or allowed with its warnings. The same rules
judge files (`sources.judgement`), so that what is admitted is served. Fields that nobody knows are a warning, since an
API server drops them, but for those of policies, which would mean more without.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mizzen import observe
from mizzen.api.kinds import is_our_group, kind_of_api
from mizzen.api.problems import Problem
from mizzen.api.validate.faults import REFUSED_BY_SCHEMA, join_messages
from mizzen.control.webhooks.reviews import Answer, Request
from mizzen.sources.judgement import judge

_log = observe.scope("validation")
_LABELS = ("group", "version", "resource")
_PASSED = observe.Counter("galley_validation_passed", "Objects that were admitted.", _LABELS)
_FAILED = observe.Counter("galley_validation_failed", "Objects that were not.", (*_LABELS, "reason"))

_TOP = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


class _Verdict(NamedTuple):
    answer: Answer
    reason: str = ""
    """Why not, in the word that metrics have for it."""


def review(request: Request) -> Answer:
    """The answer; what is only tried is not counted."""
    verdict = _judge(request)
    if not request.dry_run:
        labels = (request.resource.group, request.resource.version, request.resource.resource)
        if verdict.reason:
            _FAILED.labels(*labels, verdict.reason).inc()
        else:
            _PASSED.labels(*labels).inc()
    if not verdict.answer.allowed:
        name = f"{request.kind.kind} {request.namespace}/{request.name}"
        _log.info("%s is refused%s: %s", name, " (dry run)" if request.dry_run else "", verdict.answer.message)
    return verdict.answer


def _judge(request: Request) -> _Verdict:
    if request.operation not in ("CREATE", "UPDATE"):
        return _Verdict(Answer(allowed=True), "unsupported_operation")
    raw = request.object
    if raw is None:
        return _refuse("cannot decode configuration: the review holds no object", "yaml_decode_error")
    group, version, kind = request.kind.group, request.kind.version, request.kind.kind
    if not is_our_group(group) or kind_of_api(group, kind) is None:
        return _refuse(f"unrecognized type {group}/{version}, Kind={kind}", "unknown_type")
    document = _named(raw, request)
    judgement = judge(document)
    errors = [problem for problem in judgement.problems if problem.level == "error" and not _is_of_top(problem)]
    if errors:
        decodes = judgement.decoded.outcome == "decoded" or all(problem.code == REFUSED_BY_SCHEMA for problem in errors)
        what = "configuration is invalid" if decodes else "error decoding configuration"
        message = f"{what}: {_join(errors, placed=not decodes)}"
        return _refuse(message, "invalid_resource" if decodes else "crd_conversion_error")
    unknown = sorted(raw.keys() - _TOP)
    if unknown and group.endswith(".istio.io"):
        where = f"{kind} resource {request.namespace}/{document['metadata']['name']}"
        return _refuse(f'unknown field "{unknown[0]}" on {where}', "invalid_resource")
    warnings = [problem for problem in judgement.problems if problem.level == "warning"]
    return _Verdict(Answer(allowed=True, warnings=tuple(map(_say, warnings))))


def _named(raw: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """The object under the name and in the namespace that it will have; a name that is yet to be made is made up."""
    metadata = raw.get("metadata")
    names = dict(metadata) if isinstance(metadata, Mapping) else {}
    made_up = f"{names.get('generateName') or 'unnamed-'}0"
    names["name"] = names.get("name") or request.name or made_up
    names["namespace"] = names.get("namespace") or request.namespace
    return {**raw, "metadata": names}


def _is_of_top(problem: Problem) -> bool:
    """Whether a Problem is about a field beside `spec`, for which there are words of their own."""
    return problem.code == "unknown-field" and "." not in problem.path


def _join(problems: Iterable[Problem], *, placed: bool) -> str:
    messages = [f"{each.path}: {each.message}" if placed and each.path else each.message for each in problems]
    return messages[0] if len(messages) == 1 else join_messages(messages)


def _say(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}" if problem.code == "unknown-field" else problem.message


def _refuse(message: str, reason: str) -> _Verdict:
    return _Verdict(Answer(allowed=False, message=message), reason)
