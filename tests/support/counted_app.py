"""The program of the metrics tests, server and client: every message has exactly the size that it is asked for.

    counted_app.py serve                                 HTTP on 8080, TCP on 9000
    counted_app.py http HOST COUNT PATH [REQUEST_BYTES [NAME=VALUE]...]
                                                         requests on one connection; prints the statuses
    counted_app.py tcp HOST PORT COUNT SENT RECEIVED     connections that send and want so many bytes

NAME=VALUE is a header; of values with `|` between them each request has another one, in turn. HTTP paths are `/STATUS/RESPONSE_BYTES`; `/grpc/CODE` answers as a gRPC server does.
"""

import http.client
import http.server
import socket
import socketserver
import sys
import threading


class Http(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        kind, size = self.path.strip("/").split("/")
        self.send_response(200 if kind == "grpc" else int(kind))
        if kind == "grpc":
            self.send_header("content-type", "application/grpc")
            self.send_header("grpc-status", size)
            size = "0"
        self.send_header("content-length", size)
        self.end_headers()
        self.wfile.write(b"x" * int(size))

    do_GET = do_POST = answer

    def log_message(self, *_: object) -> None:
        return


class Tcp(socketserver.StreamRequestHandler):
    """The client's first line says how much it sends besides, and how much it wants."""

    def handle(self) -> None:
        line = self.rfile.readline()
        sent, wanted = (int(number) for number in line.split())
        self.rfile.read(sent - len(line))
        self.wfile.write(b"y" * wanted)


class TcpServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


def serve() -> None:
    threading.Thread(target=TcpServer(("0.0.0.0", 9000), Tcp).serve_forever, daemon=True).start()
    http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Http).serve_forever()


def ask(host: str, count: str, path: str, size: str = "0", *given: str) -> None:
    connection = http.client.HTTPConnection(host, timeout=10)
    headers = {name: values.split("|") for name, _, values in (item.partition("=") for item in given)}
    if path.startswith("/grpc"):
        headers["content-type"] = ["application/grpc"]
    for number in range(int(count)):
        connection.request("POST" if int(size) else "GET", path, b"z" * int(size) or None, in_turn(headers, number))
        response = connection.getresponse()
        response.read()
        print(response.status, end=" ")


def in_turn(headers: dict[str, list[str]], number: int) -> dict[str, str]:
    return {name: values[number % len(values)] for name, values in headers.items()}


def connect(host: str, port: str, count: str, sent: str, received: str) -> None:
    for _ in range(int(count)):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            line = f"{sent} {received}\n".encode()
            connection.sendall(line + b"z" * (int(sent) - len(line)))
            got = 0
            while chunk := connection.recv(65536):
                got += len(chunk)
            print(got, end=" ")


if __name__ == "__main__":
    {"serve": serve, "http": ask, "tcp": connect}[sys.argv[1]](*sys.argv[2:])
