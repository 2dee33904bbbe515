"""TLS of Gateway servers: what a user asked for as a `ServerTls`.

In: the server's settings, the mesh's defaults for TLS outside the mesh, and how the proxy reaches credentials. Out: the
description that `filters.tls` builds. Golden cases: gateway/tls-credentials, gateway/tls-files-and-versions,
security/mesh-tls-settings.
"""

from collections.abc import Iterable

from mizzen.api.mesh.config import TLSConfig
from mizzen.api.networking.gateway import ServerTLSSettings
from mizzen.compile.filters import sds
from mizzen.compile.filters.dialect import Dialect
from mizzen.compile.filters.tls import Files, ServerTls, Version

_VERSIONS: dict[str, Version] = {
    "TLS_AUTO": "TLS_AUTO",
    "TLSV1_0": "TLSv1_0",
    "TLSV1_1": "TLSv1_1",
    "TLSV1_2": "TLSv1_2",
    "TLSV1_3": "TLSv1_3",
}
_CIPHERS = frozenset(
    {
        "ALL",
        "AES128-GCM-SHA256",
        "AES128-SHA",
        "AES256-GCM-SHA384",
        "AES256-SHA",
        "DES-CBC3-SHA",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES128-SHA",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES256-SHA",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-SHA",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-SHA",
        "ECDHE-RSA-CHACHA20-POLY1305",
    }
)


def server_tls(
    settings: ServerTLSSettings,
    defaults: TLSConfig | None,
    external: sds.ExternalSds,
    dialect: Dialect,
    *,
    file_credential: bool,
) -> ServerTls | None:
    """The context of a server that terminates TLS; None for one that does not."""
    mode = settings.mode
    if mode == "PASSTHROUGH":
        return None
    if mode == "AUTO_PASSTHROUGH":
        return None
    if mode == "ISTIO_MUTUAL":
        return ServerTls(dialect=dialect, mode=mode, subject_alt_names=settings.subject_alt_names)
    base = defaults or TLSConfig()
    minimum = (
        settings.min_protocol_version if settings.min_protocol_version != "TLS_AUTO" else base.min_protocol_version
    )
    credentials = settings.credential_names or ((settings.credential_name,) if settings.credential_name else ())
    return ServerTls(
        dialect=dialect,
        mode=mode,
        credentials=credentials,
        ca_credential=settings.ca_cert_credential_name,
        files=() if credentials else _files(settings),
        root_file="" if credentials else settings.ca_certificates,
        crl_file=settings.ca_crl,
        subject_alt_names=settings.subject_alt_names,
        certificate_hashes=settings.verify_certificate_hash,
        spki_hashes=settings.verify_certificate_spki,
        insecure_skip_verify=bool(settings.insecure_skip_verify),
        minimum=_VERSIONS[minimum],
        maximum=_VERSIONS[settings.max_protocol_version],
        ciphers=known_ciphers(settings.cipher_suites) or base.cipher_suites,
        curves=base.ecdh_curves,
        external=external,
        file_credential=file_credential,
    )


def _files(settings: ServerTLSSettings) -> tuple[Files, ...]:
    if settings.tls_certificates:
        return tuple(Files(chain=c.server_certificate, key=c.private_key) for c in settings.tls_certificates)
    return (Files(chain=settings.server_certificate, key=settings.private_key),)


def known_ciphers(names: Iterable[str]) -> tuple[str, ...]:
    """The ciphers that Envoy knows, each once, in order; BoringSSL's own expressions begin with a sign."""
    return tuple(dict.fromkeys(name for name in names if name in _CIPHERS or (name and not name[0].isalnum())))
