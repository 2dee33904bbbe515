"""The authority's files: complete or a clear error, private, and whole at every moment."""

import os
import pathlib
import stat

import pytest
from cryptography import x509
from plugged_authority import make_node, write_authority

from mizzen import settings
from mizzen.ca import certificates, store
from mizzen.ca.authority import Retiring, State, announce, start_self_signed
from mizzen.errors import AuthorityError

NOW = 1_700_000_000.0
CONFIG = settings.Authority()


def self_signed() -> State:
    return start_self_signed("cluster.local", CONFIG, NOW)


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_no_files_mean_no_authority(tmp_path: pathlib.Path) -> None:
    assert store.find_plugged(tmp_path) is None
    assert store.find_plugged(tmp_path / "missing") is None
    assert store.load_state(tmp_path) is None


def test_plugged_authority_with_intermediate_is_read(tmp_path: pathlib.Path) -> None:
    root = make_node("root", NOW)
    issuing = make_node("issuing", NOW, root)
    write_authority(tmp_path, issuing, [issuing, root], [root])
    signer = store.find_plugged(tmp_path)
    assert signer is not None
    assert signer.intermediates == (issuing.certificate,)
    assert signer.roots == (root.certificate,)


def test_kubernetes_tls_names_are_read(tmp_path: pathlib.Path) -> None:
    root = make_node("root", NOW)
    middle = make_node("middle", NOW, root)
    issuing = make_node("issuing", NOW, middle)
    (tmp_path / "tls.crt").write_bytes(issuing.pem + middle.pem)
    (tmp_path / "tls.key").write_bytes(certificates.encode_key(issuing.key))
    (tmp_path / "ca.crt").write_bytes(root.pem)
    signer = store.find_plugged(tmp_path)
    assert signer is not None
    assert signer.intermediates == (issuing.certificate, middle.certificate)


@pytest.mark.parametrize("name", ["ca-key.pem", "root-cert.pem", "ca-cert.pem"])
def test_incomplete_authority_names_what_is_missing(tmp_path: pathlib.Path, name: str) -> None:
    root = make_node("root", NOW)
    write_authority(tmp_path, root, [], [root])
    (tmp_path / name).unlink()
    with pytest.raises(AuthorityError, match=f"lacks {name}"):
        store.find_plugged(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("ca-cert.pem", b""), ("ca-key.pem", b"rubbish"), ("root-cert.pem", b"rubbish"), ("cert-chain.pem", b"rubbish")],
)
def test_broken_file_is_named(tmp_path: pathlib.Path, name: str, content: bytes) -> None:
    root = make_node("root", NOW)
    write_authority(tmp_path, root, [], [root])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AuthorityError, match=name):
        store.find_plugged(tmp_path)


def test_key_of_another_certificate_is_refused(tmp_path: pathlib.Path) -> None:
    root, other = make_node("root", NOW), make_node("other", NOW)
    write_authority(tmp_path, root, [], [root])
    (tmp_path / "ca-key.pem").write_bytes(certificates.encode_key(other.key))
    with pytest.raises(AuthorityError, match="does not belong"):
        store.find_plugged(tmp_path)


def test_state_survives_a_restart(tmp_path: pathlib.Path) -> None:
    state = announce(self_signed(), self_signed().current, NOW + 5)
    state = State(
        current=state.current,
        successor=state.successor,
        switch_at=state.switch_at,
        retiring=(Retiring(root=make_node("old", NOW).certificate, until=NOW + 9),),
    )
    store.save_state(tmp_path, state)
    found = store.load_state(tmp_path)
    assert found is not None
    assert (found.roots, found.switch_at, found.retiring) == (state.roots, state.switch_at, state.retiring)
    assert found.current.key.private_numbers() == state.current.key.private_numbers()


def test_state_is_for_its_owner_and_the_bundle_for_everybody(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "new"
    state = self_signed()
    previous = os.umask(0)
    try:
        store.save_state(folder, state)
    finally:
        os.umask(previous)
    assert mode(folder) == 0o700
    assert mode(folder / "authority.json") == 0o600
    assert mode(folder / "root-cert.pem") == 0o644
    assert x509.load_pem_x509_certificates((folder / "root-cert.pem").read_bytes()) == list(state.roots)
    assert b"PRIVATE" not in (folder / "root-cert.pem").read_bytes()


def test_operators_root_file_is_left_alone(tmp_path: pathlib.Path) -> None:
    root = make_node("root", NOW)
    write_authority(tmp_path, root, [], [root])
    store.save_state(tmp_path, self_signed())
    assert (tmp_path / "root-cert.pem").read_bytes() == root.pem


def test_broken_state_is_named_and_never_quoted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "authority.json").write_text('{"current": {"certificate": 5, "key": "hunter2"}}')
    with pytest.raises(AuthorityError, match=r"authority\.json.*restore it") as caught:
        store.load_state(tmp_path)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_replacing_a_file_leaves_no_other_behind(tmp_path: pathlib.Path) -> None:
    store.replace_file(tmp_path / "a", b"one", 0o600)
    store.replace_file(tmp_path / "a", b"two", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"two"


def test_folder_that_cannot_be_written_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AuthorityError, match="cannot make"):
        store.save_state(tmp_path / "file" / "ca", self_signed())
    with pytest.raises(AuthorityError, match="cannot write"):
        store.replace_file(tmp_path / "nowhere" / "a", b"", 0o600)
