"""The root certificates that a proxy trusts, and whether two proxies trust a common one.

In: dumps with secrets. Out: certificates in DER. Without a common root neither side takes the other's certificate.
"""

import ssl
from collections.abc import Iterator

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump
from mizzen.diagnose.tables import secrets
from mizzen.errors import DecodeError

_ROOT = "ROOTCA"
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def find_roots(source: Dump) -> frozenset[bytes]:
    """Every certificate of the proxy's root bundle; raises DecodeError where it has none."""
    entries = dump.items(source.section("Secrets"), "dynamic_active_secrets")
    bundles = (
        secrets.inline_bytes(dump.message(entry, "secret", "validation_context", "trusted_ca"))
        for entry in entries
        if dump.text(entry, "name") == _ROOT
    )
    found = frozenset(certificate for bundle in bundles for certificate in _certificates(bundle.decode("latin-1")))
    if not found:
        raise DecodeError(f"cannot find {_ROOT} from secret")
    return found


def _certificates(bundle: str) -> Iterator[bytes]:
    for part in bundle.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if end:
            try:
                yield ssl.PEM_cert_to_DER_cert(f"{_BEGIN}{body}{_END}")
            except ValueError:
                continue
