"""Expectations held against what was seen.

In: an `Expect` and a `Seen`. Out: the mismatches, each with what was wanted and what there is instead. Of several
workloads that may be reached each must be the one that is expected.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from mizzen.diagnose.expectations.seen import Seen
from mizzen.diagnose.expectations.tables import Expect, Headers, spell

_INDEX = re.compile(r"\[\d+\]$")


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """One expectation that does not hold."""

    field: str
    expected: str
    actual: str


def check(expect: Expect, seen: Seen) -> tuple[Mismatch, ...]:
    """All that differs."""
    return tuple(_differences(expect, seen))


def _differences(expect: Expect, seen: Seen) -> Iterator[Mismatch]:
    for field, actual in _plain(seen).items():
        wanted = getattr(expect, field)
        if wanted is not None and not _FITS.get(field, _equal)(wanted, actual):
            yield Mismatch(field=field, expected=_show(wanted), actual=_show(actual))
    if expect.destination is not None and not _reaches(expect.destination, seen):
        yield Mismatch(field="destination", expected=expect.destination, actual=_destinations(seen))
    if expect.shares is not None:
        yield from _check_shares(expect.shares, seen)
    arrived = {} if seen.message is None else dict(seen.message.headers)
    if expect.request is not None:
        if seen.message is None:
            yield Mismatch(field="request", expected="arrives", actual="no request arrives at a program")
        else:
            values = {name: seen.message.header(name) for name in (*arrived, *(n.lower() for n in expect.request))}
            yield from _check_headers("request", expect.request, values)
    if expect.response is not None:
        yield from _check_headers("response", expect.response, seen.response)


def _plain(seen: Seen) -> dict[str, Any]:
    """What is compared as it stands."""
    trace, message = seen.trace, seen.message
    return {
        "outcome": trace.outcome,
        "status": trace.status,
        "flag": trace.flag,
        "details": trace.details,
        "subset": seen.target.subset if seen.target is not None else "",
        "path": message.path if message is not None else "",
        "host": message.authority if message is not None else "",
        "location": seen.location,
        "policy": seen.policy,
        "cause": f"{trace.cause.kind} {trace.cause.namespace}/{trace.cause.name}" if trace.cause is not None else "",
        "timeout": seen.timeout,
        "retries": seen.retries,
        "certain": trace.certain,
    }


def _equal(wanted: Any, actual: Any) -> bool:
    return bool(wanted == actual)


def _same_flags(wanted: str, actual: str) -> bool:
    return set(wanted.split(",")) == set(actual.split(","))


def _same_policy(wanted: str, actual: str) -> bool:
    return wanted in (actual, _INDEX.sub("", actual))


_FITS: Mapping[str, Callable[[Any, Any], bool]] = {"flag": _same_flags, "policy": _same_policy}
"""The order of flags says nothing; a policy may be named without its rule."""


def _reaches(wanted: str, seen: Seen) -> bool:
    if seen.target is not None and wanted in (seen.target.service, str(seen.target)):
        return True
    return bool(seen.workloads) and all(_belongs(pod, wanted) for pod in seen.workloads)


def _belongs(pod: str, workload: str) -> bool:
    """Whether the pod is of that name, or of the workload of that name."""
    if pod == workload:
        return True
    name, _, namespace = workload.rpartition(".")
    own, _, space = pod.rpartition(".")
    return space == namespace and own.startswith(f"{name}-")


def _destinations(seen: Seen) -> str:
    target = [str(seen.target)] if seen.target is not None else []
    pods = f"pods {', '.join(seen.workloads)}" if seen.workloads else ""
    return "; ".join([*target, *([pods] if pods else [])])


def _check_shares(wanted: Mapping[str, int], seen: Seen) -> Iterator[Mismatch]:
    left = dict(seen.shares) or ({seen.target: 100} if seen.target is not None else {})
    all_weights = sum(left.values())
    shown = ", ".join(f"{target} {weight}" for target, weight in left.items())
    total = sum(wanted.values())
    for name, weight in wanted.items():
        meant = [target for target in left if target.answers_to(name)]
        found = sum(left.pop(target) for target in meant)
        if found * total != weight * all_weights:
            yield Mismatch(field=f"shares.{name}", expected=str(weight), actual=shown or "no split")
    if any(left.values()):
        rest = ", ".join(f"{target} {weight}" for target, weight in left.items())
        yield Mismatch(field="shares", expected="no others", actual=rest)


def _check_headers(field: str, wanted: Headers, actual: Mapping[str, str | None]) -> Iterator[Mismatch]:
    for name, value in wanted.items():
        found = actual.get(name.lower())
        text = None if value is None else spell(value)
        if text != found:
            yield Mismatch(field=f"{field}.{name}", expected=_show(text), actual=_show(found))


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    return "none" if value == "" else spell(value)
