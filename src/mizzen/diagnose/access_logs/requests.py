"""Lines of one request, or of one connection, from several proxies.

In: entries with what each tells. Out: for each entry the one that explains it. A client's proxy often sees only that
the next one answered 403, or hung up; the next one's line says why. They meet in the request id, or in the two
addresses of the connection between them.
"""

from collections.abc import Sequence

from mizzen.diagnose.access_logs.lines import Entry
from mizzen.diagnose.access_logs.rules import Finding

_SYMPTOMS = frozenset({"program-answers", "client-gone", "connection-closed", "upstream-reset", "other"})
"""What one side sees of a cause that the other side knows."""
_BY_CONNECTION = frozenset({"connection-closed", "upstream-reset", "reset-at-connect", "tls-refused"})
"""What a client's proxy says of a server that would not have the connection."""


def explain(entries: Sequence[Entry], findings: Sequence[Finding | None]) -> list[int]:
    """For each entry the index of the entry that explains it, mostly its own."""
    causes: dict[str, int] = {}
    servers: dict[tuple[str, str], int] = {}
    for index, (entry, finding) in enumerate(zip(entries, findings, strict=True)):
        if finding is None:
            continue
        if entry.id and finding.code not in _SYMPTOMS:
            causes.setdefault(entry.id, index)
        if entry.is_inbound or (entry.is_connection and not entry.cluster):
            servers.setdefault((entry.remote, entry.local), index)
    return [
        _explained(index, entry, finding, causes, servers)
        for index, (entry, finding) in enumerate(zip(entries, findings, strict=True))
    ]


def _explained(
    index: int, entry: Entry, finding: Finding | None, causes: dict[str, int], servers: dict[tuple[str, str], int]
) -> int:
    if finding is None:
        return index
    if finding.code in _SYMPTOMS and entry.id in causes:
        return causes[entry.id]
    if finding.code in _BY_CONNECTION and entry.upstream_local:
        return servers.get((entry.upstream_local, entry.upstream), index)
    return index
