"""Probes: requests whose verdict is asked in both states.

In: a YAML list of `{from, url, method, headers, principal, name, …}`. Out: `Probe`s, and for each the verdicts before
and after with the fate of a connection that is open meanwhile. Raises DecodeError for what is no probe.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from mizzen.diagnose.change.connections import Fate
from mizzen.diagnose.trace import request
from mizzen.diagnose.trace.request import Request
from mizzen.diagnose.trace.verdict import NO_FLAG, Trace
from mizzen.errors import DecodeError


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and what it is called."""

    name: str
    request: Request


class _Written(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A probe as users write it."""

    source: str = msgspec.field(name="from")
    url: str
    name: str = ""
    method: str = "GET"
    headers: dict[str, str | int | bool] = {}
    principal: str = ""
    address: str = msgspec.field(name="connectTo", default="")
    takes: float = 0.0
    at_once: int = msgspec.field(name="atOnce", default=1)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a request meets in one state."""

    outcome: str
    status: int = 0
    flag: str = NO_FLAG
    details: str = ""
    destination: str = ""
    cause: str = ""
    certain: bool = True

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two verdicts the same."""
        return (self.outcome, self.status, self.flag, self.details)

    def __str__(self) -> str:
        words = [self.outcome, str(self.status or ""), self.flag if self.flag != NO_FLAG else ""]
        return " ".join(word for word in words if word) + ("" if self.certain else " (not certain)")


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """One probe in both states."""

    name: str
    before: Verdict
    after: Verdict
    connection: Fate
    """What becomes of a connection that is open while the change arrives."""

    @property
    def is_changed(self) -> bool:
        """Whether the verdict is another."""
        return self.before.key != self.after.key


def parse_probes(documents: Any, file: str, find_line: Callable[[str], int] | None = None) -> tuple[Probe, ...]:
    """The probes of a parsed file; `find_line` knows the line of a path such as `[2].url` in it."""
    try:
        written = msgspec.convert(documents, list[_Written])
    except msgspec.ValidationError as bad:
        raise DecodeError(f"{file}: a list of requests with `from` and `url` is expected: {bad}") from bad
    found = []
    for number, each in enumerate(written):
        try:
            found.append(_probe(each))
        except DecodeError as bad:
            key = request.FILE_KEYS.get(bad.path, bad.path) or "url"
            line = f":{find_line(f'[{number}].{key}')}" if find_line is not None else ""
            raise DecodeError(f"{file}{line}: {key}: {bad.message}") from bad
    return tuple(found)


def _probe(written: _Written) -> Probe:
    scheme, host, port, path = request.parse_target(written.url)
    headers = tuple((name, _text(value)) for name, value in written.headers.items())
    return Probe(
        name=written.name or f"{written.source}: {written.method} {written.url}",
        request=request.check(
            Request(
                source=written.source,
                scheme=scheme,
                host=host,
                port=port,
                path=path or "/",
                method=written.method,
                headers=headers,
                principal=written.principal,
                address=written.address,
                takes=written.takes,
                at_once=written.at_once,
            )
        ),
    )


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_verdict(trace: Trace) -> Verdict:
    """The part of a trace that two states are compared by."""
    return Verdict(
        outcome=trace.outcome,
        status=trace.status,
        flag=trace.flag,
        details=trace.details,
        destination=trace.destination,
        cause=str(trace.cause) if trace.cause is not None else "",
        certain=trace.certain,
    )
