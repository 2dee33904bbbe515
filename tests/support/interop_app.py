"""The application of the interoperation tests, a program of its own.

`serve PORT NAME` answers every GET with JSON: who answered, and the headers that came. `call URL` makes requests
without end, in turn over a new connection and over one that is kept, and prints a JSON line for each.
"""

import http.client
import http.server
import json
import sys
import time
import urllib.parse


def serve(port: int, name: str) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = {key.lower(): value for key, value in self.headers.items()}
            body = json.dumps({"name": name, "path": self.path, "headers": headers}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    http.server.ThreadingHTTPServer(("", port), Handler).serve_forever()


def call(url: str) -> None:
    where = urllib.parse.urlsplit(url).netloc
    kept = http.client.HTTPConnection(where, timeout=10)
    while True:
        for connection in (http.client.HTTPConnection(where, timeout=10), kept):
            print(json.dumps(_ask(connection)), flush=True)
            if connection is not kept:
                connection.close()
            time.sleep(0.02)


def _ask(connection: http.client.HTTPConnection, *, again: bool = True) -> dict[str, object]:
    fresh = connection.sock is None
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        if not fresh and again and isinstance(error, ConnectionError):
            # The server closed a connection that was idle, which every client of HTTP/1.1 has to expect.
            return _ask(connection, again=False)
        return {"at": time.time(), "code": 0, "error": repr(error)}
    if answer.status != 200:
        return {"at": time.time(), "code": answer.status, "error": text}
    seen = json.loads(text)
    return {"at": time.time(), "code": 200, "name": seen["name"], "mtls": "x-forwarded-client-cert" in seen["headers"]}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), sys.argv[3])
    else:
        call(sys.argv[2])
