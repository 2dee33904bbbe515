"""TLS contexts of servers: mutual TLS of sidecars, and what a Gateway's servers ask for.

In: frozen descriptions of a context (`WorkloadTls`, `ServerTls`). Out: the `TransportSocket` of a filter chain.
Contexts of clients are the clusters' affair; both take their secrets from `sds`.
Golden cases: base, security/mesh-tls-settings, gateway/tls-credentials, gateway/tls-files-and-versions.
"""

import functools
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from mizzen import protos
from mizzen.compile.filters import sds
from mizzen.compile.filters.dialect import Dialect

_core_v3 = protos.package("envoy.config.core.v3")
_tls_v3 = protos.package("envoy.extensions.transport_sockets.tls.v3")

SOCKET = "envoy.transport_sockets.tls"

DEFAULT_CIPHERS = (
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-GCM-SHA256",
)

Version = Literal["TLS_AUTO", "TLSv1_0", "TLSv1_1", "TLSv1_2", "TLSv1_3"]


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate in files on the proxy's disk."""

    chain: str
    key: str


class WorkloadTls(msgspec.Struct, frozen=True, kw_only=True):
    """Mutual TLS that a sidecar terminates with its workload's certificate."""

    dialect: Dialect
    trust_domains: tuple[str, ...]
    """Only peers of these trust domains are let in; none given means that any certificate of the root is."""
    minimum: Version = "TLSv1_2"
    ciphers: tuple[str, ...] = DEFAULT_CIPHERS
    curves: tuple[str, ...] = ()
    files: Files | None = None
    """Files instead of the certificate over SDS."""
    root_file: str = ""
    file_credential: bool = False


class ServerTls(msgspec.Struct, frozen=True, kw_only=True):
    """TLS that a Gateway's server (or a Sidecar's ingress listener) terminates."""

    dialect: Dialect
    mode: Literal["SIMPLE", "MUTUAL", "OPTIONAL_MUTUAL", "ISTIO_MUTUAL"]
    credentials: tuple[str, ...] = ()
    """Names of credentials; the trusted roots belong to the first."""
    ca_credential: str = ""
    files: tuple[Files, ...] = ()
    root_file: str = ""
    crl_file: str = ""
    subject_alt_names: tuple[str, ...] = ()
    certificate_hashes: tuple[str, ...] = ()
    spki_hashes: tuple[str, ...] = ()
    insecure_skip_verify: bool = False
    minimum: Version = "TLS_AUTO"
    maximum: Version = "TLS_AUTO"
    ciphers: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    external: sds.ExternalSds = sds.ExternalSds()
    file_credential: bool = False


_NAME_TYPES = ("DNS", "URI", "EMAIL", "IP_ADDRESS")


