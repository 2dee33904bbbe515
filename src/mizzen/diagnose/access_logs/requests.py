"""Lines of one request, or of one connection, from several proxies.

In: entries with what each tells. Out: for each entry the one that explains it. A client's proxy often sees only that
the next one answered 403, or hung up; the next one's line says why. They meet in the request id, or in the two
addresses of the connection between them.
"""

from collections.abc import Sequence

from mizzen.diagnose.access_logs.addresses import host_of
from mizzen.diagnose.access_logs.lines import Entry
from mizzen.diagnose.access_logs.rules import Finding

_SYMPTOMS = frozenset({"program-answers", "client-gone", "connection-closed", "upstream-reset", "other"})
"""What one side sees of a cause that the other side knows."""
_HEARD = frozenset({"program-answers", "client-gone"})
"""Of these, what one proxy hears from the next."""
_REFUSED = frozenset({"connection-closed", "upstream-reset"})
"""What a client's proxy says of a server that would not have the connection, once it was there."""
_FAILED_HELLO = frozenset({"tls-to-plain", "tls-refused"})
"""What a client's proxy says of a handshake; it does not log its own address then."""
_UNREADABLE = frozenset({"client-protocol", "tls-unknown-to-server", "no-server-name"})
"""What a server's proxy says of such a handshake."""

Ends = tuple[str, str]
"""The two addresses of a connection."""


class _Known:
    """The entries that explain others."""

    def __init__(self, entries: Sequence[Entry], findings: Sequence[Finding | None]) -> None:
        self.causes: dict[str, int] = {}
        self.nearer: dict[str, int] = {}
        self.servers: dict[Ends, int] = {}
        self.hellos: dict[Ends, int] = {}
        for index, (entry, finding) in enumerate(zip(entries, findings, strict=True)):
            if finding is None:
                continue
            if entry.id and finding.code not in _SYMPTOMS:
                self.causes.setdefault(entry.id, index)
            elif entry.id and entry.is_inbound and finding.code not in _HEARD:
                self.nearer.setdefault(entry.id, index)
            if entry.is_inbound or (entry.is_connection and not entry.cluster):
                self.servers.setdefault((entry.remote, entry.local), index)
            if finding.code in _FAILED_HELLO:
                # A sidecar's pod is the remote side, a gateway's own address the local one.
                self.hellos.setdefault((host_of(entry.remote), entry.upstream), index)
                self.hellos.setdefault((host_of(entry.local), entry.upstream), index)

    def explaining(self, index: int, entry: Entry, finding: Finding) -> int:
        """The entry that explains this one."""
        if finding.code in _SYMPTOMS and entry.id in self.causes:
            return self.causes[entry.id]
        if finding.code == "program-answers" and entry.id in self.nearer:
            return self.nearer[entry.id]
        if finding.code in _REFUSED and entry.upstream_local:
            return self.servers.get((entry.upstream_local, entry.upstream), index)
        if finding.code in _UNREADABLE:
            return self.hellos.get((host_of(entry.remote), entry.local), index)
        return index


def explain(entries: Sequence[Entry], findings: Sequence[Finding | None]) -> list[int]:
    """For each entry the index of the entry that explains it, mostly its own."""
    known = _Known(entries, findings)
    pairs = enumerate(zip(entries, findings, strict=True))
    return [index if f is None else known.explaining(index, entry, f) for index, (entry, f) in pairs]
