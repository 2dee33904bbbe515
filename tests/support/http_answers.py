"""An HTTP server that gives recorded answers: stands in for Envoy's admin interface or a control plane."""

import contextlib
import http.server
import os
import pathlib
import socketserver
import threading
from collections.abc import Iterator, Mapping


class Answers:
    """What is answered by request target (`/config_dump?mask=…`), and which requests came."""

    def __init__(self, by_target: Mapping[str, bytes]) -> None:
        self.by_target = dict(by_target)
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        """Of requests that had one."""


def _handler(answers: Answers) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            answers.requests.append(f"{self.command} {self.path}")
            if length := int(self.headers.get("Content-Length") or 0):
                answers.bodies.append(self.rfile.read(length))
            body = answers.by_target.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(b"not here" if body is None else body)

        do_GET = do_POST = do_PUT = _answer

        def address_string(self) -> str:
            return "client"

        def log_message(self, *_: object) -> None:
            return

    return Handler


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@contextlib.contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def on_socket(path: pathlib.Path, answers: Answers) -> Iterator[None]:
    """The answers on a Unix socket; bound by a short name, as TMPDIR may be long and the kernel takes 107 bytes."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        server = _UnixServer(f"/proc/self/fd/{directory}/{path.name}", _handler(answers))
    finally:
        os.close(directory)
    with _running(server):
        yield


@contextlib.contextmanager
def on_port(answers: Answers) -> Iterator[str]:
    """The answers on a loopback port; gives HOST:PORT."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(answers))
    with _running(server):
        yield f"127.0.0.1:{server.server_address[1]}"