def match_names(dialect: Dialect, matchers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The field of a validation context that names acceptable peers by string matchers over their certificate's names.

    Upstream Envoy warns of the field that Istio uses; the other spelling asks for each kind of name by itself.
    """
    wanted = list(matchers)
    if dialect == "istio" or not wanted:
        return {"match_subject_alt_names": wanted}
    typed = [{"san_type": kind, "matcher": matcher} for matcher in wanted for kind in _kinds(matcher)]
    return {"match_typed_subject_alt_names": typed}


def _kinds(matcher: dict[str, Any]) -> tuple[str, ...]:
    """The kinds of names that the matcher may be about; a SPIFFE identity is a URI."""
    text = matcher.get("exact", matcher.get("prefix", ""))
    return ("URI",) if text.startswith("spiffe://") else _NAME_TYPES


def _socket(context: Any) -> Any:
    return _core_v3.TransportSocket(name=SOCKET, typed_config=protos.pack(context))


@functools.lru_cache(maxsize=512)
def build_workload_socket(tls: WorkloadTls, alpn: tuple[str, ...]) -> Any:
    """The socket of a chain that terminates mutual TLS of the mesh."""
    root, certificate = sds.build_workload_secret(sds.ROOT), sds.build_workload_secret(sds.WORKLOAD)
    if tls.files is not None:
        name = sds.file_certificate_name(tls.files.chain, tls.files.key)
        certificate = sds.build_file_secret(name, file_credential=tls.file_credential)
    if tls.root_file:
        root = sds.build_file_secret(sds.file_root_name(tls.root_file), file_credential=tls.file_credential)
    names = match_names(tls.dialect, ({"prefix": f"spiffe://{domain}/"} for domain in tls.trust_domains))
    return _socket(
        _tls_v3.DownstreamTlsContext(
            require_client_certificate={"value": True},
            common_tls_context={
                "alpn_protocols": alpn,
                "tls_params": {
                    "tls_minimum_protocol_version": tls.minimum,
                    "tls_maximum_protocol_version": "TLSv1_3",
                    "cipher_suites": tls.ciphers,
                    "ecdh_curves": tls.curves,
                },
                "tls_certificate_sds_secret_configs": [certificate],
                "combined_validation_context": {
                    "default_validation_context": names,
                    "validation_context_sds_secret_config": root,
                },
            },
        )
    )


@functools.lru_cache(maxsize=512)
def build_server_socket(tls: ServerTls, alpn: tuple[str, ...]) -> Any:
    """The socket of a chain that terminates a server's TLS."""
    common: dict[str, Any] = {"alpn_protocols": alpn, **_certificates(tls), **_validation(tls)}
    if params := _params(tls):
        common["tls_params"] = params
    return _socket(
        _tls_v3.DownstreamTlsContext(
            require_client_certificate={"value": tls.mode in ("MUTUAL", "ISTIO_MUTUAL")}, common_tls_context=common
        )
    )


def _params(tls: ServerTls) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if tls.minimum != "TLS_AUTO":
        params["tls_minimum_protocol_version"] = tls.minimum
    if tls.maximum != "TLS_AUTO":
        params["tls_maximum_protocol_version"] = tls.maximum
    if tls.ciphers:
        params["cipher_suites"] = tls.ciphers
    if tls.curves:
        params["ecdh_curves"] = tls.curves
    return params


def _certificates(tls: ServerTls) -> dict[str, Any]:
    if tls.mode == "ISTIO_MUTUAL":
        secrets = [sds.build_workload_secret(sds.WORKLOAD)]
    elif tls.credentials:
        secrets = [sds.build_credential_secret(name, tls.external) for name in tls.credentials]
    else:
        secrets = [
            sds.build_file_secret(sds.file_certificate_name(f.chain, f.key), file_credential=tls.file_credential)
            for f in tls.files
        ]
    return {"tls_certificate_sds_secret_configs": secrets}


def _validation(tls: ServerTls) -> dict[str, Any]:
    context = match_names(tls.dialect, ({"exact": name} for name in tls.subject_alt_names))
    if tls.mode == "SIMPLE":
        return {"validation_context": context} if tls.subject_alt_names and tls.credentials else {}
    if tls.mode == "ISTIO_MUTUAL":
        return _combined(context, sds.build_workload_secret(sds.ROOT))
    if tls.insecure_skip_verify:
        context["trust_chain_verification"] = "ACCEPT_UNTRUSTED"
    if tls.credentials:
        context["verify_certificate_spki"] = tls.spki_hashes
        context["verify_certificate_hash"] = tls.certificate_hashes
        root = tls.ca_credential or tls.credentials[0]
        return _combined(context, sds.build_credential_secret(root, tls.external, ca=not tls.ca_credential))
    if tls.crl_file:
        context["crl"] = {"filename": tls.crl_file}
    if not tls.root_file:
        return {"validation_context": context} if tls.crl_file or tls.insecure_skip_verify else {}
    root_secret = sds.build_file_secret(sds.file_root_name(tls.root_file), file_credential=tls.file_credential)
    return _combined(context, root_secret)


def _combined(context: dict[str, Any], root: Any) -> dict[str, Any]:
    return {
        "combined_validation_context": {
            "default_validation_context": context,
            "validation_context_sds_secret_config": root,
        }
    }
