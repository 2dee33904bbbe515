"""What is asked: a request or a connection, and from where.

In: a URL or `host:port`, headers as typed, and the source. Out: `Request`, which the walk reads, and `Message`, the
HTTP request as it stands at one moment of its way, with the changes that routes make to it.
"""

import math
import re
import urllib.parse
from collections.abc import Iterable, Iterator

import msgspec

from mizzen.errors import DecodeError
from mizzen.model.names import is_ip

Pairs = tuple[tuple[str, str], ...]

_PORTS = {"http": 80, "https": 443, "grpc": 80, "tcp": 0, "tls": 443}
FILE_KEYS = {"address": "connectTo", "at_once": "atOnce", "gives_up": "givesUp"}
"""Of fields of a request, the keys of tables of tests and of probes where these are not the fields' names."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BREAKS = re.compile(r"[\0\r\n]")
_FIRST_STATUS, _LAST_STATUS = 100, 599
_HTTP = ("http", "https", "grpc")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, before anybody has seen it."""

    source: str
    """`POD[.NAMESPACE]`, `gateway/NAME[.NAMESPACE]` or `outside`."""
    host: str
    port: int
    scheme: str = "http"
    """`http`, `https`, `grpc`, or `tcp` and `tls` for connections of any other protocol."""
    method: str = "GET"
    path: str = "/"
    """With its query."""
    headers: Pairs = ()
    principal: str = ""
    """The identity (`spiffe://…`) that the source's certificate has, in place of the pod's own."""
    address: str = ""
    """Connect here instead of where the host resolves to."""
    http2: bool = False
    takes: float = 0.0
    """Seconds that the program needs to answer; 0 is no time."""
    answers: int = 200
    """What the program answers, if it is reached; 0 where it closes the connection instead."""
    at_once: int = 1
    """How many such requests there are at the same time."""
    earlier: int = 0
    """How many came just before."""
    client: str = ""
    """The address of a source outside, where it is known."""
    gives_up: float = 0.0
    """Seconds after which the source has gone; 0 where it waits."""
    authorizer: int = 0
    """What an authorizer answers that is asked; 0 where nobody says."""
    certificate: bytes = b""
    """PEM of the source's own certificate, where it speaks TLS itself."""

    @property
    def is_http(self) -> bool:
        """Whether the connection carries HTTP, in TLS or not."""
        return self.scheme in _HTTP

    @property
    def is_tls(self) -> bool:
        """Whether the source itself speaks TLS."""
        return self.scheme in ("https", "tls")

    @property
    def authority(self) -> str:
        """The Host that the source sends."""
        stated = next((value for name, value in self.headers if name.lower() in ("host", ":authority")), "")
        if stated:
            return stated
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def message(self) -> "Message":
        """The request as the source sends it."""
        kept = tuple((n.lower(), v) for n, v in self.headers if n.lower() not in ("host", ":authority"))
        if self.scheme == "grpc" and not any(name == "content-type" for name, _ in kept):
            kept = (*kept, ("content-type", "application/grpc"))
        return Message(
            method="POST" if self.scheme == "grpc" else self.method,
            path=self.path,
            authority=self.authority,
            headers=kept,
            scheme="https" if self.is_tls else "http",
            http2=self.http2 or self.scheme == "grpc",
        )


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request on its way."""

    method: str = "GET"
    path: str = "/"
    authority: str = ""
    headers: Pairs = ()
    """Names in lower case."""
    scheme: str = "http"
    http2: bool = False

    @property
    def url_path(self) -> str:
        """The path without query and fragment, which is what routes and policies match."""
        return self.path.partition("?")[0].partition("#")[0]

    @property
    def query(self) -> list[tuple[str, str]]:
        """The query's parameters."""
        return urllib.parse.parse_qsl(self.path.partition("?")[2], keep_blank_values=True)

    def header(self, name: str) -> str | None:
        """The header's value, several joined by commas; pseudo-headers by their names. None where it is absent."""
        lowered = name.lower()
        pseudo = {
            ":method": self.method,
            ":path": self.path,
            ":authority": self.authority,
            "host": self.authority,
            ":scheme": self.scheme,
        }
        if lowered in pseudo:
            return pseudo[lowered]
        found = [value for key, value in self.headers if key == lowered]
        return ",".join(found) if found else None

    def with_header(self, name: str, value: str, *, append: bool = False) -> "Message":
        """The request with one more header; without `append` earlier ones of the name go."""
        lowered = name.lower()
        if lowered in (":authority", "host"):
            return msgspec.structs.replace(self, authority=value)
        if lowered == ":path":
            return msgspec.structs.replace(self, path=value)
        kept = self.headers if append else tuple(pair for pair in self.headers if pair[0] != lowered)
        return msgspec.structs.replace(self, headers=(*kept, (lowered, value)))

    def without_header(self, name: str) -> "Message":
        """The request without the header."""
        lowered = name.lower()
        return msgspec.structs.replace(self, headers=tuple(pair for pair in self.headers if pair[0] != lowered))


def parse_target(text: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and path of a URL; `host:port` alone is a plain TCP connection. Raises DecodeError."""
    if "://" not in text:
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or not host:
            raise DecodeError(f"{text!r} is neither a URL nor host:port")
        return "tcp", host.strip("[]"), int(port), ""
    try:
        parts = urllib.parse.urlsplit(text)
        port_number = parts.port
    except ValueError as bad:
        raise DecodeError(f"{text!r}: {bad}") from bad
    if parts.scheme not in _PORTS or not parts.hostname:
        raise DecodeError(f"{text!r}: the scheme is one of {', '.join(_PORTS)}, and a host must follow")
    chosen = port_number or _PORTS[parts.scheme]
    if not chosen:
        raise DecodeError(f"{text!r} names no port")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, chosen, path


def check(request: Request) -> Request:
    """The request itself; raises DecodeError with the field's name for what nobody could send or be."""
    for complaint, field in _complaints(request):
        raise DecodeError(complaint, field)
    return request


def _complaints(request: Request) -> Iterator[tuple[str, str]]:
    for field in ("takes", "gives_up"):
        seconds = getattr(request, field)
        if not (math.isfinite(seconds) and seconds >= 0):
            yield f"{seconds:g} is no number of seconds", field
    for field in ("answers", "authorizer"):
        status = getattr(request, field)
        if status and not _FIRST_STATUS <= status <= _LAST_STATUS:
            yield f"{status} is no HTTP status ({_FIRST_STATUS} to {_LAST_STATUS})", field
    if request.at_once < 1:
        yield f"{request.at_once} is less than one request", "at_once"
    if request.earlier < 0:
        yield f"{request.earlier} is no number of requests", "earlier"
    if not _TOKEN.fullmatch(request.method):
        yield f"{request.method!r} is no HTTP method", "method"
    for field in ("address", "client"):
        text = getattr(request, field)
        if text and not is_ip(text):
            yield f"{text!r} is no IP address", field
    for name, value in request.headers:
        if not _TOKEN.fullmatch(name.removeprefix(":")) or _BREAKS.search(value):
            yield f"{name!r}: {value!r} is no header", "headers"


def parse_headers(texts: Iterable[str]) -> Pairs:
    """Headers written `Name: value`. Raises DecodeError."""
    found = []
    for text in texts:
        name, colon, value = text.partition(":") if not text.startswith(":") else (text, "", "")
        if not colon or not name.strip():
            raise DecodeError(f"header {text!r} is not NAME: VALUE")
        found.append((name.strip(), value.strip()))
    return tuple(found)
