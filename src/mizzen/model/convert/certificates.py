"""Certificates: whether a Secret holds a certificate with its key, and whether trusted roots can be read.

In: Secrets and ConfigMaps. Out: a sentence that says what is wrong, or nothing; the bytes go no further. Which keys are
read, and in which order, is as `compile.secrets` serves them. The library is loaded for the first certificate, since
most meshes that a command looks at have none.
Golden cases: gateway-api/tls-listeners, gateway-api/backend-tls.
"""

from collections.abc import Iterable

from mizzen.api.kube.data import ConfigMap, Secret
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query

_PAIRS = (("cert", "key"), ("tls.crt", "tls.key"))
_ROOTS = ("cacert", "ca.crt")


@query
def server_certificate_fault(db: Engine, key: Key) -> str | None:
    """What keeps a Secret from serving as a server's certificate; None where nothing does."""
    secret: Secret | None = db.input(key)
    if secret is None:
        return f"secret {key.namespace}/{key.name} not found"
    for chain_name, key_name in _PAIRS:
        chain, private = secret.get(chain_name), secret.get(key_name)
        if chain and private:
            fault = pair_fault(chain, private)
            return f"the certificate is malformed: tls: {fault}" if fault else None
    expected = " or ".join(f"({chain} and {private})" for chain, private in _PAIRS)
    return (
        f"found secret, but didn't have expected keys {expected}; found: {_listed((*secret.data, *secret.string_data))}"
    )


def pair_fault(chain: bytes, private: bytes) -> str | None:
    """What keeps a chain and a key from serving together, in the reference's words; None where nothing does."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    if b"-----BEGIN" not in chain:
        return "failed to find any PEM data in certificate input"
    if b"-----BEGIN" not in private:
        return "failed to find any PEM data in key input"
    try:
        certified = x509.load_pem_x509_certificates(chain)[0].public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        return "failed to parse certificate"
    try:
        own = serialization.load_pem_private_key(private, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "failed to parse private key"
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    if certified.public_bytes(*form) != own.public_key().public_bytes(*form):
        return "private key does not match public key"
    return None


@query
def authority_fault(db: Engine, key: Key) -> str | None:
    """What keeps an existing ConfigMap or Secret from serving as trusted roots; None where nothing does."""
    found: ConfigMap | Secret | None = db.input(key)
    if found is None:
        return f"reference {key.namespace}/{key.name} (of kind {key.kind}) not found"
    for name in _ROOTS:
        text = found.data.get(name) if isinstance(found, ConfigMap) else found.get(name)
        if text:
            return roots_fault(text.encode() if isinstance(text, str) else text)
    return f"didn't have expected keys {' or '.join(_ROOTS)}; found: {_listed(found.data)}"


def roots_fault(text: bytes) -> str | None:
    """What keeps a text from serving as trusted roots; None where nothing does."""
    from cryptography import x509

    try:
        x509.load_pem_x509_certificates(text)
    except (ValueError, x509.InvalidVersion):
        return "the certificate is malformed"
    return None


def revocations_fault(text: bytes) -> str | None:
    """What keeps a text from serving as a list of revoked certificates; None where nothing does."""
    from cryptography import x509

    try:
        x509.load_pem_x509_crl(text)
    except (ValueError, x509.InvalidVersion):
        return "the list of revoked certificates is malformed"
    return None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))
