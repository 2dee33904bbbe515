"""Thousands of entries as a few causes.

In: lines, or entries. Out: `Survey`: how many lines there were, how many tell of nothing wrong, how many are no access
log, and `Group`s, the largest first. A group is one cause with one object: flag and details may differ between its
lines, as one fault looks different from both sides.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from mizzen.diagnose.access_logs import requests, rules
from mizzen.diagnose.access_logs.addresses import host_of
from mizzen.diagnose.access_logs.causes import CAUSES
from mizzen.diagnose.access_logs.explanation import Explanation
from mizzen.diagnose.access_logs.lines import Entry, parse_line
from mizzen.diagnose.access_logs.rules import Finding
from mizzen.diagnose.access_logs.subjects import Hosts, Subject, is_gateway

_ALWAYS = 3
"""So many closed connections without one good answer are no accident."""
_AT_ONCE = 1000
"""Milliseconds within which a server closes that does not want the connection."""
_HOSTS = 50
"""Beyond so many hosts that no cluster knows, the rest is one group: somebody tries names."""
_NO_CHAIN = frozenset({"plain-to-strict", "tls-unknown-to-server", "no-server-name"})
_UNKNOWN = frozenset({"no-route", "no-server-name", "registry-only"})
"""Causes whose hosts the clients choose."""
_WITHOUT_HOST = frozenset({"client-protocol", "bad-request", "slow-client", "old-http", "overload", "health-check"})
"""Causes that are the client's or the proxy's, whatever was asked for."""
_BY_RULE = frozenset({"denied-by-rule"})
"""Causes whose mark names the object, so that the Service does not matter."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One cause, and the entries that tell of it."""

    code: str
    mark: str = ""
    """What sets it apart from others of its code: the policy's rule, the token's fault, the program's status."""
    subject: Subject
    hosts: int = 1
    """More than 1 where many hosts stand together."""
    count: int
    first: str
    last: str
    example: Entry
    seen: tuple[tuple[str, int], ...] = ()
    """Status, flags and details as they stand in the lines, with their numbers."""
    sure: bool = True
    """False where lines of other proxies could tell more."""

    @property
    def explanation(self) -> Explanation:
        """The cause in words."""
        return CAUSES[self.code]


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """A whole log."""

    lines: int
    healthy: int
    unknown: int
    """Lines that are no access log."""
    groups: tuple[Group, ...]


Key = tuple[str, str, Subject]
Place = tuple[str, int, str]
"""Host and port of a Service, and the client's address."""


def survey(lines: Iterable[str]) -> Survey:
    """What a log tells."""
    entries, unknown = [], 0
    for line in lines:
        if not line.strip():
            continue
        entry = parse_line(line)
        if entry is None:
            unknown += 1
        else:
            entries.append(entry)
    groups, healthy = group(entries)
    return Survey(lines=len(entries) + unknown, healthy=healthy, unknown=unknown, groups=tuple(groups))


def group(entries: Sequence[Entry]) -> tuple[list[Group], int]:
    """The groups, the largest first, and how many entries tell of nothing wrong."""
    found: dict[Key, list[int]] = {}
    keys = assign(entries)
    for index, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, []).append(index)
    groups = [_build(key, indexes, number, entries) for key, indexes, number in _fold(found)]
    return sorted(groups, key=lambda g: (-g.count, g.code, str(g.subject))), keys.count(None)


def assign(entries: Sequence[Entry]) -> list[Key | None]:
    """For each entry its cause with mark and subject; None where nothing is wrong."""
    findings = [rules.find(entry) for entry in entries]
    hosts = Hosts(entries)
    explaining = requests.explain(entries, findings)
    closed = _refusing_servers(entries, findings, explaining, hosts)
    keys: list[Key | None] = []
    for index, finding in enumerate(findings):
        if finding is None:
            keys.append(None)
            continue
        entry = entries[explaining[index]]
        told = _told(findings[explaining[index]] or finding, entry, hosts)
        subject = hosts.subject(entry)
        if told.code == "connection-closed" and _place(entry, subject) in closed:
            told = Finding("plain-to-strict")
        keys.append(_key(told, subject))
    return keys


