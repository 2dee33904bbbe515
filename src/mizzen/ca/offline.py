"""What an operator does with certificates by hand: intermediates under a root, and checks of a chain.

In: signers, certificates and the time. Out: a new intermediate as a `Signer`, or what is wrong with a chain, as text.
A mesh that is plugged into an intermediate keeps its root's key away from every running machine.
"""

import datetime
import itertools
import secrets
from collections.abc import Iterator, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from mizzen.ca.certificates import BACKDATE, Signer, expiry_of, is_issued_by, start_of


def build_intermediate(parent: Signer, organisation: str, lifetime: float, key_bits: int, now: float) -> Signer:
    """A new authority under `parent` that signs workload certificates only; it never outlives its parent."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=key_bits)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation),
            x509.NameAttribute(NameOID.COMMON_NAME, f"intermediate {identifier.digest.hex()[:16]}"),
        ]
    )
    parent_id = parent.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(parent.certificate.subject)
        .public_key(key.public_key())
        .serial_number(secrets.randbits(128) or 1)
        .not_valid_before(_moment(now - BACKDATE))
        .not_valid_after(_moment(min(now + lifetime, parent.expiry)))
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(parent_id.value), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signing(), critical=True)
        .sign(parent.key, hashes.SHA256())
    )
    return Signer(
        certificate=certificate,
        key=key,
        intermediates=(certificate, *parent.intermediates),
        roots=parent.roots,
    )


def find_faults(
    chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate], identity: str, now: float
) -> Iterator[str]:
    """What keeps the chain from being believed: order, signatures, times, and the identity if one is asked for."""
    if not chain:
        yield "there is no certificate"
        return
    for index, certificate in enumerate(chain):
        if now < start_of(certificate):
            yield f"certificate {index} is not valid before {certificate.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ}"
        if now > expiry_of(certificate):
            yield f"certificate {index} expired at {certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
    for index, (certificate, issuer) in enumerate(itertools.pairwise(chain)):
        if not is_issued_by(certificate, issuer):
            yield f"certificate {index} is not signed by certificate {index + 1}"
        if not is_authority(issuer):
            yield f"certificate {index + 1} may not sign certificates"
    if chain[-1] not in roots and not any(is_issued_by(chain[-1], root) for root in roots):
        yield "the chain leads to none of the roots"
    if identity and identity not in names(chain[0]):
        yield f"the certificate is for {', '.join(names(chain[0])) or 'nobody'}, not for {identity}"


def names(certificate: x509.Certificate) -> list[str]:
    """The URIs, DNS names and addresses that the certificate speaks for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    kinds = (x509.UniformResourceIdentifier, x509.DNSName, x509.IPAddress)
    return [str(name.value) for name in found if isinstance(name, kinds)]


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether the certificate may sign others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)


def _signing() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        key_encipherment=False,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
