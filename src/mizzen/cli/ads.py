"""A control plane asked over ADS, as istioctl asks it: one stream, one debug request, one answer.

In: an address and credentials (`Access`): a client certificate, a bearer token, or neither on a plain port. Out: the
answer as a message. Python's gRPC cannot skip the check of a server's certificate; with `insecure` the certificate that
the server shows is fetched first and is then the one that is expected, whoever it is from.
"""

import pathlib
import socket
import ssl
from typing import TYPE_CHECKING, Any

import msgspec

from mizzen.cli import ads_caller
from mizzen.errors import MizzenError

if TYPE_CHECKING:
    import grpc

SYNCZ = "istio.io/debug/syncz"
CONFIG_DUMP = "istio.io/debug/config_dump"
PAGE = "istio.io/debug"

_METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How a control plane is reached."""

    address: str
    """HOST:PORT."""
    plaintext: bool = False
    insecure: bool = False
    """Whether any server certificate will do."""
    authority: str = ""
    """The name expected in the server's certificate; empty means the address's host."""
    certificates: str = ""
    """Folder with key.pem, cert-chain.pem and root-cert.pem; empty for no client certificate."""
    root: str = ""
    """File with the roots of the server's certificate; empty means the folder's, else the system's."""
    token: str = ""
    """File with a bearer token; empty for none."""
    timeout: float = 30.0


def ask(access: Access, type_url: str, *names: str) -> Any:
    """The answer, a DiscoveryResponse."""
    import grpc

    from mizzen import protos

    discovery = protos.package("envoy.service.discovery.v3")
    caller = ads_caller.build_node(token=_token(access), chain=_chain(access))
    node = protos.from_json(protos.message_class("envoy.config.core.v3.Node"), caller)
    request = discovery.DiscoveryRequest(node=node, type_url=type_url, resource_names=names)
    with _channel(access) as channel:
        method: Any = channel.stream_stream(_METHOD)  # The stubs know no method in bytes.
        call = method(iter((protos.encode(request),)), timeout=access.timeout, metadata=_metadata(access))
        try:
            answer = next(call, None)
        except grpc.RpcError as failed:
            raise MizzenError(_describe(access, failed)) from failed
        finally:
            call.cancel()
    if answer is None:
        raise MizzenError(f"the control plane at {access.address} ended the stream without an answer")
    return discovery.DiscoveryResponse.FromString(answer)


def _describe(access: Access, failed: Any) -> str:
    return f"the control plane at {access.address}: {failed.code().name}: {failed.details()}"


def _metadata(access: Access) -> tuple[tuple[str, str], ...]:
    token = _token(access)
    return (("authorization", f"Bearer {token}"),) if token else ()


def _token(access: Access) -> str:
    return _read(access.token).decode().strip() if access.token else ""


def _chain(access: Access) -> bytes:
    return _read(str(pathlib.Path(access.certificates) / "cert-chain.pem")) if access.certificates else b""


def _channel(access: Access) -> "grpc.Channel":
    import grpc

    options: list[tuple[str, Any]] = [("grpc.max_receive_message_length", -1)]
    if access.plaintext:
        return grpc.insecure_channel(access.address, options)
    key = chain = None
    if access.certificates:
        folder = pathlib.Path(access.certificates)
        key, chain = _read(str(folder / "key.pem")), _chain(access)
    roots, name = _expected(access)
    if name:
        options.append(("grpc.ssl_target_name_override", name))
    credentials = grpc.ssl_channel_credentials(roots, key, chain)
    return grpc.secure_channel(access.address, credentials, options)


def _expected(access: Access) -> tuple[bytes | None, str]:
    """The roots of the server's certificate, None for the system's, and the name in it, empty for the host."""
    if access.insecure:
        return _shown_certificate(access)
    root = access.root
    if not root and access.certificates:
        root = str(pathlib.Path(access.certificates) / "root-cert.pem")
    return (_read(root) if root else None), access.authority


def _shown_certificate(access: Access) -> tuple[bytes, str]:
    """The certificate that the server shows, unchecked, and a name in it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    host, _, port = access.address.rpartition(":")
    host = host.strip("[]")
    try:
        if access.certificates:
            folder = pathlib.Path(access.certificates)
            context.load_cert_chain(folder / "cert-chain.pem", folder / "key.pem")
        with (
            socket.create_connection((host, int(port)), access.timeout) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            shown = secure.getpeercert(binary_form=True) or b""
    except OSError as failed:
        raise MizzenError(f"the control plane at {access.address}: {failed}") from failed
    return ssl.DER_cert_to_PEM_cert(shown).encode(), _any_name(shown)


def _any_name(certificate: bytes) -> str:
    """A DNS name in a certificate; empty where there is none."""
    from cryptography import x509

    extensions = x509.load_der_x509_certificate(certificate).extensions
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    return next(iter(names.get_values_for_type(x509.DNSName)), "")


def _read(path: str) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise MizzenError(f"cannot read {path}: {error.strerror}") from error
