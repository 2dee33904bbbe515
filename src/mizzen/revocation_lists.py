"""Certificate revocation lists (CRLs) as PEM: what of it the control plane and the agent both need.

In: a text with one or several lists. Out: the lists, or AuthorityError for a text that is not whole. Whose lists must
be there is decided in `ca.revocations`.
"""

import re

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from mizzen.errors import AuthorityError

_BEGIN, _END = b"-----BEGIN X509 CRL-----", b"-----END X509 CRL-----"
_BLOCK = re.compile(_BEGIN + b".*?" + _END, re.DOTALL)


def decode(pem: bytes, what: str) -> tuple[x509.CertificateRevocationList, ...]:
    """All lists of a PEM text, none of an empty one; `what` names the text in the error."""
    if not pem.strip():
        return ()
    blocks = _BLOCK.findall(pem)
    if not blocks or not len(blocks) == pem.count(_BEGIN) == pem.count(_END):
        raise AuthorityError(f"{what} holds no whole PEM of a CRL")
    try:
        pem.decode()
        return tuple(x509.load_pem_x509_crl(block) for block in blocks)
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise AuthorityError(f"{what} holds a CRL that cannot be read") from error
