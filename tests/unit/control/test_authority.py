"""The authority with its files: found again after a restart, following what the operator exchanges."""

import logging
import os
import pathlib

import msgspec
import pytest
from certificate_requests import make_request, read_chain, verify_chain
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from plugged_authority import Node, make_node, revoke, write_authority

from mizzen import settings
from mizzen.ca import store
from mizzen.control.authority import RunningAuthority
from mizzen.errors import AuthorityError

START = 1_700_000_000.0
DAY = 86_400.0
CART = "spiffe://cluster.local/ns/shop/sa/cart"
REQUEST = make_request()


class Clock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def config(tmp_path: pathlib.Path, **changes: object) -> settings.Authority:
    found = settings.Authority(directory=str(tmp_path / "plugged"))
    return msgspec.structs.replace(found, **changes)


def start(tmp_path: pathlib.Path, clock: Clock, folder: str = "ca", **changes: object) -> RunningAuthority:
    return RunningAuthority(
        config(tmp_path, **changes), str(tmp_path / folder) if folder else "", "cluster.local", clock
    )


def touch_later(folder: pathlib.Path, seconds: int) -> None:
    for path in folder.iterdir():
        os.utime(path, (START + seconds, START + seconds))


def test_own_root_is_made_once_and_found_again(tmp_path: pathlib.Path, clock: Clock) -> None:
    first = start(tmp_path, clock).authority
    chain, roots = read_chain(first.issue(REQUEST, [CART]))
    second = start(tmp_path, clock).authority
    assert second.bundle == first.bundle == (tmp_path / "ca" / "root-cert.pem").read_bytes()
    assert verify_chain(chain, second.state.roots, START) == [CART]
    assert roots == list(second.state.roots)


