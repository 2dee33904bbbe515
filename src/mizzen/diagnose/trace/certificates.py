"""Certificates and the roots that sign them, as far as a handshake asks.

In: SDS secrets as protobuf JSON. Out: `Certificate` (who it names, whether it has expired) and `Roots` (whom a side
trusts), and whether the one is signed under the other. Workload certificates, which agents fetch, are known by the
pod's identity; where a dump holds the real one, it is read.
"""

import base64
import binascii
import datetime
from typing import Literal

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.trace.wire import Certificate

_PUBLIC = "file-root:system"
"""The name of the roots that come with the system; nobody's mesh is among them."""
_BEGIN = b"-----BEGIN CERTIFICATE-----"


class Roots(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a side trusts."""

    kind: Literal["mesh", "given", "unknown", "none"] = "none"
    """`unknown` for files and the system's roots, `none` where nothing is verified."""
    pem: bytes = b""
    source: str = ""


def data_source(source: Json) -> bytes:
    """The bytes of a DataSource that holds them itself."""
    encoded = dump.text(source, "inline_bytes")
    if not encoded:
        return dump.text(source, "inline_string").encode()
    try:
        return base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return b""


def read_certificate(secret: Json, now: datetime.datetime | None) -> Certificate | None:
    """The certificate of a secret; None where it holds none that can be read."""
    return parse(data_source(dump.message(secret, "tls_certificate", "certificate_chain")), now)


def parse(pem: bytes, now: datetime.datetime | None, source: str = "") -> Certificate | None:
    """The first certificate of a chain."""
    chain = load(pem)
    if not chain:
        return None
    leaf = chain[0]
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = tuple(names.get_values_for_type(x509.UniformResourceIdentifier))
        dns = tuple(names.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        uris, dns = (), ()
    expired = now is not None and not (leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc)
    return Certificate(identity=uris[0] if uris else "", names=dns, root="", expired=expired, pem=pem, source=source)


def load(pem: bytes) -> list[x509.Certificate]:
    """All certificates of a PEM text; none where it does not parse."""
    if _BEGIN not in pem:
        return []
    try:
        return x509.load_pem_x509_certificates(pem)
    except (ValueError, x509.InvalidVersion):
        return []


def is_trusted(certificate: Certificate, roots: Roots) -> bool | None:
    """Whether the roots vouch for the certificate; None where what is known does not say."""
    if roots.kind in ("none", "unknown"):
        is_private = certificate.root == "mesh" and roots.source == _PUBLIC
        return True if roots.kind == "none" else False if is_private else None
    if certificate.root == "mesh" or roots.kind == "mesh":
        same = certificate.root == "mesh" and roots.kind == "mesh"
        return True if same else None if not certificate.root and not certificate.pem else False
    chain, anchors = load(certificate.pem), load(roots.pem)
    if not chain or not anchors:
        return None
    return _is_signed(chain[0], chain[1:], anchors, 0)


def describe_distrust(certificate: Certificate) -> str:
    """How OpenSSL says that nobody whom it trusts has signed a certificate."""
    chain = load(certificate.pem)
    depth = max(len(chain) - 1, 0)
    if chain and _issued(chain[-1], chain[-1]):
        why = "self-signed_certificate_in_certificate_chain" if depth else "self-signed_certificate"
    else:
        why = "unable_to_get_local_issuer_certificate"
    return f"at_depth_{depth}:_{why}"


def _is_signed(
    leaf: x509.Certificate, between: list[x509.Certificate], anchors: list[x509.Certificate], depth: int
) -> bool:
    if leaf in anchors or any(_issued(leaf, anchor) for anchor in anchors):
        return True
    if depth > len(between):
        return False
    return any(_issued(leaf, one) and _is_signed(one, between, anchors, depth + 1) for one in between)


def _issued(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
