"""Files written whole, and noticed when they change; addresses of interfaces."""

import asyncio
import contextlib
import os
import socket

import pytest

from mizzen.agent import files, interfaces


def test_file_is_replaced_whole_with_its_mode(tmp_path) -> None:
    path = tmp_path / "a/b"
    files.write_file(path, b"one")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o600)
    before = path.stat().st_ino
    files.write_file(path, b"two", mode=0o644)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o644)
    assert path.stat().st_ino != before
    assert os.listdir(tmp_path / "a") == ["b"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_who_may_use_a_file_can_reach_it_whatever_the_umask_is(tmp_path) -> None:
    """Envoy's user is another than the agent's, which hands the folder over."""
    before = os.umask(0o077)
    try:
        files.write_file(tmp_path / "etc/istio/proxy/envoy.json", b"{}", mode=0o644)
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("etc", "etc/istio", "etc/istio/proxy")}
    assert modes == {"etc": 0o755, "etc/istio": 0o755, "etc/istio/proxy": 0o700}


def test_failed_write_leaves_nothing_behind(tmp_path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError):
        files.write_file(tmp_path / "b", b"one")
    assert os.listdir(tmp_path) == ["b"]


def test_unreadable_file_is_none(tmp_path) -> None:
    assert files.read_file(tmp_path / "missing") is None
    assert files.read_file(tmp_path) is None


async def test_change_is_seen_through_kubernetes_links(tmp_path) -> None:
    for version in ("v1", "v2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "root.pem").write_text(version)
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "root.pem").symlink_to("..data/root.pem")
    path = tmp_path / "root.pem"
    seen = []
    async with asyncio.timeout(60):
        async for content in files.watch_files([path], interval=0.01):
            seen.append(content[path])
            if len(seen) == 1:
                (tmp_path / "..new").symlink_to("v2")
                (tmp_path / "..new").rename(tmp_path / "..data")
            elif len(seen) == 2:
                path.unlink()
            else:
                break
    assert seen == [b"v1", b"v2", None]


def test_given_address_comes_first_and_the_other_family_follows() -> None:
    found = ("10.0.0.5", "10.0.0.6", "fd00::5")
    assert interfaces.merge_addresses("10.1.1.10", found) == ("10.1.1.10", "fd00::5")
    assert interfaces.merge_addresses("fd00::9", found) == ("fd00::9", "10.0.0.5", "10.0.0.6")
    assert interfaces.merge_addresses("", found) == found


def _address_towards(host: str) -> str:
    """The address from which this machine would call; empty where no way leads there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(OSError):
        asking.connect((host, 9))
        return str(asking.getsockname()[0])
    return ""


def test_addresses_of_this_machine_are_those_that_others_reach_and_no_loopback() -> None:
    found = interfaces.find_addresses()
    assert not [address for address in found if address.startswith(("127.", "::1", "fe80"))]
    assert _address_towards("192.0.2.1") in ("", *found)
