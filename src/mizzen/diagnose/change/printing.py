"""A report for people: text for a terminal, Markdown for a comment on a pull request.

In: a `Report`. Out: text. Markdown keeps long lists folded, cuts itself below the size that GitHub takes, and begins
with `MARK`, by which the comment is found again.
"""

import html
from collections.abc import Iterable, Iterator, Sequence

from mizzen.diagnose.change.changes import few, plural
from mizzen.diagnose.change.classes import ProxyClass
from mizzen.diagnose.change.probes import Probed
from mizzen.diagnose.change.report import Report, headline

MARK = "<!-- mizzen diff -->"
_LIMIT = 60_000
_MOST = 25
_WORTH_SHARING = 3
_SAME = "Nothing that a proxy is told changes."


def render_text(report: Report) -> str:
    """For a terminal."""
    return "\n".join(_text_lines(report)) + "\n"


def _text_lines(report: Report) -> Iterator[str]:
    yield f"{report.old} → {report.new}: {summary(report)}"
    yield from _section("edited", report.edited)
    for each in report.classes:
        yield ""
        yield f"{each.name}: {headline(each.forecast)}  ({amount(each.pushed)})"
        yield from _indent(_few(list(change_lines(report, each))))
        yield from _indent(f"! {line}" for line in forecast_lines(each))
        if each.objects:
            yield f"  by {', '.join(each.objects)}"
    yield from _section("pods that go", report.pods.gone)
    yield from _section("pods that come", report.pods.new)
    yield from _section("new findings", [f"{f.level} [{f.code}] {f.object}: {f.message}" for f in report.findings])
    yield from _section("probes", [probe_line(probe) for probe in report.probes])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{title}:"
        yield from _indent(_few(lines))


def _indent(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _few(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"and {len(lines) - _MOST} more"


def summary(report: Report) -> str:
    """One sentence."""
    if report.is_same:
        return _SAME
    words = [f"{report.told} of {plural(report.proxies, 'proxy')} are told {amount(report.pushed)}"]
    if report.cut:
        words.append(f"open connections are cut at {report.cut}")
    elif not report.pods.gone:
        words.append("no open connection is cut")
    if report.pods.gone:
        words.append(f"{plural(len(report.pods.gone), 'pod')} gone")
    if report.findings:
        words.append(plural(len(report.findings), "new finding"))
    changed = sum(probe.is_changed for probe in report.probes)
    if changed:
        words.append(f"{plural(changed, 'probe')} with another verdict")
    return ", ".join(words) + "."


def amount(number: int) -> str:
    """Bytes as people read them."""
    if number < 10_000:
        return f"{number} B"
    return f"{number / 1000:.0f} kB" if number < 10_000_000 else f"{number / 1_000_000:.0f} MB"


def change_lines(report: Report, one: ProxyClass) -> Iterator[str]:
    """The changes of a class; those that it shares with one that was told of before are not told again."""
    own = set(one.changes)
    known: ProxyClass | None = None
    for each in report.classes[: report.classes.index(one)]:
        if len(each.changes) >= _WORTH_SHARING and own.issuperset(each.changes):
            known = each if known is None or len(each.changes) > len(known.changes) else known
    told = frozenset(known.changes) if known is not None else frozenset()
    yield from (str(change) for change in one.changes if change not in told)
    if known is not None:
        yield f"and the {plural(len(known.changes), 'change')} of {known.name}"


def forecast_lines(one: ProxyClass) -> Iterator[str]:
    """What happens to connections, and to TLS."""
    yield from (str(each) for each in one.forecast.listeners if each.cuts)
    if one.forecast.warmed:
        yield f"warms up: {few(one.forecast.warmed)}; requests under way go on, idle connections are opened anew"
    yield from (f"TLS {each}" for each in one.forecast.tls)


def probe_line(probe: Probed) -> str:
    """One probe in both states."""
    verdict = f"{probe.before} → {probe.after}" if probe.is_changed else f"{probe.after}, as before"
    cause = f" by {probe.after.cause}" if probe.is_changed and probe.after.cause else ""
    fate = probe.connection
    open_one = f"; an open connection {fate.outcome}" if fate.outcome != "none" else ""
    return f"{probe.name}: {verdict}{cause}{open_one}" + (f" ({fate.why})" if fate.why else "")


# -- Markdown ---------------------------------------------------------------------------------------------------------


def render_markdown(report: Report) -> str:
    """For a pull request."""
    text = "\n".join(_markdown_lines(report)) + "\n"
    if len(text) <= _LIMIT:
        return text
    kept = text[: text.rindex("\n", 0, _LIMIT)]
    closing = "\n\n</details>" if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{closing}\n\n… and more: run `mizzen diff` to see it all.\n"


def _markdown_lines(report: Report) -> Iterator[str]:
    yield MARK
    yield f"### Mesh: {summary(report)}"
    if report.classes:
        yield ""
        yield "| Proxies | Effect on connections | Push | Objects |"
        yield "|---|---|---|---|"
        for each in report.classes:
            objects = "<br>".join(map(_plain, _few(each.objects)))
            yield f"| {_plain(each.name)} | {headline(each.forecast)} | {amount(each.pushed)} | {objects} |"
    for each in report.classes:
        lines = [*change_lines(report, each), *(f"⚠ {line}" for line in forecast_lines(each))]
        yield from _folded(f"{each.name}: {plural(len(each.changes), 'change')}", lines)
    yield from _folded("Pods that go", report.pods.gone)
    yield from _folded("Pods that come", report.pods.new)
    if report.findings:
        yield ""
        yield "**New findings**"
        yield ""
        for found in report.findings[:_MOST]:
            where = f" {_code(found.place or found.object)}" if found.place or found.object else ""
            yield f"- {found.level} `{found.code}`{where}: {_plain(found.message)}"
        if len(report.findings) > _MOST:
            yield f"- and {len(report.findings) - _MOST} more"
    if report.probes:
        yield from _probe_table(report.probes)


def _folded(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"<details><summary>{_html(title)}</summary>"
        yield ""
        yield from (f"- {_plain(line)}" for line in _few(lines))
        yield ""
        yield "</details>"


def _probe_table(probes: Sequence[Probed]) -> Iterator[str]:
    yield ""
    yield "| Probe | Before | After | Open connection |"
    yield "|---|---|---|---|"
    for probe in probes[:_MOST]:
        after = f"**{probe.after}** {_plain(probe.after.cause)}".strip() if probe.is_changed else str(probe.after)
        yield f"| {_plain(probe.name)} | {probe.before} | {after} | {probe.connection.outcome} |"
    if len(probes) > _MOST:
        yield f"| and {len(probes) - _MOST} more | | | |"


def _html(text: str) -> str:
    """Text of others in which no HTML comes to life, and nobody is called."""
    return html.escape(text, quote=False).replace("\n", " ").replace("@", "@\u200b")


def _plain(text: str) -> str:
    """The same where Markdown is read."""
    for sign in "\\`*_[]|#~":
        text = text.replace(sign, f"\\{sign}")
    return _html(text)


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
