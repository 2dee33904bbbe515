"""The name table: which addresses the mesh gives a host name.

In: Istio's `NameTable` message, the proxy's domain and the search domains of its resolv.conf. Out: `Names.find`, which
says for a name what is known, as the application's resolver would have to ask: in full, short within its namespace,
or with a search domain behind it. Pure; queries and packets are in `dns`.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from google.protobuf.message import DecodeError as WireError

from mizzen import protos
from mizzen.errors import DecodeError

_KUBERNETES = "Kubernetes"

_nds = protos.package("istio.networking.nds.v1")


class Host(msgspec.Struct, frozen=True):
    """The addresses of one host, and how Kubernetes abbreviates it."""

    ipv4: tuple[str, ...]
    ipv6: tuple[str, ...]
    short: str = ""
    """Name without namespace, for Kubernetes' own hosts; else empty."""
    namespace: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What is known of a name; `alias` is the name that it stands for, where it was asked with a search domain."""

    host: Host
    alias: str = ""


class Names:
    """An immutable table of host names in lower case, without a final dot."""

    def __init__(self, hosts: Mapping[str, Host], *, domain: str = "", search: Sequence[str] = ()) -> None:
        self._hosts = hosts
        namespace, _, rest = domain.partition(".svc.")
        self._namespace = namespace if rest else ""
        self._suffix = f"svc.{rest}" if rest else ""
        self._search = tuple(f".{part.strip('.').lower()}" for part in search if part.strip("."))

    def __len__(self) -> int:
        return len(self._hosts)

    def find(self, name: str) -> Answer | None:
        """What is known of `name`: asked as it is first, then without each search domain."""
        host = self._find_exactly(name)
        if host is not None:
            return Answer(host)
        for suffix in self._search:
            if name.endswith(suffix):
                alias = name.removesuffix(suffix)
                host = self._find_exactly(alias)
                if host is not None:
                    return Answer(host, alias)
        return None

    def _find_exactly(self, name: str) -> Host | None:
        host = self._hosts.get(name) or self._find_abbreviated(name)
        if host is not None:
            return host
        return next((self._hosts[w] for w in _wildcards(name) if w in self._hosts), None)

    def _find_abbreviated(self, name: str) -> Host | None:
        """The host that Kubernetes would call `name` here: `a.ns.svc`, `a.ns`, or `a` in its own namespace."""
        if not self._suffix:
            return None
        cluster_domain = self._suffix.partition(".")[2]
        host = self._hosts.get(f"{name}.{cluster_domain}")
        if host is not None and host.short and name == f"{host.short}.{host.namespace}.svc":
            return host
        host = self._hosts.get(f"{name}.{self._suffix}")
        if host is not None and host.short and name == f"{host.short}.{host.namespace}":
            return host
        host = self._hosts.get(f"{name}.{self._namespace}.{self._suffix}")
        return host if host is not None and name == host.short else None


def _wildcards(name: str) -> Iterator[str]:
    labels = name.split(".")
    return (".".join(("*", *labels[length:])) for length in range(1, len(labels)))


def decode_names(table: bytes, *, domain: str, search: Sequence[str]) -> Names:
    """The names of an encoded NameTable; raises DecodeError where it is not one."""
    try:
        message = _nds.NameTable.FromString(table)
    except WireError as broken:
        raise DecodeError(f"broken name table: {broken}") from broken
    hosts = {name.rstrip(".").lower(): _build_host(info) for name, info in message.table.items() if info.ips}
    return Names(hosts, domain=domain, search=search)


def _build_host(info: Any) -> Host:
    kubernetes = info.registry == _KUBERNETES
    ipv4: list[str] = []
    ipv6: list[str] = []
    for text in info.ips:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            continue
        (ipv4 if address.version == 4 else ipv6).append(str(address))
    short, namespace = (info.shortname, info.namespace) if kubernetes else ("", "")
    return Host(tuple(ipv4), tuple(ipv6), short, namespace)
