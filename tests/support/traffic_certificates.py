"""Certificates for gateways and outside servers: an authority, leaves for names, and Secrets that hold them.

All of it is made anew for every run; `ROOT` is whom callers trust, `OTHER` is somebody whom nobody does.
"""

import datetime
import ipaddress

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)
_HOUR = datetime.timedelta(hours=1)


class Authority:
    """A root made for one run of the tests."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = (
            self._begin(self._name, self._key).add_extension(constraints, True).sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, *names: str, organization: str = "", lapsed: bool = False) -> tuple[str, str]:
        """Certificate and key; the first name is the subject's common name too. A lapsed one ended an hour ago."""
        key = ec.generate_private_key(ec.SECP256R1())
        groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
        subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        begun = self._begin(subject, key, -_HOUR if lapsed else 7 * _DAY)
        leaf = begun.add_extension(alternatives, False).sign(self._key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return leaf.public_bytes(serialization.Encoding.PEM).decode(), private.decode()

    def _begin(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, left: datetime.timedelta = 7 * _DAY
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + left)
        )


def _alternative(name: str) -> x509.GeneralName:
    if "://" in name:
        return x509.UniformResourceIdentifier(name)
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


ROOT = Authority("traffic tests")
OTHER = Authority("somebody else")


def secret(
    name: str,
    *names: str,
    authority: Authority = ROOT,
    ca: bool = False,
    namespace: str = "gateways",
    lapsed: bool = False,
) -> str:
    """A Secret, beside the gateways or elsewhere, with a certificate for these names; with `ca` also whom it trusts."""
    certificate, key = authority.issue(*names, lapsed=lapsed)
    content = {"tls.crt": certificate, "tls.key": key, **({"ca.crt": authority.pem} if ca else {})}
    document = {
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "stringData": content,
    }
    return "\n" + yaml.safe_dump(document, sort_keys=False) + "---\n"
