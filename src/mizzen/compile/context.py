"""What of a client proxy makes a difference to the resources it shares with others.

In: a `Proxy`. Out: `ClientTraits`, the small part that clusters and endpoints depend on besides the scope, so that
proxies of one kind, dialect and address family share them all.
"""

from typing import Literal

import msgspec

from mizzen.model.proxy import Dialect, Kind, Proxy, TlsFiles

Families = Literal["IPv4", "IPv6", "dual"]


class ClientTraits(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A client as its clusters see it."""

    kind: Kind
    dialect: Dialect
    families: Families = "IPv4"
    cluster_id: str = ""
    tls_files: TlsFiles = TlsFiles()
    credential_socket: bool = False
    file_credential: bool = False
    preserve_header_case: bool = False

    @property
    def is_router(self) -> bool:
        """Whether it is a gateway."""
        return self.kind == "router"


def families(proxy: Proxy) -> Families:
    """The address families that the proxy has."""
    if proxy.has_ipv4:
        return "dual" if proxy.has_ipv6 else "IPv4"
    return "IPv6"


def client_traits(proxy: Proxy, *, preserve_header_case: bool = False) -> ClientTraits:
    """The traits of a proxy."""
    return ClientTraits(
        kind=proxy.kind,
        dialect=proxy.dialect,
        families=families(proxy),
        cluster_id=proxy.cluster_id,
        tls_files=TlsFiles(
            client_chain=proxy.tls_files.client_chain,
            client_key=proxy.tls_files.client_key,
            client_root=proxy.tls_files.client_root,
        ),
        credential_socket=proxy.credential_socket,
        file_credential=proxy.file_credential,
        preserve_header_case=preserve_header_case,
    )