def _told(finding: Finding, entry: Entry, hosts: Hosts) -> Finding:
    """Where no filter chain was found, the kind of proxy says what was missing."""
    if finding.code not in _NO_CHAIN or not entry.is_connection:
        return finding
    if hosts.is_at_gateway(entry):
        return Finding("no-server-name", entry.sni)
    if finding.code == "no-server-name" and hosts.is_at_sidecar(entry):
        return Finding("tls-unknown-to-server")
    return finding


def _place(entry: Entry, subject: Subject) -> Place:
    return subject.host, subject.port, host_of(entry.local if is_gateway(entry) else entry.remote)


def _key(finding: Finding, subject: Subject) -> Key:
    if finding.code in _BY_RULE or finding.code in _WITHOUT_HOST:
        return finding.code, finding.mark, Subject()
    return finding.code, finding.mark, subject if finding.code == "empty-subset" else subject.whole


def _refusing_servers(
    entries: Sequence[Entry], findings: Sequence[Finding | None], explaining: Sequence[int], hosts: Hosts
) -> set[Place]:
    """Ports that close all connections of a client at once, as a STRICT server does to what is not the mesh's."""
    closed: Counter[Place] = Counter()
    served: set[Place] = set()
    for index, (entry, finding) in enumerate(zip(entries, findings, strict=True)):
        if entry.is_inbound or not entry.cluster:
            continue
        place = _place(entry, hosts.subject(entry))
        at_once = entry.duration < _AT_ONCE and not entry.failure
        if finding is not None and finding.code == "connection-closed" and explaining[index] == index and at_once:
            closed[place] += 1
        elif entry.upstream and "via_upstream" in entry.details:
            served.add(place)
    return {place for place, number in closed.items() if number >= _ALWAYS and place not in served}


def _fold(found: dict[Key, list[int]]) -> list[tuple[Key, list[int], int]]:
    """Of hosts that clients made up, those with the most lines stay by themselves; the rest of a cause is one group."""
    result = [(key, indexes, 1) for key, indexes in found.items() if key[0] not in _UNKNOWN]
    for code in sorted(_UNKNOWN):
        keys = sorted((key for key in found if key[0] == code), key=lambda key: (-len(found[key]), str(key[2]), key[1]))
        result += [(key, found[key], 1) for key in keys[:_HOSTS]]
        rest = keys[_HOSTS:]
        if rest:
            together = sorted(index for key in rest for index in found[key])
            result.append(((code, "", Subject()), together, len(rest)))
    return result


def _build(key: Key, indexes: Sequence[int], hosts: int, entries: Sequence[Entry]) -> Group:
    code, mark, subject = key
    own = [entries[index] for index in indexes]
    seen = Counter(_seen(entry) for entry in own)
    example = _example(code, own)
    times = sorted(entry.time for entry in own if entry.time)
    return Group(
        code=code,
        mark=mark,
        subject=subject,
        hosts=hosts,
        count=len(own),
        first=times[0] if times else "",
        last=times[-1] if times else "",
        example=example,
        seen=tuple(seen.most_common(4)),
        sure=code not in ("other", "upstream-reset", "connect-failed"),
    )


def _example(code: str, own: Sequence[Entry]) -> Entry:
    """The first line that tells of the cause by itself; where a server has no chain, its client's line knows more."""
    called = next((entry for entry in own if entry.cluster.startswith("outbound|")), None)
    if code in _NO_CHAIN and called is not None:
        return called
    for entry in own:
        finding = rules.find(entry)
        if finding is not None and finding.code == code:
            return entry
    return own[0]


def _seen(entry: Entry) -> str:
    flags = ",".join(sorted(entry.flags)) or "-"
    details = entry.details or entry.termination or "-"
    return f"{entry.status} {flags} {details}"
