"""Certificates of SDS secrets as rows."""

import base64
import datetime

import pytest

from mizzen.ca import certificates
from mizzen.diagnose.dump import Dump
from mizzen.diagnose.tables import secrets

NOW = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
KIND = "type.googleapis.com/envoy.admin.v3.SecretsConfigDump"


@pytest.fixture(scope="module")
def root() -> certificates.Signer:
    return certificates.build_root("test", 3600.0, 2048, NOW.timestamp())


def rows(*entries: dict[str, object], at: datetime.datetime = NOW) -> list[secrets.SecretRow]:
    return secrets.select_secrets(Dump(({"@type": KIND, "dynamic_active_secrets": list(entries)},)), at)


def trusted(name: str, pem: bytes) -> dict[str, object]:
    source = {"inline_bytes": base64.b64encode(pem).decode()}
    return {"name": name, "secret": {"validation_context": {"trusted_ca": source}}}


@pytest.mark.parametrize(("later", "valid"), [(0, True), (3600, False), (-7200, False)])
def test_a_certificate_is_valid_inside_its_time_only(root: certificates.Signer, later: float, valid: bool) -> None:
    (row,) = rows(trusted("ROOTCA", certificates.encode(root.certificate)), at=NOW + datetime.timedelta(seconds=later))

    assert (row.kind, row.valid) == ("CA", valid)
    assert row.serial == f"{root.certificate.serial_number:032x}"


@pytest.mark.parametrize("pem", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----"])
def test_what_does_not_parse_leaves_its_cells_empty(pem: bytes) -> None:
    (row,) = rows(trusted("ROOTCA", pem))

    assert row.cells() == ("ROOTCA", "", "ACTIVE", "false", "", "", "")


def test_bytes_that_are_not_base64_are_no_error() -> None:
    entry = {"name": "x", "secret": {"validation_context": {"trusted_ca": {"inline_bytes": "%%%"}}}}

    assert rows(entry)[0].kind == ""


def bundle(**domains: bytes) -> dict[str, object]:
    entries = [
        {"name": name.replace("_", "."), "trust_bundle": {"inline_string": pem.decode()}}
        for name, pem in domains.items()
    ]
    config = {"typed_config": {"trust_domains": entries}}
    return {"name": "ROOTCA", "secret": {"validation_context": {"custom_validator_config": config}}}


def test_a_spiffe_bundle_has_a_row_for_each_trust_domain(root: certificates.Signer) -> None:
    pem = certificates.encode(root.certificate)
    found = rows(bundle(cluster_local=pem, other_mesh=pem))

    table = secrets.build_table(found)

    assert table.columns[-1] == "TRUST DOMAIN"
    assert [row[-1] for row in table.rows] == ["cluster.local", "other.mesh"]


def test_trust_domains_show_only_if_every_row_has_one(root: certificates.Signer) -> None:
    pem = certificates.encode(root.certificate)

    assert "TRUST DOMAIN" not in secrets.build_table(rows(bundle(a=pem), trusted("b", pem))).columns
    assert "TRUST DOMAIN" not in secrets.build_table([]).columns
