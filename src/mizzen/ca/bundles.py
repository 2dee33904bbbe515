"""SPIFFE bundles: the roots of another trust domain, as its own endpoint publishes them.

In: the JSON of a bundle, a key set whose entries for X.509 hold one certificate each. Out: PEM. Who fetches it, and
from where, is decided elsewhere.
"""

import base64
import json

from cryptography import x509

from mizzen.ca import certificates
from mizzen.errors import AuthorityError

_X509 = "x509-svid"
_MOST = 100


def decode_bundle(text: str) -> str:
    """The roots for X.509 in a bundle, as PEM; raises AuthorityError for what is none or holds no such root."""
    try:
        keys = [each for each in json.loads(text)["keys"] if isinstance(each, dict)]
        encoded = [each["x5c"][0] for each in keys[:_MOST] if each.get("use") == _X509]
        roots = [x509.load_der_x509_certificate(base64.b64decode(each, validate=True)) for each in encoded]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, x509.InvalidVersion) as error:
        raise AuthorityError("the document is no SPIFFE bundle") from error
    if not roots:
        raise AuthorityError("the SPIFFE bundle holds no root for X.509")
    return certificates.encode(*roots).decode()
