"""Ways of isolation: their commands, their users, and how a machine that forbids them is told apart."""

import os
import pathlib

import pytest

from mizzen.errors import LocalError
from mizzen.local import isolation
from mizzen.local.isolation import Isolation


def test_all_ways_end_with_the_process_that_chose_them():
    for way in (Isolation.ROOT, Isolation.MAPPED, Isolation.SINGLE):
        prefix = isolation.build_prefix(way)
        assert {"--net", "--mount", "--pid", "--kill-child"} <= set(prefix)
        assert ("--user" in prefix) is (way is not Isolation.ROOT)
    assert isolation.build_prefix(Isolation.NONE) == ("setpriv", "--pdeathsig=KILL", "--")


def test_a_tool_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalError, match="unshare is not installed: install the package util-linux"):
        isolation.choose(capture=True, uid=os.getuid(), environ=os.environ)


def test_where_there_are_users_each_has_its_own(tmp_path):
    open_file = pathlib.Path("/etc/passwd")
    proxy = isolation.proxy_identity(Isolation.ROOT, (open_file,))
    assert (proxy.uid, proxy.gid, proxy.capabilities) == (1337, 1337, ())
    program = isolation.application_identity(Isolation.MAPPED, None, None, (open_file,))
    assert (program.uid, program.gid) == (65532, 65532)
    chosen = isolation.application_identity(Isolation.ROOT, 1000, 3000, (open_file,))
    assert (chosen.uid, chosen.gid) == (1000, 3000)


def test_where_there_is_one_user_nobody_changes():
    for way in (Isolation.SINGLE, Isolation.NONE):
        assert isolation.proxy_identity(way, ()).uid is None
        assert isolation.application_identity(way, 1000, 1000, ()).uid is None


def test_closed_folders_leave_the_right_to_read_and_root_needs_none(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "program.py").touch()
    needed = (closed / "program.py",)
    assert isolation.proxy_identity(Isolation.ROOT, needed).capabilities == ("dac_read_search",)
    assert isolation.application_identity(Isolation.ROOT, 0, 0, needed).capabilities == ()


def test_openness_is_that_of_every_folder_on_the_way(tmp_path):
    tmp_path.chmod(0o755)
    folder = pathlib.Path("/usr/bin")
    assert isolation.is_open_to_others(folder)
    assert not isolation.is_open_to_others(folder / "nothing-of-that-name")
