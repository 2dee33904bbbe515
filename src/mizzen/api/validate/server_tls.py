"""TLS towards clients, at gateways and at the ingress of a Sidecar: modes, where certificates come from, ciphers."""

from collections.abc import Iterator

from mizzen.api.message import names
from mizzen.api.networking.gateway import ServerTLSSettings, TLSCertificate
from mizzen.api.validate.faults import Fault, Faults, error, list_of, warning

_CIPHERS = names(
    "ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 "
    "ECDHE-RSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-SHA "
    "ECDHE-RSA-AES128-SHA ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES256-SHA AES128-GCM-SHA256 AES256-GCM-SHA384 AES128-SHA "
    "AES256-SHA DES-CBC3-SHA ALL"
)
_OLD_VERSIONS = ("TLSV1_0", "TLSV1_1")
_OLD_VERSION = (
    "TLS version below TLSV1_2 require setting compatible ciphers as by default they no longer include compatible "
    "ciphers."
)
_MOST_CERTIFICATES = 2


def check_server_tls(tls: ServerTLSSettings, path: str) -> Faults:
    """All rules of TLS towards clients; a mode that needs no certificate, or has them in a secret, ends the check."""
    yield from _check_ciphers(tls, path)
    if tls.mode == "ISTIO_MUTUAL":
        yield from _check_istio_mutual(tls, path)
        return
    passing = tls.mode in ("PASSTHROUGH", "AUTO_PASSTHROUGH")
    if passing and _names_certificates(tls):
        yield warning(path, f"{tls.mode} mode does not use certificates, they will be ignored")
    has_files = bool(tls.server_certificate or tls.private_key)
    if bool(tls.credential_name) + bool(tls.credential_names) + bool(tls.tls_certificates) + has_files > 1:
        sources = "credential_name, credential_names, server_certificate/private_key, tls_certificates"
        yield error(path, f"only one of {sources} should be specified")
    if passing:
        if tls.ca_crl and tls.credential_name:
            yield _crl_fault("credentialName. CRL has to be specified in the credential", path)
    elif not tls.credential_name and not tls.credential_names:
        yield from _check_certificates(tls, path)


def _check_ciphers(tls: ServerTLSSettings, path: str) -> Faults:
    if tls.min_protocol_version in _OLD_VERSIONS and not tls.cipher_suites:
        yield warning(f"{path}.minProtocolVersion", _OLD_VERSION)
    known: set[str] = set()
    repeated: set[str] = set()
    for cipher in filter(_is_cipher, tls.cipher_suites):
        (repeated if cipher in known else known).add(cipher)
    for word, ciphers in (("invalid", set(tls.cipher_suites) - known), ("duplicate", repeated)):
        if ciphers:
            message = f"ignoring {word} cipher suites: {list_of(sorted(ciphers))}"
            yield warning(f"{path}.cipherSuites", message)


def _is_cipher(name: str) -> bool:
    """Whether BoringSSL knows the name; what begins with a sign is an expression, which is left to it."""
    return not name or name in _CIPHERS or not name[0].isalnum()


def _check_istio_mutual(tls: ServerTLSSettings, path: str) -> Faults:
    """The mesh's own certificates leave no room for others."""
    others = (
        ("serverCertificate", "server certificate", tls.server_certificate),
        ("privateKey", "private key", tls.private_key),
        ("caCertificates", "CA bundle", tls.ca_certificates),
        ("tlsCertificates", "tlsCertificates", tls.tls_certificates),
        ("credentialName", "credentialName", tls.credential_name),
        ("credentialNames", "credentialNames", tls.credential_names),
    )
    for field, words, value in others:
        if value:
            yield error(f"{path}.{field}", f"ISTIO_MUTUAL TLS cannot have associated {words}")


def _names_certificates(tls: ServerTLSSettings) -> bool:
    named = (
        tls.ca_crl,
        tls.server_certificate,
        tls.private_key,
        tls.ca_certificates,
        tls.credential_name,
        tls.credential_names,
        tls.tls_certificates,
    )
    return any(named)


def _check_certificates(tls: ServerTLSSettings, path: str) -> Iterator[Fault]:
    """Certificates in files."""
    mode = "SIMPLE" if tls.mode == "SIMPLE" else "MUTUAL"
    if mode == "MUTUAL" and not tls.ca_certificates:
        yield error(f"{path}.caCertificates", "MUTUAL TLS requires a client CA bundle")
    if len(tls.tls_certificates) > _MOST_CERTIFICATES:
        message = f"{mode} TLS can support up to {_MOST_CERTIFICATES} server certificates"
        yield warning(f"{path}.tlsCertificates", message)
    pairs: list[tuple[str, ServerTLSSettings | TLSCertificate]] = [
        (f"{path}.tlsCertificates[{index}]", pair) for index, pair in enumerate(tls.tls_certificates)
    ]
    for here, pair in pairs or [(path, tls)]:
        if not pair.server_certificate:
            yield error(f"{here}.serverCertificate", f"{mode} TLS requires a server certificate")
        if not pair.private_key:
            yield error(f"{here}.privateKey", f"{mode} TLS requires a private key")
    if tls.ca_crl and mode == "SIMPLE":
        yield _crl_fault("SIMPLE TLS", path)


def _crl_fault(where: str, path: str) -> Fault:
    return error(f"{path}.caCrl", f"CRL is not supported with {where}")
