"""Keys, certificate requests and what comes back: the cryptography of a workload's identity.

In: a SPIFFE identity and what the certificate service answers. Out: PEM. Nothing here asks anybody or waits;
`certificates` does. An `Identity` is only ever made of a key and a chain that belong together and to the workload.
"""

import datetime
from collections.abc import Iterable, Sequence

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from mizzen import settings
from mizzen.errors import AuthorityError
from mizzen.observe import Secret

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_UNREADABLE = (
    *(ValueError, TypeError, UnsupportedAlgorithm),
    *(x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
)
"""What the parser of certificates and keys says, some of it only when a part is asked for."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A key with the certificates that vouch for it, and the roots that came along."""

    key_pem: Secret
    chain_pem: bytes
    """The leaf, then its intermediates."""
    roots_pem: bytes
    obtained_at: datetime.datetime
    expires_at: datetime.datetime

    def renewal_delay(self, now: datetime.datetime, remaining: float) -> float:
        """Seconds from `now` until only the part `remaining` of the life since it was obtained is left."""
        life = (self.expires_at - self.obtained_at).total_seconds()
        age = (now - self.obtained_at).total_seconds()
        return max(0.0, life * (1 - remaining) - age)


def generate_key(options: settings.Agent) -> PrivateKey:
    """A fresh private key of the kind that the settings name."""
    if options.key_algorithm != "ECDSA":
        return rsa.generate_private_key(public_exponent=65537, key_size=options.rsa_key_bits)
    return ec.generate_private_key(ec.SECP384R1() if options.key_curve == "P384" else ec.SECP256R1())


def encode_key(key: PrivateKey) -> Secret:
    """The key as PKCS#8 PEM."""
    return Secret(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def build_request(key: PrivateKey, spiffe_id: str) -> bytes:
    """A certificate request, as PEM, for the identity alone: no subject, one URI."""
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(spiffe_id)])
    builder = x509.CertificateSigningRequestBuilder(x509.Name([])).add_extension(names, critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def parse_answer(key: PrivateKey, spiffe_id: str, chain: Sequence[str], now: datetime.datetime) -> Identity:
    """The identity in a certificate service's answer: leaf, intermediates, and last the roots.

    Raises AuthorityError where the answer is not a certificate of this key for this identity, or one that is over.
    """
    if len(chain) < 2:
        raise AuthorityError(f"the certificate service sent {len(chain)} certificates, expected leaf and root")
    chain_pem = "".join(_line_ended(part) for part in chain[:-1]).encode()
    identity = load_identity(
        encode_key(key), chain_pem, _line_ended(chain[-1]).encode(), spiffe_id=spiffe_id, obtained_at=now
    )
    if identity.expires_at <= now:
        raise AuthorityError(f"the certificate is over since {identity.expires_at}, by this machine's clock")
    return identity


def load_identity(
    key_pem: Secret,
    chain_pem: bytes,
    roots_pem: bytes,
    *,
    spiffe_id: str,
    obtained_at: datetime.datetime | None = None,
) -> Identity:
    """An identity from PEM after checking it; `obtained_at` defaults to the start of the leaf's validity.

    An empty `spiffe_id` takes a certificate for anybody.
    """
    try:
        leaf = x509.load_pem_x509_certificates(chain_pem)[0]
        x509.load_pem_x509_certificates(roots_pem)
        key = serialization.load_pem_private_key(key_pem.reveal(), password=None)
        uris, public = _uris(leaf), leaf.public_key()
    except _UNREADABLE as bad:
        raise AuthorityError(f"unreadable certificate or key: {bad}") from bad
    if key.public_key() != public:
        raise AuthorityError("the certificate belongs to another key")
    if spiffe_id and spiffe_id not in uris:
        raise AuthorityError(f"the certificate is for {', '.join(uris) or 'nobody'}, not for {spiffe_id}")
    return Identity(
        key_pem=key_pem,
        chain_pem=chain_pem,
        roots_pem=roots_pem,
        obtained_at=obtained_at or leaf.not_valid_before_utc,
        expires_at=leaf.not_valid_after_utc,
    )


def _uris(leaf: x509.Certificate) -> list[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return names.get_values_for_type(x509.UniformResourceIdentifier)


def merge_roots(bundles: Iterable[bytes]) -> bytes:
    """Every certificate of the bundles once, in order of first appearance; what is not PEM is left out."""
    found: dict[bytes, bytes] = {}
    for bundle in bundles:
        for certificate in parse_certificates(bundle):
            pem = certificate.public_bytes(serialization.Encoding.PEM)
            found.setdefault(certificate.fingerprint(hashes.SHA256()), pem)
    return b"".join(found.values())


def parse_certificates(bundle: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM bundle; none where it is not one."""
    try:
        return x509.load_pem_x509_certificates(bundle)
    except (ValueError, x509.InvalidVersion):
        return []


def _line_ended(pem: str) -> str:
    return pem if pem.endswith("\n") else f"{pem}\n"
