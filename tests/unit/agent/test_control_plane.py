"""How the control plane is reached: whose token goes where, what is trusted, how long one waits."""

import base64
import json

import pytest

from mizzen.agent import control_plane
from mizzen.agent.control_plane import BackOff, Endpoint
from mizzen.errors import AgentError


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text("secret\n")
    return path


@pytest.mark.parametrize(
    ("address", "tls", "sent"),
    [
        ("istiod:15012", True, True),
        ("unix:///run/xds", False, True),
        ("istiod:15010", False, False),
    ],
)
def test_token_travels_by_tls_and_unix_sockets_only(token, address: str, tls: bool, sent: bool) -> None:
    endpoint = Endpoint(address=address, tls=tls, token=token, headers={"clusterid": "east", "X-A": "b"})
    metadata = dict(control_plane.build_call_metadata(endpoint))
    assert metadata.pop("authorization", None) == ("Bearer secret" if sent else None)
    assert metadata == {"clusterid": "east", "x-a": "b"}


def test_missing_or_empty_token_is_not_sent(tmp_path, token) -> None:
    token.write_text(" \n")
    for path in (token, tmp_path / "missing", None):
        assert control_plane.build_call_metadata(Endpoint(address="a:1", token=path)) == ()


@pytest.mark.parametrize("content", [b"two\nlines", b"\xff\xfe", b"a\0b", "caf\u00e9".encode()])
def test_what_no_token_can_be_is_an_error_that_does_not_show_it(token, content: bytes) -> None:
    token.write_bytes(content)
    with pytest.raises(AgentError, match=r"token holds no token$"):
        control_plane.build_call_metadata(Endpoint(address="a:1", token=token))


def test_first_root_file_that_exists_is_used(tmp_path) -> None:
    (tmp_path / "b").write_bytes(b"B")
    endpoint = Endpoint(address="a:1", roots=(tmp_path / "a", tmp_path / "b"))
    assert control_plane.read_roots(endpoint) == b"B"
    (tmp_path / "a").write_bytes(b"A")
    assert control_plane.read_roots(endpoint) == b"A"
    with pytest.raises(AgentError, match="no root certificate for a:1: searched nowhere"):
        control_plane.read_roots(Endpoint(address="a:1"))


def test_roots_that_were_pushed_are_trusted_beside_the_file_never_without_it(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"F")
    endpoint = Endpoint(address="a:1", roots=(tmp_path / "file",), pushed_roots=tmp_path / "pushed")
    assert control_plane.read_roots(endpoint) == b"F"
    (tmp_path / "pushed").write_bytes(b"P")
    assert control_plane.read_roots(endpoint) == b"F\nP"
    (tmp_path / "file").unlink()
    with pytest.raises(AgentError, match="no root certificate"):
        control_plane.read_roots(endpoint)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("istiod.istio-system.svc:15012", "istiod.istio-system.svc"),
        ("[fd00::1]:15012", "fd00::1"),
        ("unix:///a", "localhost"),
    ],
)
def test_host_of_an_address(address: str, host: str) -> None:
    assert Endpoint(address=address).host == host


def test_certificate_is_shown_only_without_a_token(tmp_path, token) -> None:
    (tmp_path / "cert-chain.pem").write_bytes(b"C")
    (tmp_path / "key.pem").write_bytes(b"K")
    read = control_plane._read_certificate
    assert read(Endpoint(address="a:1", certificate=tmp_path)) == (b"C", b"K")
    assert read(Endpoint(address="a:1", certificate=tmp_path, token=token)) == (None, None)
    assert read(Endpoint(address="a:1")) == (None, None)


def test_delays_double_up_to_the_longest_and_begin_again() -> None:
    back_off = BackOff(0.1, 1.0)
    longest = [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    for bound in longest:
        assert bound / 2 <= back_off.delay() <= bound
    assert back_off.delay(0.3) <= 0.3
    assert back_off.delay() >= 0.5
    back_off.reset()
    assert back_off.delay() <= 0.1


def token_until(end: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps({"exp": end}).encode()).rstrip(b"=").decode()
    return f"e30.{payload}.sig"


@pytest.fixture
def certificate(tmp_path):
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "cert-chain.pem").write_text("chain")
    (folder / "key.pem").write_text("key")
    return folder


@pytest.mark.parametrize(("end", "sent"), [(1.0, False), (1e11, True), ("soon", True)])
def test_a_token_whose_time_is_over_gives_way_to_a_certificate(token, certificate, end, sent) -> None:
    token.write_text(token_until(end))
    endpoint = Endpoint(address="a:15012", token=token, certificate=certificate)
    assert ("authorization" in dict(control_plane.build_call_metadata(endpoint))) is sent


def test_a_token_whose_time_is_over_is_shown_where_there_is_nothing_else(token, certificate) -> None:
    token.write_text(token_until(1.0))
    (certificate / "key.pem").unlink()
    for folder in (certificate, None):
        endpoint = Endpoint(address="a:15012", token=token, certificate=folder)
        assert "authorization" in dict(control_plane.build_call_metadata(endpoint))


@pytest.mark.parametrize(
    ("address", "mutual"), [("a:15012", "a:15011"), ("[::1]:15012", "[::1]:15011"), ("a:443", "a:443")]
)
def test_certificates_are_shown_where_they_are_looked_at(address: str, mutual: str) -> None:
    assert Endpoint(address=address).mutual_address == mutual
