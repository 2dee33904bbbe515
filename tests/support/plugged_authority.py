"""An operator's own authority, as the usual tools lay it out in files: root, intermediate, chain."""

import datetime
import pathlib
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mizzen.ca import certificates


class Node:
    """A certificate that signs others, with its key."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self.key = key

    @property
    def pem(self) -> bytes:
        return certificates.encode(self.certificate)


def make_node(name: str, now: float, issuer: Node | None = None, days: int = 3650, *, ca: bool = True) -> Node:
    """A signing certificate called `name`, self-signed without an `issuer`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = issuer.key if issuer else key
    start = datetime.datetime.fromtimestamp(now, datetime.UTC) - datetime.timedelta(minutes=2)
    usage = x509.KeyUsage(*([False] * 5), key_cert_sign=ca, crl_sign=ca, encipher_only=False, decipher_only=False)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return Node(builder.sign(signer, hashes.SHA256()), key)


def revoke(issuer: Node, now: float, serials: Iterable[int] = (), life: float = 86_400.0) -> bytes:
    """The issuer's revocation list as PEM, from a minute ago until `life` seconds from now."""
    made, end = (datetime.datetime.fromtimestamp(moment, datetime.UTC) for moment in (now - 60, now + life))
    builder = x509.CertificateRevocationListBuilder(issuer.certificate.subject, made, end)
    for serial in serials:
        revoked = x509.RevokedCertificateBuilder(serial, made).build()
        builder = builder.add_revoked_certificate(revoked)
    return builder.sign(issuer.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def write_authority(folder: pathlib.Path, signer: Node, chain: list[Node], roots: list[Node]) -> None:
    """The files that Istio reads from /etc/cacerts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca-cert.pem").write_bytes(signer.pem)
    (folder / "ca-key.pem").write_bytes(certificates.encode_key(signer.key))
    (folder / "cert-chain.pem").write_bytes(b"".join(node.pem for node in chain))
    (folder / "root-cert.pem").write_bytes(b"".join(node.pem for node in roots))
