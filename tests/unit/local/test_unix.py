"""Unix sockets at long paths."""

import os
import socket

import pytest

from mizzen.local.net import unix


def test_a_socket_is_reached_at_a_path_that_the_kernel_would_refuse(tmp_path, monkeypatch):
    deep = tmp_path / ("a" * 120)
    deep.mkdir()
    monkeypatch.chdir(deep)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("admin.sock")
        listener.listen()
        with unix.connect(str(deep / "admin.sock"), 5.0) as client:
            assert client.gettimeout() == 5.0


def test_nobody_there_is_an_error_that_leaves_nothing_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for path in (tmp_path / "admin.sock", tmp_path / "gone" / "admin.sock"):
        with pytest.raises(FileNotFoundError):
            unix.connect(str(path), 5.0)
    assert len(os.listdir("/proc/self/fd")) == before
