"""Certificates that somebody else signs: what is handed on to them, and what of their answer is believed.

In: a workload's request as it is, the identities that the workload has proved, the answer of a signer, roots. Out: the
names that the request may ask for; a chain whose leaf has the request's key, exactly those names and no power to sign,
and leads to a root that is known. A signer copies names from the request, so a request for more than was proved never
gets to it; what comes back is checked as if the signer could not be trusted at all.
"""

from collections.abc import Collection, Sequence

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mizzen.ca import certificates, offline
from mizzen.ca.certificates import PublicKey
from mizzen.errors import AuthorityError

_LONGEST_ANSWER = 256 * 1024


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a request asks for, once it is known that it may."""

    key: PublicKey
    names: frozenset[x509.GeneralName]
    pem: bytes
    """The request alone, without what stood around it."""


def check_wish(pem: str, identities: Collection[str]) -> Wish:
    """The request's wish; raises AuthorityError where it asks for other names than the caller's, or for none."""
    checked = certificates.check_request(pem)
    request = x509.load_pem_x509_csr(pem.encode())
    try:
        names = _read_names(request.extensions)
    except ValueError as error:
        raise AuthorityError("the names of the certificate request do not parse") from error
    if not names:
        raise AuthorityError("the certificate request names nobody, and its signer takes names from there")
    if not names <= set(map(certificates.general_name, identities)) or not _common_names(request) <= set(identities):
        raise AuthorityError("the certificate request asks for names that its sender does not have")
    return Wish(key=checked.key, names=names, pem=request.public_bytes(serialization.Encoding.PEM))


def check_answer(pem: bytes, wish: Wish, roots: Sequence[x509.Certificate], now: float) -> tuple[str, ...]:
    """Leaf, each intermediate, and the roots as one text. Raises AuthorityError for a certificate of no use.

    Without `roots` the chain has to end in one, which is believed because the signer is.
    """
    if len(pem) > _LONGEST_ANSWER:
        raise AuthorityError("the signer's answer is too long")
    chain = certificates.decode(pem, "the signer's answer")
    if not chain:
        raise AuthorityError("the signer's answer holds no certificate")
    _check_leaf(chain[0], wish)
    if not roots:
        roots = chain[-1:] if len(chain) > 1 and _is_root(chain[-1]) else ()
        if not roots:
            raise AuthorityError("the signer's chain ends in no root; name its root in caCertificates")
    for fault in offline.find_faults(chain, roots, "", now):
        raise AuthorityError(f"the signer's answer: {fault}")
    path = [each for each in chain if each not in roots]
    return (*(certificates.encode(each).decode() for each in path), certificates.encode(*roots).decode())


def _check_leaf(leaf: x509.Certificate, wish: Wish) -> None:
    if leaf.public_key() != wish.key:
        raise AuthorityError("the signer certified another key")
    try:
        names, is_authority = _read_names(leaf.extensions), offline.is_authority(leaf)
    except ValueError as error:
        raise AuthorityError("the signer's certificate does not parse") from error
    if names != wish.names or not _common_names(leaf) <= {str(name.value) for name in names}:
        raise AuthorityError("the signer certified other names")
    if is_authority:
        raise AuthorityError("the signer made an authority of a workload")
    try:
        usages = set(leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return
    if not {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH} <= usages:
        raise AuthorityError("the signer's certificate is not for clients and servers both")


def _is_root(certificate: x509.Certificate) -> bool:
    return offline.is_authority(certificate) and certificates.is_issued_by(certificate, certificate)


def _read_names(extensions: x509.Extensions) -> frozenset[x509.GeneralName]:
    try:
        return frozenset(extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return frozenset()


def _common_names(named: x509.Certificate | x509.CertificateSigningRequest) -> set[str]:
    return {str(each.value) for each in named.subject.get_attributes_for_oid(NameOID.COMMON_NAME)}
