"""`proxy-config secret`: the certificates that a proxy holds over SDS.

In: the SecretsConfigDump section and the time. Out: one row a certificate: the first of each chain, and one a trust
domain of a SPIFFE bundle. Private keys are never read; Envoy redacts them in its dumps anyway.
"""

import base64
import binascii
import datetime
from collections.abc import Iterator

import msgspec
from cryptography import x509

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json
from mizzen.diagnose.table import Row, Table

COLUMNS = ("RESOURCE NAME", "TYPE", "STATUS", "VALID CERT", "SERIAL NUMBER", "NOT AFTER", "NOT BEFORE")

_PEM_END = b"-----END CERTIFICATE-----"
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class SecretRow(msgspec.Struct, frozen=True, kw_only=True):
    """One certificate of one secret; the certificate's cells are empty where none could be read."""

    name: str
    state: str
    trust_domain: str = ""
    kind: str = ""
    valid: bool = False
    serial: str = ""
    not_after: str = ""
    not_before: str = ""

    def cells(self) -> Row:
        """The row without its trust domain."""
        valid = "true" if self.valid else "false"
        return self.name, self.kind, self.state, valid, self.serial, self.not_after, self.not_before


def select_secrets(source: Dump, now: datetime.datetime) -> list[SecretRow]:
    """The warming, then the active secrets, in the dump's order."""
    section = source.section("Secrets")
    return [
        row
        for state, name in (("WARMING", "dynamic_warming_secrets"), ("ACTIVE", "dynamic_active_secrets"))
        for entry in dump.items(section, name)
        for row in _rows(entry, state, now)
    ]


def build_table(secrets: list[SecretRow], *, prefix: str = "") -> Table:
    """The table; TRUST DOMAIN shows only if every row has one."""
    trust = bool(secrets) and all(secret.trust_domain for secret in secrets)
    rows = ((prefix + cells[0], *cells[1:]) for cells in (secret.cells() for secret in secrets))
    if not trust:
        return Table(columns=COLUMNS, rows=tuple(rows))
    return Table(
        columns=(*COLUMNS, "TRUST DOMAIN"),
        rows=tuple((*row, secret.trust_domain) for row, secret in zip(rows, secrets, strict=True)),
    )


def _rows(entry: Json, state: str, now: datetime.datetime) -> Iterator[SecretRow]:
    name = dump.text(entry, "name")
    secret = dump.message(entry, "secret")
    bundles = list(_spiffe_bundles(secret))
    if bundles:
        for domain, pem in bundles:
            yield _describe(SecretRow(name=name, state=state, trust_domain=domain), pem, now)
        return
    chain = dump.message(secret, "tls_certificate", "certificate_chain")
    trusted = dump.message(secret, "validation_context", "trusted_ca")
    yield _describe(SecretRow(name=name, state=state), inline_bytes(chain) or inline_bytes(trusted), now)


def _spiffe_bundles(secret: Json) -> Iterator[tuple[str, bytes]]:
    config = dump.message(secret, "validation_context", "custom_validator_config", "typed_config")
    for domain in dump.items(config, "trust_domains"):
        yield dump.text(domain, "name"), inline_bytes(dump.message(domain, "trust_bundle"))


def inline_bytes(source: Json) -> bytes:
    """The bytes of a DataSource that holds them itself."""
    encoded = dump.text(source, "inline_bytes")
    if not encoded:
        return dump.text(source, "inline_string").encode()
    try:
        return base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return b""


def _describe(row: SecretRow, pem: bytes, now: datetime.datetime) -> SecretRow:
    """The row with the first certificate of `pem`, if there is one."""
    first, end, _ = pem.partition(_PEM_END)
    try:
        certificate = x509.load_pem_x509_certificate(first + end)
    except (ValueError, x509.InvalidVersion):
        return row
    start, stop = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return msgspec.structs.replace(
        row,
        kind="CA" if _is_authority(certificate) else "Cert Chain",
        valid=start < now < stop,
        serial=f"{certificate.serial_number:032x}",
        not_after=stop.strftime(_TIME),
        not_before=start.strftime(_TIME),
    )


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False
