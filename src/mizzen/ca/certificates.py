"""X.509 in and out: roots, workload and server certificates, and the checks of requests and chains.

In: keys, names and moments (seconds since the epoch). Out: certificates, or `AuthorityError`. A request (CSR) gives
its public key and nothing else: the names in a certificate are the caller's identities. Fields follow Istio's
certificates, with key identifiers added so that chains stay unambiguous while two roots overlap.
Which key signs, and when, is decided in `authority`.
"""

import contextlib
import datetime
import ipaddress
import secrets
from collections.abc import Sequence

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mizzen.errors import AuthorityError

BACKDATE = 120.0
"""Seconds by which a certificate is valid before it is made, for clocks that are behind."""

_LARGEST_REQUEST = 64 * 1024
_RSA_BITS = range(2048, 8193)
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_LONGEST_COMMON_NAME = 64
RECORD = x509.ObjectIdentifier("2.25.298649312245503820558681451502027715371")
"""The kind of name under which a certificate says which workload it was issued to."""
LONGEST_RECORD = 1024
_UTF8_STRING = 0x0C

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class Signer(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate that signs, its key, and what leads from it to its roots."""

    certificate: x509.Certificate
    key: PrivateKey
    intermediates: tuple[x509.Certificate, ...]
    """What a leaf needs besides itself: the signing certificate first; empty when that is a root."""
    roots: tuple[x509.Certificate, ...]
    """The roots that came with it; the first is the one its chain ends in."""

    def __repr__(self) -> str:
        return f"Signer({fingerprint(self.certificate)[:16]})"

    @property
    def authorities(self) -> tuple[x509.Certificate, ...]:
        """Every certificate that signs in the chain of a leaf, from the signing one to its root."""
        return tuple(dict.fromkeys((self.certificate, *self.intermediates, self.roots[0])))

    @property
    def expiry(self) -> float:
        """The moment at which the first certificate of its chain expires."""
        return min(expiry_of(certificate) for certificate in self.authorities)


def expiry_of(certificate: x509.Certificate) -> float:
    """The last moment at which the certificate is valid, in seconds since the epoch."""
    return certificate.not_valid_after_utc.timestamp()


def start_of(certificate: x509.Certificate) -> float:
    """The first moment at which the certificate is valid, in seconds since the epoch."""
    return certificate.not_valid_before_utc.timestamp()


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of the certificate, in hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def encode(*certificates: x509.Certificate) -> bytes:
    """The certificates as PEM, one after the other."""
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def decode(pem: bytes, what: str) -> tuple[x509.Certificate, ...]:
    """All certificates of a PEM text; `what` names the text in the error."""
    if not pem.strip():
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except (ValueError, x509.InvalidVersion) as error:
        raise AuthorityError(f"{what} holds no readable PEM certificate") from error


def encode_key(key: PrivateKey) -> bytes:
    """The key as unencrypted PKCS #8 PEM; for files of mode 0600 and TLS libraries only."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def decode_key(pem: bytes, what: str) -> PrivateKey:
    """An RSA or elliptic-curve private key of a PEM text."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without the cause: a parser's message could quote the text.
        raise AuthorityError(f"{what} holds no unencrypted PEM private key") from None
    if not isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)):
        raise AuthorityError(f"the key of {what} is neither RSA nor elliptic-curve")
    return key


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_encipherment=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PublicKey, start: float, end: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(secrets.randbits(128) or 1)
        .not_valid_before(_moment(start))
        .not_valid_after(_moment(end))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def build_root(organisation: str, lifetime: float, key_bits: int, now: float) -> Signer:
    """A new self-signed root with an RSA key; its common name is its key's, so that no two roots share a subject."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=key_bits)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation),
            x509.NameAttribute(NameOID.COMMON_NAME, f"root {identifier[:16]}"),
        ]
    )
    builder = _builder(name, name, key.public_key(), now - BACKDATE, now + lifetime)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    return Signer(certificate=certificate, key=key, intermediates=(), roots=(certificate,))


def renew_root(old: Signer, lifetime: float, now: float) -> Signer:
    """The same root for longer: its name, key and extensions, so that whoever trusts either believes both."""
    certificate = old.certificate
    builder = (
        x509.CertificateBuilder()
        .subject_name(certificate.subject)
        .issuer_name(certificate.subject)
        .public_key(_public(certificate))
        .serial_number(secrets.randbits(128) or 1)
        .not_valid_before(_moment(now - BACKDATE))
        .not_valid_after(_moment(now + lifetime))
    )
    for extension in certificate.extensions:
        # This one may name the old certificate by its number.
        if extension.oid != x509.AuthorityKeyIdentifier.oid:
            builder = builder.add_extension(extension.value, critical=extension.critical)
    renewed = builder.sign(old.key, hashes.SHA256())
    return Signer(certificate=renewed, key=old.key, intermediates=(), roots=(renewed,))


