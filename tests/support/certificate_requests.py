"""Certificate requests as workloads send them, and the check of a chain as a TLS peer makes it."""

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from cryptography.x509.oid import NameOID

from mizzen.ca import certificates


def make_request(key=None, *, names: tuple[str, ...] = (), common_name: str = "", record: str = "") -> str:
    """A PEM request signed by `key` (a new P-256 key), asking for the URIs `names` and a workload's record."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names or record:
        alternatives: list[x509.GeneralName] = [x509.UniformResourceIdentifier(name) for name in names]
        if record:
            text = record.encode()
            alternatives.append(x509.OtherName(certificates.RECORD, bytes([12, len(text)]) + text))
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def read_chain(texts) -> tuple[list[x509.Certificate], list[x509.Certificate]]:
    """Leaf and intermediates, and the roots, of a certificate service's answer."""
    *chain, roots = texts
    return (
        [x509.load_pem_x509_certificate(text.encode()) for text in chain],
        x509.load_pem_x509_certificates(roots.encode()),
    )


def verify_chain(chain, roots, moment: float) -> list[str]:
    """The names of `chain[0]` as a peer that trusts `roots` reads them at `moment`; raises VerificationError."""
    store = verification.Store(list(roots))
    policy = verification.PolicyBuilder().store(store).time(datetime.datetime.fromtimestamp(moment, datetime.UTC))
    verified = policy.build_client_verifier().verify(chain[0], list(chain[1:]))
    return [name.value for name in verified.subjects or () if not isinstance(name, x509.OtherName)]
