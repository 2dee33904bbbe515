"""Gateway: the ports, hosts and certificates of proxies at the mesh's edge. Not the Gateway API's kind."""

from collections.abc import Mapping
from typing import Literal

from mizzen.api.message import ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.scalars import UInt32

ServerTLSMode = Literal["PASSTHROUGH", "SIMPLE", "MUTUAL", "AUTO_PASSTHROUGH", "ISTIO_MUTUAL", "OPTIONAL_MUTUAL"]
TLSProtocol = Literal["TLS_AUTO", "TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3"]


class Port(ProtoMessage, frozen=True, kw_only=True):
    """A port to listen on (Gateway, Sidecar)."""

    number: UInt32 = 0
    protocol: str = ""
    name: str = ""
    target_port: UInt32 = 0
    """Deprecated and without effect."""


class TLSCertificate(ProtoMessage, frozen=True, kw_only=True):
    """One of several certificates, by their files."""

    server_certificate: str = ""
    private_key: str = ""
    ca_certificates: str = ""


class ServerTLSSettings(ProtoMessage, frozen=True, kw_only=True):
    """TLS towards clients: files, or the names of secrets."""

    https_redirect: bool = False
    mode: ServerTLSMode = "PASSTHROUGH"
    server_certificate: str = ""
    private_key: str = ""
    ca_certificates: str = ""
    ca_crl: str = ""
    credential_name: str = ""
    credential_names: tuple[str, ...] = ()
    ca_cert_credential_name: str = ""
    tls_certificates: tuple[TLSCertificate, ...] = ()
    subject_alt_names: tuple[str, ...] = ()
    verify_certificate_spki: tuple[str, ...] = ()
    verify_certificate_hash: tuple[str, ...] = ()
    min_protocol_version: TLSProtocol = "TLS_AUTO"
    max_protocol_version: TLSProtocol = "TLS_AUTO"
    cipher_suites: tuple[str, ...] = ()
    insecure_skip_verify: bool | None = None


class Server(ProtoMessage, frozen=True, kw_only=True):
    """One port with the hosts served there; a host may be written `namespace/host`."""

    port: Port | None = None
    bind: str = ""
    hosts: tuple[str, ...] = ()
    tls: ServerTLSSettings | None = None
    default_endpoint: str = ""
    name: str = ""


class GatewaySpec(ProtoMessage, frozen=True, kw_only=True):
    """The servers, and the labels of the pods that run them."""

    servers: tuple[Server, ...] = ()
    selector: Mapping[str, str] = {}


class Gateway(Object, frozen=True, kw_only=True):
    """The kind Gateway of networking.istio.io."""

    spec: GatewaySpec = GatewaySpec()
