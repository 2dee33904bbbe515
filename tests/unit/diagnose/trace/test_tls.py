"""Handshakes between what two sides speak and demand."""

import datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mizzen.diagnose.trace import certificates, tls
from mizzen.diagnose.trace.certificates import Roots
from mizzen.diagnose.trace.tls import Server
from mizzen.diagnose.trace.wire import Certificate, Checks, Hello

NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
MESH = Roots(kind="mesh", source="ROOTCA")
ANY_SPIFFE = (("URI", {"prefix": "spiffe://cluster.local/"}),)
SERVER = Certificate(identity="spiffe://cluster.local/ns/a/sa/server")
CLIENT = Certificate(identity="spiffe://cluster.local/ns/a/sa/client")


class Authority:
    """Signs certificates for these tests."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.pem = self._sign(self.name, self.key.public_key(), is_authority=True)

    def _sign(
        self,
        subject: x509.Name,
        public: Any,
        *,
        is_authority: bool = False,
        days: int = 30,
        names: tuple[str, ...] = (),
    ) -> bytes:
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - datetime.timedelta(days=60))
            .not_valid_after(NOW + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False
            )
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(self, *names: str, days: int = 30) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaf")])
        read = certificates.parse(self._sign(subject, key.public_key(), days=days, names=names), NOW)
        assert read is not None
        return read

    @property
    def roots(self) -> Roots:
        return Roots(kind="given", pem=self.pem)


MINE, OTHER = Authority("mine"), Authority("other")


def hello(roots: Roots = MESH, *names: tuple[str, Any], own: Certificate | None = CLIENT, **more: Any) -> Hello:
    return Hello(certificate=own, checks=Checks(roots=roots, names=names), **more)


def agree(sent: Hello, receiving: Server) -> tuple[str, str]:
    failure, doubt = tls.agree(sent, receiving)
    return (failure.reason if failure is not None else ""), doubt


def test_two_workloads_of_the_mesh_agree():
    receiving = Server(certificate=SERVER, demands=True, roots=MESH, names=ANY_SPIFFE)
    assert agree(hello(MESH, *ANY_SPIFFE), receiving) == ("", "")


def test_the_servers_name_must_be_the_wanted_one():
    wanted = ("URI", {"exact": "spiffe://cluster.local/ns/a/sa/other"})
    failure, _ = tls.agree(hello(MESH, wanted), Server(certificate=SERVER))
    assert failure is not None
    assert failure.transport.endswith(
        "verify_cert_failed:_SAN_matcher,_certificate_SANs_are_[spiffe://cluster.local/ns/a/sa/server]:TLS_error_end"
    )


def test_a_client_without_a_certificate_learns_of_it_late():
    failure, _ = tls.agree(hello(own=None), Server(certificate=SERVER, demands=True, roots=MESH))
    assert failure is not None
    assert failure.handshake_seemed_done
    assert failure.transport == ""


@pytest.mark.parametrize(
    ("shown", "roots", "fails"),
    [
        (MINE.issue("a.example"), MINE.roots, ""),
        (MINE.issue("a.example"), OTHER.roots, "not signed by the roots"),
        (MINE.issue("a.example", days=-1), MINE.roots, "has expired"),
        (SERVER, MINE.roots, "not signed by the roots"),
        (MINE.issue("a.example"), MESH, "not signed by the roots"),
    ],
)
def test_trust_is_a_matter_of_signatures(shown, roots, fails):
    reason, _ = agree(hello(roots), Server(certificate=shown))
    assert (fails in reason) if fails else not reason


def test_names_with_a_star_stand_for_one_label():
    wanted = ("DNS", {"exact": "x.example.com"})
    assert agree(hello(MINE.roots, wanted), Server(certificate=MINE.issue("*.example.com")))[0] == ""
    deeper = ("DNS", {"exact": "x.y.example.com"})
    assert agree(hello(MINE.roots, deeper), Server(certificate=MINE.issue("*.example.com")))[0] != ""


def test_roots_that_nobody_here_knows_leave_a_doubt():
    _, doubt = agree(hello(Roots(kind="unknown", source="file-root:system")), Server(certificate=MINE.issue("a")))
    assert doubt == "whether file-root:system vouches for the server"


def test_a_missing_secret_is_named():
    failure, _ = tls.agree(hello(), Server(certificate=None, missing="kubernetes://a"))
    assert failure is not None
    assert (failure.link, failure.secret) == ("secret", "kubernetes://a")


@pytest.mark.parametrize(
    ("shown", "fails"),
    [
        (MINE.issue("a.example"), False),
        (MINE.issue("a.example", days=-1), True),
        (MINE.issue("b.example"), True),
    ],
)
def test_programs_mind_bad_certificates_most_likely(shown, fails):
    reason, doubt = agree(Hello(server_name="a.example"), Server(certificate=shown))
    assert bool(reason) is fails
    assert bool(doubt) is fails
