"""The programs of the sample shop, all in one: `python3 app.py ROLE`.

    front     answers shoppers: asks cart and catalog, and at /checkout also payments, ledger and the outside rates
    cart      says which version it is
    catalog   lists goods, and at /ask calls any URL, to show what another identity may not do
    payments  serves HTTPS with a certificate of its own
    ledger    a TCP server that speaks first and takes one line for each booking
    rates     stands for a host on the internet, outside the mesh

Only the standard library, no dependency, no state. Every answer carries what the receiver saw of its caller: the header
`x-forwarded-client-cert`, which the receiving sidecar writes from the caller's certificate, and the peer's address.
"""

import http.client
import json
import os
import signal
import socket
import socketserver
import ssl
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TIMEOUT_SECONDS = 10
# Passed on from request to request, so that one story can be followed through logs and traces.
TRACE_HEADERS = ("x-request-id", "x-user", "traceparent", "tracestate", "x-b3-traceid", "x-b3-spanid", "x-b3-sampled")

Answer = tuple[int, dict[str, Any]]
Role = Callable[[urllib.parse.SplitResult, Mapping[str, str]], Answer]


def setting(name: str, default: str) -> str:
    return os.environ.get(name, default)


# -- calling ----------------------------------------------------------------------------------------------------------


def call(url: str, headers: Mapping[str, str], *, trusted: str | None = None) -> Answer:
    """Status and JSON of one GET; a failure below HTTP is status 0 with its reason."""
    passed = {name: headers[name] for name in TRACE_HEADERS if name in headers}
    context = ssl.create_default_context(cafile=trusted) if trusted else None
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=passed), timeout=TIMEOUT_SECONDS, context=context
        ) as response:
            return response.status, decode(response.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, decode(refused.read())
    except (OSError, http.client.HTTPException) as failed:
        return 0, {"error": str(failed)}


def decode(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {"text": body.decode("utf-8", "replace")}
    return value if isinstance(value, dict) else {"value": value}


def book(address: str, amount: str) -> Answer:
    """One booking at the ledger: it greets, we send a line, it confirms."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS) as connection:
            stream = connection.makefile("rw", newline="\n")
            greeting = stream.readline().strip()
            stream.write(f"BOOK {amount}\n")
            stream.flush()
            reply = stream.readline().strip()
    except (OSError, ValueError) as failed:
        return 0, {"error": str(failed)}
    if not reply.startswith("BOOKED"):
        return 0, {"error": f"the ledger said {reply!r} after {greeting!r}"}
    return 200, {"greeting": greeting, "reply": reply}


# -- roles ------------------------------------------------------------------------------------------------------------


def front(url: urllib.parse.SplitResult, headers: Mapping[str, str]) -> Answer:
    calls: dict[str, Callable[[], Answer]] = {
        "cart": lambda: call(setting("CART", "http://cart:8080/"), headers),
        "catalog": lambda: call(setting("CATALOG", "http://catalog:8080/"), headers),
    }
    if url.path == "/checkout":
        payments, trusted = setting("PAYMENTS", "https://payments.shop.svc.cluster.local/"), setting("PAYMENTS_CA", "")
        calls["payments"] = lambda: call(payments, headers, trusted=trusted)
        calls["ledger"] = lambda: book(setting("LEDGER", "ledger:5432"), "12.50")
        calls["rates"] = lambda: call(setting("RATES", "http://rates.example.com/"), headers)
    elif url.path == "/ask-catalog":
        asked = setting("CATALOG", "http://catalog:8080/") + "ask?" + url.query
        calls = {"catalog": lambda: call(asked, headers)}
    elif url.path != "/":
        return 404, {"error": f"front has no {url.path}"}
    results = {name: make() for name, make in calls.items()}
    parts = {name: {"status": status, **body} for name, (status, body) in results.items()}
    failed = sorted(name for name, (status, _) in results.items() if status != 200)
    return (502, {"failed": failed, **parts}) if failed and url.path != "/ask-catalog" else (200, parts)


def cart(_url: urllib.parse.SplitResult, _headers: Mapping[str, str]) -> Answer:
    return 200, {"version": setting("VERSION", "v1"), "items": ["kettle", "tea"]}


def catalog(url: urllib.parse.SplitResult, headers: Mapping[str, str]) -> Answer:
    if url.path == "/ask":
        target = urllib.parse.parse_qs(url.query).get("url", [""])[0]
        status, body = call(target, headers)
        return 200, {"asked": target, "answer": {"status": status, **body}}
    return 200, {"goods": ["kettle", "tea", "cup"]}


def payments(_url: urllib.parse.SplitResult, _headers: Mapping[str, str]) -> Answer:
    return 200, {"paid": True}


def rates(_url: urllib.parse.SplitResult, _headers: Mapping[str, str]) -> Answer:
    return 200, {"EUR": 1.0, "KRW": 1620.5, "USD": 1.16}


# -- serving ----------------------------------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """A thread for each connection; a new version may bind while the old one ends."""

    daemon_threads = True
    request_queue_size = 256


def build_handler(name: str, role: Role) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/healthz":
                status, body = 200, {}
            else:
                headers = {key.lower(): value for key, value in self.headers.items()}
                status, body = role(urllib.parse.urlsplit(self.path), headers)
                body["served_by"] = describe(name, self.client_address[0], headers)
            content = json.dumps(body).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            if self.path != "/healthz":
                print(f"{self.address_string()} {format % args}", flush=True)

    return Handler


def describe(name: str, peer: str, headers: Mapping[str, str]) -> dict[str, str]:
    """What the receiver knows of itself and of who called it."""
    return {
        "role": name,
        "pod": socket.gethostname() if "POD_NAME" not in os.environ else os.environ["POD_NAME"],
        "peer_address": peer,
        "x-forwarded-client-cert": headers.get("x-forwarded-client-cert", ""),
    }


class Ledger(socketserver.StreamRequestHandler):
    """Greets, then answers each `BOOK AMOUNT` until the client has had enough."""

    lock = threading.Lock()
    entries = 0

    def handle(self) -> None:
        name = setting("POD_NAME", socket.gethostname())
        self.wfile.write(f"READY {name}\n".encode())
        for line in self.rfile:
            verb, _, amount = line.decode("utf-8", "replace").strip().partition(" ")
            if verb != "BOOK":
                self.wfile.write(b"UNKNOWN\n")
                continue
            with Ledger.lock:
                Ledger.entries += 1
                number = Ledger.entries
            self.wfile.write(f"BOOKED {number} {amount} {name}\n".encode())


class LedgerServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


ROLES: dict[str, Role] = {"front": front, "cart": cart, "catalog": catalog, "payments": payments, "rates": rates}


def build_server(name: str, host: str, port: int) -> socketserver.TCPServer:
    if name == "ledger":
        return LedgerServer((host, port), Ledger)
    server = Server((host, port), build_handler(name, ROLES[name]))
    if name == "payments":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(setting("TLS_CERTIFICATE", "tls.crt"), setting("TLS_KEY", "tls.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[1] not in {*ROLES, "ledger"}:
        print(f"usage: app.py {'|'.join([*ROLES, 'ledger'])}", file=sys.stderr)
        return 2
    name = arguments[1]
    port = int(setting("PORT", "8080"))
    server = build_server(name, setting("MIZZEN_LISTEN_ADDRESS", "0.0.0.0"), port)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"{name} listens on {port}", flush=True)
    server.serve_forever()
    server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
