"""What a log tells, for people and programs.

In: a `Survey` and whom each group is laid to. Out: text lines with one block for each group, the largest first; plain
values.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mizzen.diagnose.access_logs import flags
from mizzen.diagnose.access_logs.blame import Blame
from mizzen.diagnose.access_logs.groups import Group, Survey
from mizzen.diagnose.table import Table

_WIDEST = 240


def build_table(survey: Survey, blames: Sequence[Blame]) -> Table:
    """One row a group."""
    columns = ("COUNT", "FLAGS", "CAUSE", "WHERE", "OBJECT")
    rows = tuple(_row(group, blame) for group, blame in zip(survey.groups, blames, strict=True))
    return Table(columns=columns, rows=rows, padding=2)


def _row(group: Group, blame: Blame) -> tuple[str, ...]:
    return str(group.count), _flags(group), visible(title(group)), visible(_where(group)), visible(str(blame))


def _where(group: Group) -> str:
    return f"{group.hosts} hosts" if group.hosts > 1 else str(group.subject)


def _flags(group: Group) -> str:
    return visible(" ".join(group.seen[0][0].split(" ")[:2])) if group.seen else "-"


def title(group: Group) -> str:
    """The cause in words, with what sets it apart."""
    mark = f" ({group.mark})" if group.mark and not group.mark.startswith("ns[") else ""
    return group.explanation.title + mark


def describe(group: Group, blame: Blame) -> Iterator[str]:
    """One group in full, as lines that do nothing to a terminal, whatever the log holds."""
    return map(visible, _described(group, blame))


def visible(text: str) -> str:
    """The text with escapes in place of what is no printable character."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _described(group: Group, blame: Blame) -> Iterator[str]:
    yield f"{group.count} x {_where(group)}: {title(group)}"
    for name in sorted(group.example.flags):
        if name in flags.FLAGS:
            yield f"  flag     {name} ({flags.FLAGS[name].name}): {flags.FLAGS[name].meaning}"
    for text, number in group.seen:
        yield f"  logged   {number} x {text}"
    sure = ", as configuration says too" if blame.confirmed else ""
    yield f"  object   {blame}{sure}"
    if blame.also:
        yield f"  or       {', '.join(blame.also)}"
    if blame.reason:
        yield f"  why      {blame.reason}"
    yield f"  ask      {group.explanation.question}"
    yield f"  fix      {blame.fix or group.explanation.remedy}"
    yield f"  example  {group.example.line[:_WIDEST]}"


def summarize(survey: Survey) -> str:
    """The whole in one line."""
    told = sum(group.count for group in survey.groups)
    return (
        f"{survey.lines} lines: {survey.healthy} fine, {told} with {len(survey.groups)} causes, "
        f"{survey.unknown} that are no access log"
    )


def to_json(survey: Survey, blames: Sequence[Blame]) -> Mapping[str, Any]:
    """All as plain values."""
    return {
        "lines": survey.lines,
        "healthy": survey.healthy,
        "unknown": survey.unknown,
        "groups": [_group(group, blame) for group, blame in zip(survey.groups, blames, strict=True)],
    }


def _group(group: Group, blame: Blame) -> dict[str, Any]:
    return {
        "cause": group.code,
        "mark": group.mark,
        "title": group.explanation.title,
        "link": group.explanation.link,
        "count": group.count,
        "hosts": group.hosts,
        "subject": msgspec.to_builtins(group.subject),
        "object": msgspec.to_builtins(blame),
        "first": group.first,
        "last": group.last,
        "seen": [{"line": text, "count": number} for text, number in group.seen],
        "question": group.explanation.question,
        "fix": blame.fix or group.explanation.remedy,
        "sure": group.sure,
        "example": group.example.line,
    }