def is_same_root(one: Signer, other: Signer) -> bool:
    """Whether both sign by the same self-signed root, if perhaps at another age: each leads to the other's roots."""
    first, second = one.certificate, other.certificate
    return (
        not one.intermediates
        and not other.intermediates
        and first.subject == second.subject
        and first.public_key() == second.public_key()
        and _key_identifier(first) == _key_identifier(second)
    )


def _key_identifier(certificate: x509.Certificate) -> bytes | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def general_name(name: str) -> x509.GeneralName:
    """A URI, an address or a DNS name, by its form."""
    if "://" in name:
        return x509.UniformResourceIdentifier(name)
    with contextlib.suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(name))
    return x509.DNSName(name)


def _record_name(record: str) -> tuple[x509.GeneralName, ...]:
    text = record.encode()
    if not 0 < len(text) <= LONGEST_RECORD:
        return ()
    length = bytes([len(text)]) if len(text) < 0x80 else b"\x82" + len(text).to_bytes(2)
    if 0x80 <= len(text) < 0x100:
        length = bytes([0x81, len(text)])
    return (x509.OtherName(RECORD, bytes([_UTF8_STRING]) + length + text),)


def build_leaf(
    signer: Signer,
    key: PublicKey,
    names: Sequence[str],
    end: float,
    now: float,
    common_name: bool = False,
    record: str = "",
) -> x509.Certificate:
    """A certificate for `names` (URIs, addresses or DNS names), good until `end` but never past its signer's chain.

    The subject is empty, or with `common_name` the first name where it is short enough, as in Istio. A `record` is one
    more name, of a kind (`RECORD`) that nobody takes for an identity.
    """
    subject = x509.Name([])
    if common_name and len(names[0]) <= _LONGEST_COMMON_NAME:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(_public(signer.certificate))
    with contextlib.suppress(x509.ExtensionNotFound):
        issuer_id = signer.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id.value)
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    alternatives = x509.SubjectAlternativeName([*map(general_name, names), *_record_name(record)])
    builder = _builder(subject, signer.certificate.subject, key, now - BACKDATE, min(end, signer.expiry))
    builder = builder.add_extension(issuer_key, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(usages, critical=False)
    # Istio marks the names critical always; verifiers that follow RFC 5280 refuse that beside a subject.
    builder = builder.add_extension(alternatives, critical=not list(subject))
    return builder.sign(signer.key, hashes.SHA256())


def _public(certificate: x509.Certificate) -> PublicKey:
    key = certificate.public_key()
    if not isinstance(key, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey)):
        raise AuthorityError("a signing certificate's key is neither RSA nor elliptic-curve")
    return key


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken from a certificate request: the key, and whether it wanted a common name."""

    key: PublicKey
    has_common_name: bool


def check_request(pem: str) -> Request:
    """The request's key, once its signature proves that the sender holds it. Every name in it is ignored."""
    if len(pem) > _LARGEST_REQUEST:
        raise AuthorityError("the certificate request is too long")
    try:
        request = x509.load_pem_x509_csr(pem.encode())
        key = request.public_key()
        proved = request.is_signature_valid
        has_common_name = bool(request.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    except (ValueError, UnsupportedAlgorithm, InvalidSignature, x509.InvalidVersion) as error:
        raise AuthorityError("the certificate request does not parse") from error
    if not proved:
        raise AuthorityError("the certificate request's signature does not verify")
    return Request(key=_check_key(key), has_common_name=has_common_name)


def _check_key(key: object) -> PublicKey:
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size not in _RSA_BITS:
            raise AuthorityError(f"an RSA key of {key.key_size} bits is refused (2048 to 8192)")
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
        return key
    raise AuthorityError("the request's key is neither RSA nor P-256, P-384 or P-521")


def build_signer(
    certificate: x509.Certificate,
    key: PrivateKey,
    chain: Sequence[x509.Certificate],
    roots: Sequence[x509.Certificate],
) -> Signer:
    """A signer from an operator's parts, once they are found to belong together.

    `chain` may hold the signing certificate, roots and duplicates, in any order, as the files of the usual tools do.
    """
    if key.public_key() != certificate.public_key():
        raise AuthorityError("the authority's key does not belong to its certificate")
    if not _may_sign(certificate):
        raise AuthorityError("the authority's certificate may not sign certificates (basicConstraints, keyUsage)")
    path = [certificate]
    while (root := _issuer_among(path[-1], roots)) is None:
        following = _issuer_among(path[-1], [each for each in chain if each not in path])
        if following is None:
            raise AuthorityError("the authority's certificate does not lead to any of its roots")
        path.append(following)
    if path[-1] in roots:
        root = path.pop()
    return Signer(
        certificate=certificate,
        key=key,
        intermediates=tuple(path),
        roots=(root, *(each for each in roots if each != root)),
    )


def _issuer_among(certificate: x509.Certificate, candidates: Sequence[x509.Certificate]) -> x509.Certificate | None:
    for candidate in candidates:
        if is_issued_by(certificate, candidate):
            return candidate
    return None


def is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether `issuer`'s key signed the certificate under its name."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        if not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound as missing:
        return missing.oid == x509.KeyUsage.oid
