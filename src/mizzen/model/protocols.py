"""Protocols of ports: how a name, an `appProtocol` or a `protocol` field says one, and which class it falls into.

In: the fields of a Kubernetes service port, or the `protocol` text of an Istio object. Out: a `Protocol`.
Golden cases: networking/protocol-selection, networking/se-protocols.
"""

from enum import Enum

from mizzen.api.kube.services import ServicePort

_SNIFF_EXEMPT = frozenset({25, 53, 3306, 27017})
"""Ports whose servers usually speak first: taken as TCP rather than sniffed."""


class Protocol(Enum):
    """A protocol by Istio's spelling; AUTO is sniffed on each connection."""

    HTTP = "HTTP"
    HTTP2 = "HTTP2"
    HTTP_PROXY = "HTTP_PROXY"
    GRPC = "GRPC"
    GRPC_WEB = "GRPC-Web"
    TCP = "TCP"
    HTTPS = "HTTPS"
    TLS = "TLS"
    MONGO = "Mongo"
    REDIS = "Redis"
    MYSQL = "MySQL"
    HBONE = "HBONE"
    UDP = "UDP"
    AUTO = "Unsupported"

    @property
    def is_http(self) -> bool:
        """Whether the port speaks HTTP of some version in plain text."""
        return self in _HTTP

    @property
    def is_http2(self) -> bool:
        """Whether the port's upstream is spoken to in HTTP/2."""
        return self in _HTTP2

    @property
    def is_tcp(self) -> bool:
        """Whether the port is declared, and not HTTP or UDP."""
        return self in _TCP

    @property
    def is_tls(self) -> bool:
        """Whether the application itself speaks TLS."""
        return self in (Protocol.HTTPS, Protocol.TLS)

    @property
    def is_auto(self) -> bool:
        """Whether the protocol is found by looking at the bytes."""
        return self is Protocol.AUTO


_HTTP = frozenset({Protocol.HTTP, Protocol.HTTP2, Protocol.HTTP_PROXY, Protocol.GRPC, Protocol.GRPC_WEB})
_HTTP2 = frozenset({Protocol.HTTP2, Protocol.GRPC, Protocol.GRPC_WEB})
_TCP = frozenset({Protocol.TCP, Protocol.HTTPS, Protocol.TLS, Protocol.MONGO, Protocol.REDIS, Protocol.MYSQL})

_BY_WORD = {
    "tcp": Protocol.TCP,
    "udp": Protocol.UDP,
    "grpc": Protocol.GRPC,
    "grpc-web": Protocol.GRPC_WEB,
    "http": Protocol.HTTP,
    "http_proxy": Protocol.HTTP_PROXY,
    "http2": Protocol.HTTP2,
    "https": Protocol.HTTPS,
    "tls": Protocol.TLS,
    "mongo": Protocol.MONGO,
    "redis": Protocol.REDIS,
    "mysql": Protocol.MYSQL,
    "hbone": Protocol.HBONE,
}

_BY_APP_PROTOCOL = {
    "kubernetes.io/h2c": Protocol.HTTP2,
    "kubernetes.io/ws": Protocol.HTTP,
    "kubernetes.io/wss": Protocol.HTTPS,
}


def parse_protocol(text: str) -> Protocol:
    """The protocol that an Istio object's `protocol` field says; AUTO where it is empty or unknown."""
    return _BY_WORD.get(text.lower(), Protocol.AUTO)


def parse_port(*, number: int, name: str, transport: str, app_protocol: str | None) -> Protocol:
    """The protocol of a Kubernetes service port. `app_protocol` beats the name even where its word is unknown."""
    if transport == "UDP":
        return Protocol.UDP
    if app_protocol:
        found = _BY_APP_PROTOCOL.get(app_protocol.lower()) or _parse_name(app_protocol)
    else:
        found = _parse_name(name)
    if found.is_auto and number in _SNIFF_EXEMPT:
        return Protocol.TCP
    return found


def protocol_of(port: ServicePort) -> Protocol:
    """The protocol that a port of a Service says."""
    return parse_port(number=port.port, name=port.name, transport=port.protocol, app_protocol=port.app_protocol or None)


def _parse_name(name: str) -> Protocol:
    lowered = name.lower()
    if lowered.startswith("grpc-web"):
        return Protocol.GRPC_WEB
    return _BY_WORD.get(lowered.partition("-")[0], Protocol.AUTO)
