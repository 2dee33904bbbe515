"""PEM texts that parse as such and hold what no library knows: another version, another curve."""

import base64
import re

_PEM = re.compile(rb"(-----BEGIN [A-Z0-9 ]+-----\n)(.+?)(-----END [A-Z0-9 ]+-----\n?)", re.DOTALL)


def replace(pem: bytes, old: str, new: str) -> bytes:
    """The first PEM of the text with the first `old` of its content made `new`, both in hexadecimal."""
    found = _PEM.search(pem)
    assert found is not None
    content = base64.b64decode(found[2])
    changed = content.replace(bytes.fromhex(old), bytes.fromhex(new), 1)
    assert changed != content
    return found[1] + base64.encodebytes(changed) + found[3]


def of_version_8(certificate: bytes) -> bytes:
    """The certificate with a version that X.509 does not have."""
    return replace(certificate, "a003020102", "a003020107")


def revocations_of_version_8(revocations: bytes) -> bytes:
    """The list of revoked certificates with a version that X.509 does not have."""
    return replace(revocations, "020101", "020107")


def of_unknown_curve(certificate: bytes) -> bytes:
    """The certificate with a P-256 key that claims another curve."""
    return replace(certificate, "2a8648ce3d030107", "2a8648ce3d030177")


def of_broken_key(certificate: bytes) -> bytes:
    """The certificate with a P-256 key that is no point of the curve."""
    return replace(certificate, "034200" + "04", "034200" + "05")
