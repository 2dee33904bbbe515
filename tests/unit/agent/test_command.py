"""`mizzen agent wait` and `mizzen agent request`, as injected lifecycle hooks call them."""

import contextlib
import http.server
import threading

import cli_runs
import pytest

PATIENT = ("--requestTimeoutMillis", "60000")
"""However long a busy machine takes for one answer, it counts."""


@contextlib.contextmanager
def server(*statuses: int):
    """Answers with these statuses in turn, then with the last; yields its port and what was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.send_response(statuses[min(len(asked), len(statuses)) - 1])
            self.end_headers()
            self.wfile.write(b"not yet\n" if len(asked) < len(statuses) else b"done\n")

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        try:
            yield made.server_address[1], asked
        finally:
            made.shutdown()
            thread.join()


def test_wait_asks_until_envoy_is_ready() -> None:
    with server(503, 503, 200) as (port, asked):
        url = f"http://localhost:{port}/healthz/ready"
        done = cli_runs.run("agent", "wait", "--url", url, "--periodMillis", "10", *PATIENT)
    assert done.exit_code == 0, done.stderr
    assert asked == ["GET /healthz/ready"] * 3


def test_wait_gives_up_with_the_last_reason() -> None:
    with server(503) as (port, _):
        url = f"http://localhost:{port}/healthz/ready"
        done = cli_runs.run("agent", "wait", "--url", url, "--periodMillis", "10", "--timeoutSeconds", "0.1", *PATIENT)
    assert done.exit_code == 1
    assert "not ready after 0.1 s" in done.stderr
    assert "answers 503" in done.stderr


@pytest.mark.parametrize(("method", "code", "status"), [("post", 0, 200), ("GET", 1, 405)])
def test_request_sends_and_prints(method: str, code: int, status: int) -> None:
    with server(status) as (port, asked):
        done = cli_runs.run("agent", "request", f"--debug-port={port}", method, "drain")
    assert asked == [f"{method.upper()} /drain"]
    assert done.exit_code == code
    assert (done.stdout == "done\n") == (code == 0)


def test_agent_that_cannot_start_says_why_in_one_line(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INSTANCE_IP", "10.0.0.1")
    done = cli_runs.run("agent", "proxy", "waypoint")
    assert done.exit_code == 64
    assert done.stderr == "Error: unknown kind of proxy 'waypoint'; known are sidecar and router\n"
