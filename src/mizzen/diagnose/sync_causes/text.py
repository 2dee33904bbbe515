"""Findings for people.

In: findings, and what differs between what proxies were sent and what they hold. Out: lines of text.
"""

from collections.abc import Iterator, Mapping, Sequence

from mizzen.diagnose.sync_causes.scope import Finding

_SHOWN = 5


def render(findings: Sequence[Finding], drift: Mapping[str, Sequence[str]], proxies: int) -> str:
    """One paragraph for each finding; `drift` tells by proxy the kinds of resources that differ."""
    lines = [line for finding in findings for line in _finding(finding)]
    for name, kinds in drift.items():
        if kinds:
            lines.append(f"{name} holds other {', '.join(kinds)} than it would be sent: `mizzen proxy-status {name}`")
        else:
            lines.append(f"{name} holds what it would be sent")
    if not lines:
        lines = [f"{proxies} prox{'y is' if proxies == 1 else 'ies are'} in step with what was sent"]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding) -> Iterator[str]:
    what = f"{finding.type} {finding.state}" if finding.type else finding.state
    names = ", ".join(finding.proxies[:_SHOWN])
    more = f" and {len(finding.proxies) - _SHOWN} more" if len(finding.proxies) > _SHOWN else ""
    yield f"{what} at {len(finding.proxies)} of {finding.watching}: {names}{more}"
    yield f"  fault: {finding.culprit}"
    yield f"  why:   {finding.why}"
    yield from (f"         {line}" for line in finding.evidence)
    yield from (f"  by:    {line}" for line in finding.objects)
    if finding.next:
        yield f"  next:  {finding.next}"