def test_root_without_a_folder_is_announced_as_fleeting(
    tmp_path: pathlib.Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    start(tmp_path, clock, folder="")
    assert "lost when this process ends" in caplog.text


def test_rotation_survives_a_restart(tmp_path: pathlib.Path, clock: Clock) -> None:
    before = start(tmp_path, clock).authority
    before.issue(REQUEST, [CART])
    before.adopt(before.build_successor())
    after = start(tmp_path, clock).authority
    assert after.bundle == before.bundle
    assert after.state.switch_at == before.state.switch_at > START
    clock.now = after.state.switch_at
    after.advance()
    again = start(tmp_path, clock).authority
    assert again.state.current.certificate == before.state.successor.certificate  # type: ignore[union-attr]
    assert len(again.state.roots) == 2
    assert (tmp_path / "ca" / "root-cert.pem").read_bytes() == again.bundle


def test_rotation_that_could_not_be_written_down_is_as_soon_as_it_can_be(tmp_path: pathlib.Path, clock: Clock) -> None:
    found, place, away = start(tmp_path, clock), tmp_path / "ca", tmp_path / "away"
    found.authority.issue(REQUEST, [CART])
    place.rename(away)
    place.touch()
    found.authority.adopt(found.authority.build_successor())
    found.follow()
    place.unlink()
    away.rename(place)
    found.follow()
    assert start(tmp_path, clock).authority.state.roots == found.authority.state.roots
    assert len(found.authority.state.roots) == 2
    assert (place / "root-cert.pem").read_bytes() == found.authority.bundle


def test_plugged_in_authority_is_used_and_left_alone(tmp_path: pathlib.Path, clock: Clock) -> None:
    root = make_node("root", START)
    issuing = make_node("issuing", START, root)
    write_authority(tmp_path / "plugged", issuing, [issuing], [root])
    found = start(tmp_path, clock)
    assert found.authority.state.current.certificate == issuing.certificate
    assert not found.authority.wants_successor
    clock.now += 3600 * DAY
    assert not found.authority.wants_successor
    assert store.load_state(tmp_path / "ca") is not None


def test_authority_put_into_the_own_folder_counts_as_plugged_in(tmp_path: pathlib.Path, clock: Clock) -> None:
    root = make_node("root", START)
    write_authority(tmp_path / "ca", root, [], [root])
    assert start(tmp_path, clock).authority.state.current.certificate == root.certificate
    assert (tmp_path / "ca" / "root-cert.pem").read_bytes() == root.pem


def test_incomplete_plugged_in_authority_ends_the_start(tmp_path: pathlib.Path, clock: Clock) -> None:
    root = make_node("root", START)
    write_authority(tmp_path / "plugged", root, [], [root])
    (tmp_path / "plugged" / "ca-key.pem").unlink()
    with pytest.raises(AuthorityError, match=r"lacks ca-key\.pem"):
        start(tmp_path, clock)


def test_exchanged_authority_is_taken_in_with_an_overlap(tmp_path: pathlib.Path, clock: Clock) -> None:
    old, new = make_node("old", START), make_node("new", START)
    write_authority(tmp_path / "plugged", old, [], [old])
    found = start(tmp_path, clock, root_overlap=60.0)
    write_authority(tmp_path / "plugged", new, [], [new])
    touch_later(tmp_path / "plugged", 1)
    found.follow()
    assert found.authority.state.current.certificate == old.certificate
    assert found.authority.state.roots == (old.certificate, new.certificate)
    restarted = start(tmp_path, clock, root_overlap=60.0).authority
    assert restarted.state.current.certificate == old.certificate
    clock.now += 60
    restarted.advance()
    assert restarted.state.current.certificate == new.certificate
    assert old.certificate in restarted.state.roots


def test_authority_that_was_half_written_when_it_was_looked_at_is_taken_in_once_it_is_whole(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    """The clock of a file system ticks every few milliseconds: both writes may have the same time."""
    old, new = make_node("old", START), make_node("new", START)
    write_authority(tmp_path / "plugged", old, [], [old])
    found = start(tmp_path, clock)
    write_authority(tmp_path / "plugged", new, [], [new])
    certificate = tmp_path / "plugged" / "ca-cert.pem"
    certificate.write_bytes(b"")
    touch_later(tmp_path / "plugged", 1)
    found.follow()
    certificate.write_bytes(new.pem)
    touch_later(tmp_path / "plugged", 1)
    found.follow()
    assert found.authority.state.roots == (old.certificate, new.certificate)


def test_authority_that_is_exchanged_while_another_starts_is_taken_in(tmp_path: pathlib.Path) -> None:
    old, new = make_node("old", START), make_node("new", START)
    write_authority(tmp_path / "plugged", old, [], [old])

    class Exchanging(Clock):
        """The first that asks for the time has read the files already."""

        def __call__(self) -> float:
            write_authority(tmp_path / "plugged", new, [], [new])
            touch_later(tmp_path / "plugged", 1)
            return super().__call__()

    found = start(tmp_path, Exchanging())
    assert found.authority.state.roots == (old.certificate,)
    found.follow()
    assert found.authority.state.roots == (old.certificate, new.certificate)


def test_change_from_an_own_root_to_a_plugged_in_one_overlaps_too(tmp_path: pathlib.Path, clock: Clock) -> None:
    own = start(tmp_path, clock).authority
    own.issue(REQUEST, [CART])
    root = make_node("root", START)
    write_authority(tmp_path / "plugged", root, [], [root])
    found = start(tmp_path, clock).authority
    assert found.state.current.certificate == own.state.current.certificate
    assert root.certificate in found.state.roots
    clock.now += 2 * DAY
    found.advance()
    assert found.state.current.certificate == root.certificate


def test_authority_that_is_plugged_in_while_an_own_root_signs_follows_it(tmp_path: pathlib.Path, clock: Clock) -> None:
    found = start(tmp_path, clock)
    own = found.authority.state.current
    found.authority.issue(REQUEST, [CART])
    found.follow()
    root = make_node("root", START)
    write_authority(tmp_path / "plugged", root, [], [root])
    found.follow()
    assert found.authority.state.roots == (*own.roots, root.certificate)
    clock.now += DAY
    found.authority.advance()
    assert found.authority.state.current.certificate == root.certificate
    clock.now += 3600 * DAY
    assert not found.authority.wants_successor


def test_authority_whose_extensions_do_not_parse_changes_nothing(
    tmp_path: pathlib.Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    old = make_node("old", START)
    write_authority(tmp_path / "plugged", old, [], [old])
    found = start(tmp_path, clock)
    broken = make_broken_node(START)
    write_authority(tmp_path / "plugged", broken, [], [broken])
    touch_later(tmp_path / "plugged", 1)
    found.follow()
    assert found.authority.state.roots == (old.certificate,)
    assert "the plugged-in authority stays as it was" in caplog.text


def make_broken_node(now: float) -> Node:
    """A root whose basic constraints are no DER."""
    made = make_node("broken", now)
    builder = (
        x509.CertificateBuilder()
        .subject_name(made.certificate.subject)
        .issuer_name(made.certificate.subject)
        .public_key(made.key.public_key())
        .serial_number(1)
        .not_valid_before(made.certificate.not_valid_before_utc)
        .not_valid_after(made.certificate.not_valid_after_utc)
        .add_extension(x509.UnrecognizedExtension(x509.BasicConstraints.oid, b"nonsense"), critical=True)
    )
    return Node(builder.sign(made.key, hashes.SHA256()), made.key)


def test_half_exchanged_authority_changes_nothing(
    tmp_path: pathlib.Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = make_node("old", START), make_node("new", START)
    write_authority(tmp_path / "plugged", old, [], [old])
    found = start(tmp_path, clock)
    (tmp_path / "plugged" / "ca-cert.pem").write_bytes(new.pem)
    touch_later(tmp_path / "plugged", 1)
    found.follow()
    found.follow()
    assert found.authority.state.roots == (old.certificate,)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in errors] == [
        f"the plugged-in authority stays as it was: {tmp_path / 'plugged'}: "
        "the authority's key does not belong to its certificate"
    ]


def write_revocations(tmp_path: pathlib.Path, pem: bytes, seconds: int) -> None:
    (tmp_path / "plugged" / "ca-crl.pem").write_bytes(pem)
    touch_later(tmp_path / "plugged", seconds)


def test_revocation_lists_are_followed_and_kept_for_others_to_read(
    tmp_path: pathlib.Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    root = make_node("root", START)
    write_authority(tmp_path / "plugged", root, [], [root])
    one, two = revoke(root, START, [1]), revoke(root, START, [1, 2])
    write_revocations(tmp_path, one, 0)
    running = start(tmp_path, clock)
    distributed = tmp_path / "ca" / "revoked.pem"
    assert running.revocations.pem == distributed.read_bytes() == one
    write_revocations(tmp_path, two, 1)
    running.follow()
    assert running.revocations.pem == distributed.read_bytes() == two
    write_revocations(tmp_path, two[:-30], 2)
    running.follow()
    assert running.revocations.pem == distributed.read_bytes() == two
    assert "ca-crl.pem holds no whole PEM of a CRL; the last good revocation lists stay in force" in caplog.text
    (tmp_path / "plugged" / "ca-crl.pem").unlink()
    running.follow()
    assert running.revocations.pem == b""
    assert not distributed.exists()


def test_a_bad_revocation_list_keeps_a_process_from_starting(tmp_path: pathlib.Path, clock: Clock) -> None:
    root, stranger = make_node("root", START), make_node("stranger", START)
    write_authority(tmp_path / "plugged", root, [], [root])
    write_revocations(tmp_path, revoke(stranger, START), 0)
    with pytest.raises(AuthorityError, match=r"ca-crl\.pem holds no CRL signed by CN=root"):
        start(tmp_path, clock)
    assert start(tmp_path, clock, revocations=False).revocations.pem is None


def test_a_bad_revocation_list_does_not_keep_the_authority_from_being_renewed(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    root = make_node("root", START)
    first, second = (make_node("issuing", START, root) for _ in range(2))
    write_authority(tmp_path / "plugged", first, [], [root])
    lists = revoke(root, START) + revoke(first, START) + revoke(second, START)
    write_revocations(tmp_path, lists, 0)
    running = start(tmp_path, clock)
    write_authority(tmp_path / "plugged", second, [], [root])
    write_revocations(tmp_path, b"nonsense", 1)
    running.follow()
    assert running.revocations.pem == lists
    assert running.authority.state.current.certificate == second.certificate


def test_without_a_plugged_authority_there_is_nothing_to_say_of_revocations(
    tmp_path: pathlib.Path, clock: Clock
) -> None:
    assert start(tmp_path, clock).revocations.pem is None


def test_lists_that_lack_the_root_of_before_wait_until_that_has_retired(
    tmp_path: pathlib.Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    running = start(tmp_path, clock, root_overlap=100.0)
    running.authority.issue(REQUEST, [CART])
    root = make_node("root", START)
    write_authority(tmp_path / "plugged", root, [], [root])
    write_revocations(tmp_path, revoke(root, START, [1]), 0)
    running.follow()
    assert "which is still trusted; until then it is not in force" in caplog.text
    for moment in (START, START + 101):
        clock.now = moment
        running.authority.advance()
        assert running.revocations.pem is None
    assert running.authority.state.current.certificate == root.certificate
    clock.now = START + 2 * DAY
    running.authority.advance()
    assert running.authority.state.roots == (root.certificate,)
    assert running.revocations.pem == (tmp_path / "plugged" / "ca-crl.pem").read_bytes()
