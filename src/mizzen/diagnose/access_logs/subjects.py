"""Whom an entry is about: the Service with port and subset, the host that was asked for.

In: entries. Out: `Subject`. A cluster's name says it outright; a server's log has it in the server name of the mesh's
mutual TLS. Of plain text, the entries of other proxies tell which host an authority or an endpoint belongs to: `Hosts`
learns that from all entries before any is judged.
"""

import re
from collections.abc import Iterable

import msgspec

from mizzen.diagnose.access_logs.addresses import host_asked, host_of, port_of
from mizzen.diagnose.access_logs.lines import Entry
from mizzen.model import names

_SERVICE = re.compile(r"^(?P<name>[^.]+)\.(?P<namespace>[^.]+)\.svc\.")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry is about, as far as names say."""

    host: str = ""
    """Of the Service or ServiceEntry, or the authority where no cluster was chosen."""
    port: int = 0
    subset: str = ""

    @property
    def service(self) -> tuple[str, str] | None:
        """Namespace and name of the Kubernetes Service that the host is."""
        found = _SERVICE.match(self.host)
        return (found["namespace"], found["name"]) if found is not None else None

    @property
    def short(self) -> str:
        """`NAME.NAMESPACE` of a Service, else the host."""
        service = self.service
        return f"{service[1]}.{service[0]}" if service is not None else self.host

    @property
    def whole(self) -> "Subject":
        """The same, whatever the subset."""
        return Subject(host=self.host, port=self.port)

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        subset = f" subset {self.subset}" if self.subset else ""
        return (names.bracketed(self.short) or "-") + port + subset


class Hosts:
    """Which Service port an authority, an endpoint or a connection stands for, learned from entries that know both."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by_authority: dict[str, Subject | None] = {}
        self._by_endpoint: dict[str, Subject | None] = {}
        self._by_ends: dict[tuple[str, str], Subject] = {}
        self._gateways: set[str] = set()
        self._sidecars: set[str] = set()
        for entry in entries:
            if is_gateway(entry):
                self._gateways.add(host_of(entry.local))
            elif entry.is_inbound:
                self._sidecars.add(host_of(entry.local))
            known = _stated(entry)
            if known is not None:
                plain = known.whole
                if entry.upstream_local and not entry.is_inbound:
                    self._by_ends[entry.upstream_local, entry.upstream] = plain
                _learn(self._by_authority, host_asked(entry.authority), plain)
                _learn(self._by_endpoint, entry.local if entry.is_inbound else entry.upstream, plain)

    def is_at_gateway(self, entry: Entry) -> bool:
        """Whether what the entry tells of arrived at an address that other entries know as a gateway's."""
        return host_of(entry.local) in self._gateways

    def is_at_sidecar(self, entry: Entry) -> bool:
        """The same of a pod with a sidecar."""
        return host_of(entry.local) in self._sidecars

    def subject(self, entry: Entry) -> Subject:
        """Whom the entry is about."""
        stated = _stated(entry)
        if stated is not None:
            return stated
        called = self._by_ends.get((entry.remote, entry.local))
        if called is not None:
            return called
        authority = host_asked(entry.authority)
        # Whom a connection without a filter chain was for is not known: others call the same endpoint.
        at = self._by_endpoint.get(entry.local) if entry.is_inbound else None
        known = self._by_authority.get(authority) or at
        if known is not None:
            return known
        sni = entry.sni if not entry.sni.startswith("outbound_.") else ""
        host = authority or sni or host_of(entry.local)
        return Subject(host=host, port=port_of(entry.local))


def is_gateway(entry: Entry) -> bool:
    """Whether a gateway logs: it is reached at its own address, and calls on behalf of somebody else.

    A sidecar's outbound entries have the destination as local address and the pod's own as remote; what reaches a
    server's sidecar goes to an inbound cluster, or to none where no filter chain took it.
    """
    if entry.is_inbound or entry.is_connection:
        return False
    own = host_of(entry.upstream_local)
    return bool(entry.forwarded) or (bool(own) and own == host_of(entry.local))


def _learn(known: dict[str, Subject | None], key: str, subject: Subject) -> None:
    """What stands for two Services stands for none."""
    if key:
        known[key] = subject if known.get(key, subject) == subject else None


def _stated(entry: Entry) -> Subject | None:
    """By the cluster's name, or the server name by which one sidecar calls another."""
    key = names.parse_subset_key(entry.cluster) if entry.cluster else None
    if key is not None and key.direction == names.OUTBOUND:
        return Subject(host=key.host, port=key.port, subset=key.subset)
    called = names.parse_subset_key(entry.sni) if entry.sni.startswith("outbound_.") else None
    return Subject(host=called.host, port=called.port, subset=called.subset) if called is not None else None
