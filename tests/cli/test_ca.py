"""`mizzen ca`: roots, intermediates, workload certificates and checks, as files on disk."""

import pathlib
import ssl

import cli_runs
import pytest

CART = "spiffe://cluster.local/ns/shop/sa/cart"
SMALL = ("--key-bits", "2048")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """root/, ca/ and cart/, made once: RSA keys take time."""
    base = tmp_path_factory.mktemp("pki")
    for arguments in (
        ("root", base / "root", *SMALL),
        ("intermediate", base / "ca", "--root", base / "root", *SMALL),
        ("issue", CART, "--ca", base / "ca", "--out", base / "cart", "--dns", "cart.shop.svc"),
    ):
        assert cli_runs.run("ca", *arguments).exit_code == 0
    return base


def fails(*arguments: object) -> str:
    result = cli_runs.run("ca", *arguments)
    assert result.exit_code == 1, result.stdout
    return result.stderr


def test_an_intermediate_has_the_layout_to_plug_in(folder: pathlib.Path) -> None:
    names = {path.name for path in (folder / "ca").iterdir()}

    assert names == {"ca-cert.pem", "ca-key.pem", "root-cert.pem", "cert-chain.pem"}


def test_keys_are_readable_by_the_owner_alone(folder: pathlib.Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.glob("*/*.pem")}

    assert {name: mode for name, mode in modes.items() if name.endswith("key.pem")} == dict.fromkeys(
        ("root-key.pem", "ca-key.pem", "key.pem"), 0o600
    )


def test_an_issued_certificate_is_believed_for_its_identity(folder: pathlib.Path) -> None:
    chain, roots = folder / "cart" / "cert-chain.pem", folder / "root" / "root-cert.pem"

    result = cli_runs.run("ca", "verify", chain, "--roots", roots, "--identity", CART)

    assert result.stdout == f"{chain}: valid for {CART}, cart.shop.svc\n"


def test_openssl_takes_chain_and_key_together(folder: pathlib.Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    context.load_cert_chain(folder / "cart" / "cert-chain.pem", folder / "cart" / "key.pem")


def test_another_identity_is_refused(folder: pathlib.Path) -> None:
    other = "spiffe://cluster.local/ns/shop/sa/front"
    error = fails(
        "verify", folder / "cart/cert-chain.pem", "--roots", folder / "root/root-cert.pem", "--identity", other
    )

    assert f"the certificate is for {CART}, cart.shop.svc, not for {other}" in error


def test_another_root_is_refused(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    cli_runs.run("ca", "root", tmp_path / "other", *SMALL)

    error = fails("verify", folder / "cart/cert-chain.pem", "--roots", tmp_path / "other/root-cert.pem")

    assert "the chain leads to none of the roots" in error


def test_an_expired_certificate_is_refused(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    cli_runs.run("ca", "issue", CART, "--ca", folder / "ca", "--out", tmp_path, "--ttl", "0")
    chain = tmp_path / "cert-chain.pem"

    assert "certificate 0 expired at" in fails("verify", chain, "--roots", folder / "root/root-cert.pem")


def test_show_lists_the_chain(folder: pathlib.Path) -> None:
    header, leaf, signer = cli_runs.run("ca", "show", folder / "cart/cert-chain.pem").stdout.splitlines()

    assert header.split()[:3] == ["#", "TYPE", "NAME"]
    assert leaf.split()[:3] == ["0", "Leaf", f"{CART},cart.shop.svc"]
    assert signer.split()[:2] == ["1", "Intermediate"]
    assert leaf.endswith("true")


def test_without_a_file_the_meshs_roots_are_meant(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    mesh = cli_runs.write_mesh(tmp_path / "shop", root=str(folder / "root/root-cert.pem"))

    assert cli_runs.run("ca", "show", "--mesh", mesh, "-o", "pem").stdout == (
        (folder / "root/root-cert.pem").read_text()
    )
    assert cli_runs.run("ca", "verify", folder / "cart/cert-chain.pem", "--mesh", mesh).exit_code == 0


def test_nothing_is_overwritten_unasked(folder: pathlib.Path) -> None:
    before = (folder / "root/root-key.pem").read_bytes()

    error = fails("root", folder / "root", *SMALL)

    assert "has root-cert.pem, root-key.pem already; --force replaces them" in error
    assert (folder / "root/root-key.pem").read_bytes() == before


def test_what_is_missing_is_named(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    assert "holds no root" in fails("intermediate", tmp_path / "x", "--root", empty)
    assert "holds no authority" in fails("issue", CART, "--ca", empty, "--out", tmp_path / "y")
    assert "cannot read" in fails("show", empty / "none.pem")
    assert "is not of the form spiffe://" in fails("issue", "cart", "--ca", folder / "ca")
    assert list(tmp_path.iterdir()) == [empty]


def test_a_lifetime_that_is_no_duration_does_not_parse(tmp_path: pathlib.Path) -> None:
    result = cli_runs.run("ca", "root", tmp_path / "r", "--lifetime", "ten years")

    assert result.exit_code == 64
    assert "'ten years' is not a duration" in result.stderr
