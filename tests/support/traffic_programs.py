"""The programs in the pods of the traffic tests, as a test sees them: what they call, and what they were asked.

In: the Unix socket of one `traffic_app`. Out: typed answers. `Answer` is what the caller got, `Seen` what a receiver
remembers of one request; the two meet in the case, a header of its own for every call.
"""

import collections
import contextlib
import json
import os
import pathlib
import socket
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

_ORDER_SECONDS = 150.0

Pair = tuple[str, str]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One arrival, as the receiving program remembers it."""

    kind: str
    case: str
    pod: str
    version: str
    peer: str
    address: str
    port: int
    method: str = ""
    target: str = ""
    headers: tuple[Pair, ...] = ()
    body: str = ""
    sni: str | None = None
    alpn: str | None = None
    certificate: str = ""
    """The common name of the client's own certificate, where it showed one."""
    metadata: Mapping[str, str] = {}

    def header(self, name: str) -> str:
        """All values under that name, with commas; empty if there are none."""
        return ",".join(value for key, value in self.headers if key == name)

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self.headers)

    @property
    def caller(self) -> str:
        """The SPIFFE identity of the mutual TLS connection that carried the request; empty for plain text."""
        last = self.header("x-forwarded-client-cert").rpartition(",")[2]
        return dict(part.partition("=")[::2] for part in last.split(";")).get("URI", "")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller of one HTTP request got; status 0 where no answer came, with the error."""

    status: int
    headers: tuple[Pair, ...]
    body: str
    error: str
    seconds: float
    done: float
    case: str = ""

    def header(self, name: str) -> str:
        return ",".join(value for key, value in self.headers if key == name)

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self.headers)

    @property
    def seen(self) -> Seen:
        """What the receiver says of the request, from the body."""
        assert self.body.startswith("{"), f"no program's answer: {self}"
        return msgspec.json.decode(self.body, type=Seen)

    @property
    def pod(self) -> str:
        return self.seen.pod

    @property
    def route(self) -> str:
        """The route that was taken, for routes that say so in the request."""
        return self.seen.header("x-route")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What one TCP connection gave."""

    lines: tuple[str, ...]
    error: str
    seconds: float
    peer: Mapping[str, str] = {}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What one gRPC call gave."""

    code: str
    details: str
    answers: tuple[str, ...]


class Program:
    """One pod's program."""

    def __init__(self, name: str, control: pathlib.Path, address: str) -> None:
        self.name = name
        self.address = address
        self._control = control

    def order(self, do: str, **arguments: Any) -> Any:
        """Has the program do something and gives what came of it."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_ORDER_SECONDS)
            connection.connect(str(self._control))
            connection.sendall(json.dumps({"do": do, **arguments}).encode())
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
        reply = json.loads(b"".join(parts))
        assert "error" not in reply, f"{self.name}: {do}: {reply}"
        return reply["value"]

    def send(
        self,
        url: str,
        *,
        count: int = 1,
        workers: int = 1,
        headers: Mapping[str, str] | Sequence[Pair] = (),
        case: str = "",
        **more: Any,
    ) -> list[Answer]:
        """So many HTTP requests from inside the pod; more: method, body, address, tls, timeout, reuse."""
        case = case or new_case()
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        found = self.order("http", url=url, count=count, workers=workers, headers=[*pairs, ("x-case", case)], **more)
        return msgspec.convert([{**item, "case": case} for item in found], list[Answer])

    @contextlib.contextmanager
    def sending(self, url: str, **more: Any) -> Iterator[list[Answer]]:
        """Requests for as long as the block runs; the answers are in the list when it is over."""
        answers: list[Answer] = []
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as threads:
            os.chmod(folder, 0o755)
            over = pathlib.Path(folder) / "over"
            requests = threads.submit(self.send, url, until=str(over), **more)
            try:
                yield answers
            finally:
                over.touch()
            answers += requests.result()

    def get(self, url: str, **more: Any) -> Answer:
        """One HTTP request."""
        (answer,) = self.send(url, **more)
        return answer

    def connect(self, address: str, *, count: int = 1, **more: Any) -> list[Line]:
        """TCP connections; more: say, lines, tls, timeout, held, finish."""
        return msgspec.convert(self.order("tcp", address=address, count=count, **more), list[Line])

    def resolve(self, name: str) -> list[str]:
        """The addresses that the pod's resolver gives; none for a name that it does not know."""
        addresses: list[str] = self.order("resolve", name=name)["addresses"]
        return addresses

    def ask_dns(self, name: str, kind: str = "A") -> Mapping[str, Any]:
        return dict(self.order("ask_dns", name=name, kind=kind))

    def websocket(self, address: str, host: str, say: Sequence[str], **more: Any) -> Mapping[str, Any]:
        return dict(self.order("websocket", address=address, host=host, say=say, **more))

    def grpc(self, address: str, say: Sequence[str] = ("hello",), **more: Any) -> list[Call]:
        """Calls of the echo service; more: method (Once or Stream), metadata, authority, ca, seconds, count."""
        return msgspec.convert(self.order("grpc", address=address, say=say, **more), list[Call])

    def received(self, case: str) -> list[Seen]:
        """What arrived under that case."""
        return msgspec.convert(self.order("received", case=case), list[Seen])

    def release(self, case: str) -> None:
        """Lets go the requests of a case that wait for it."""
        self.order("release", case=case)


class Programs:
    """Several pods' programs asked as one."""

    def __init__(self, programs: Iterable[Program]) -> None:
        self.programs = tuple(programs)

    @property
    def names(self) -> set[str]:
        return {program.name for program in self.programs}

    def received(self, case: str) -> list[Seen]:
        return [seen for program in self.programs for seen in program.received(case)]

    def release(self, case: str) -> None:
        for program in self.programs:
            program.release(case)


def new_case() -> str:
    """A name for one call that nothing else has."""
    return uuid.uuid4().hex


def count_pods(answers: Iterable[Answer]) -> "collections.Counter[str]":
    """How many requests each pod answered."""
    return collections.Counter(answer.pod for answer in answers)


def statuses(answers: Iterable[Answer]) -> "collections.Counter[int]":
    return collections.Counter(answer.status for answer in answers)
