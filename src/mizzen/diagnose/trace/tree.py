"""A trace as a tree for people: side by side, link by link, with the verdict at the end.

In: a `Trace`. Out: lines of text. A step that fails is marked; what was passed over stands below what was chosen.
"""

from collections.abc import Iterator

from mizzen.diagnose.trace.verdict import Step, Trace

_MARKS = {"ok": "✓", "fails": "✗", "unsure": "?"}


def render(trace: Trace) -> str:
    """The tree and the verdict, each line closed by a newline."""
    return "".join(f"{line}\n" for line in (*_steps(trace), *_verdict(trace)))


def _steps(trace: Trace) -> Iterator[str]:
    side = None
    for step in trace.steps:
        if step.side != side:
            side = step.side
            yield side
        yield from _step(step)


def _step(step: Step) -> Iterator[str]:
    yield f"  {_MARKS[step.state]} {step.link:<12} {step.title}"
    for name, value in step.facts:
        yield f"      {name}: {value}"
    if step.object is not None:
        yield f"      from {step.object}"
    for passed in step.passed_over:
        yield f"      - {passed}"


def _verdict(trace: Trace) -> Iterator[str]:
    code = f" {trace.status}" if trace.status else ""
    flag = f" {trace.flag}" if trace.flag != "-" else ""
    details = f" {trace.details}" if trace.details else ""
    yield ""
    yield f"{trace.outcome.upper()}{code}{flag}{details}" + (f", by {trace.side}" if trace.side else "")
    if trace.reason:
        yield f"  why:        {trace.reason}"
    if trace.link:
        yield f"  link:       {trace.link}"
    if trace.cause is not None:
        yield f"  cause:      {trace.cause}"
    if trace.fix:
        yield f"  fix:        {trace.fix}"
    if not trace.certain:
        for thing in trace.depends_on:
            yield f"  depends on: {thing}"
