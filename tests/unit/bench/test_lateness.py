"""What is read of a control plane's lag, and answers over HTTP."""

import http.server
import threading

from eventually import eventually_blocking

from bench.lateness import Answers, ask_repeatedly, lag_between, read_lag

METRICS = """
# TYPE mizzen_loop_lag_seconds histogram
mizzen_loop_lag_seconds_bucket{le="0.01"} 7
mizzen_loop_lag_seconds_bucket{le="+Inf"} 9
mizzen_loop_lag_seconds_sum 0.4
pilot_debounce_time_bucket{le="0.01"} 3
"""


def test_the_lag_between_two_readings_is_their_difference():
    before = read_lag(METRICS)
    assert before == {0.01: 7.0, float("inf"): 9.0}
    after = read_lag(METRICS.replace("} 9", "} 19").replace('"} 7', '"} 8'))
    assert lag_between(before, after) == [(0.01, 1.0), (float("inf"), 10.0)]


def test_answers_are_asked_for_on_one_connection_and_failures_counted():
    connections = set()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            connections.add(self.client_address)
            self.send_response(200 if self.path == "/ready" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"127.0.0.1:{server.server_port}"
        good, bad = Answers(), Answers()
        with ask_repeatedly(address, "/ready", 0.001, good):
            eventually_blocking(lambda: len(good.seconds) >= 5)
        assert len(connections) == 1
        with ask_repeatedly(address, "/other", 0.001, bad):
            eventually_blocking(lambda: bad.seconds)
        server.shutdown()
        thread.join()
    assert (good.failures, bad.failures) == (0, len(bad.seconds))
    gone = Answers()
    with ask_repeatedly(address, "/ready", 600.0, gone):
        eventually_blocking(lambda: gone.seconds)
    assert gone.failures == len(gone.seconds) == 1
