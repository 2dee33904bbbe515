"""Unix sockets at long paths, and whose listener is busy."""

import contextlib
import os
import signal
import socket
import threading
from concurrent import futures

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


@contextlib.contextmanager
def busy_listener(path):
    """A listener that has as many callers waiting as it takes; the kernel lets no more in until it accepts one."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        while True:
            caller = stack.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            try:
                caller.connect(str(path))
            except BlockingIOError:
                break
        yield listener


def test_a_listener_that_is_busy_is_waited_for(short_path) -> None:
    with busy_listener(short_path / "s") as listener, futures.ThreadPoolExecutor() as pool:
        connecting = pool.submit(unix.connect, str(short_path / "s"), 30.0)
        done, _ = futures.wait((connecting,), timeout=0.2)
        assert not done
        listener.accept()[0].close()
        with connecting.result(30) as client:
            assert client.gettimeout() == 30.0
            listener.accept()[0].close()
            client.settimeout(None)
            assert client.recv(1) == b""


def test_a_signal_is_not_taken_for_a_connection(short_path) -> None:
    """Also the one by which a process goes on that was stopped."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with busy_listener(short_path / "s") as listener, futures.ThreadPoolExecutor(1) as pool:
            thread = pool.submit(threading.get_ident).result()
            connecting = pool.submit(unix.connect, str(short_path / "s"), 60.0)
            for _ in range(20):
                signal.pthread_kill(thread, signal.SIGUSR1)
                futures.wait((connecting,), timeout=0.01)
            assert not connecting.done()
            listener.accept()[0].close()
            with connecting.result(60) as client:
                assert client.getpeername() == str(short_path / "s")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_listener_that_stays_busy_is_given_up(short_path) -> None:
    with busy_listener(short_path / "s"), pytest.raises(TimeoutError):
        unix.connect(str(short_path / "s"), 0.2)
