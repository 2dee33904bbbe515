"""Lines of access logs: known formats, and what log pipelines put around them.

In: one line of text. Out: an `Entry`, or None for a line that is none of Envoy's. Known are Istio's default text format
(with and without response code details) and JSON format, and Envoy's own default. Around them may stand what `kubectl
logs --prefix`, stern, container runtimes and log shippers add: prefixes, colours, JSON with the line inside.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mizzen.model import names

_TIME = r"\[(?P<time>\d\d\d\d-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:?\d\d))\] "
_QUOTED = '"(?P<{}>[^"]*)"'
_LOOSE = '"(?P<{}>.*?)"'
_START = _TIME + r"{request} (?P<status>\d+|-) (?P<flags>[A-Z,]+|-)"
_COUNTS = r" (?P<received>\d+|-) (?P<sent>\d+|-) (?P<duration>\d+|-) (?P<service_time>\S+)"
_PARTIES = " {forwarded} {agent} {id} {authority} {upstream}"
_ISTIO_REASON = r" (?P<details>\S+) (?P<termination>\S+) {failure}"
_OLD_REASON = r' "[^"]*" {failure}'
_ISTIO_END = (
    r" (?P<cluster>\S+) (?P<upstream_local>\S+) (?P<local>\S+) (?P<remote>\S+) (?P<sni>\S+)(?: (?P<route>\S.*?))?\s*$"
)

_QUOTED_FIELDS = ("request", "failure", "forwarded", "agent", "id", "authority", "upstream")


def _compile(*parts: str, quoted: str) -> re.Pattern[str]:
    fields = {name: quoted.format(name) for name in _QUOTED_FIELDS}
    return re.compile("".join(parts).format(**fields))


def _formats(quoted: str) -> tuple[re.Pattern[str], ...]:
    return (
        _compile(_START, _ISTIO_REASON, _COUNTS, _PARTIES, _ISTIO_END, quoted=quoted),
        _compile(_START, _OLD_REASON, _COUNTS, _PARTIES, _ISTIO_END, quoted=quoted),
        _compile(_START, _COUNTS, _PARTIES, r"\s*$", quoted=quoted),
    )


_STRICT = _formats(_QUOTED)
_FORGIVING = _formats(_LOOSE)
"""For headers with quotes in them, which Envoy does not escape."""
_LONGEST = 1 << 16
_MOST_DIGITS = 19

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PODS = (
    re.compile(r"\[?pod/(?P<pod>[a-z0-9.-]+)/[a-z0-9-]+\]?\s"),
    re.compile(r"^(?:(?P<namespace>[a-z0-9-]+)\s+)?(?:\S\s+)?(?P<pod>[a-z0-9][a-z0-9.-]*)\s+(?:›\s+)?istio-proxy\s"),
)
"""What `kubectl logs --prefix` and stern write before a line."""

_KEYS = {
    "start_time": "time",
    "response_code": "status",
    "response_flags": "flags",
    "response_code_details": "details",
    "connection_termination_details": "termination",
    "upstream_transport_failure_reason": "failure",
    "bytes_received": "received",
    "bytes_sent": "sent",
    "upstream_service_time": "service_time",
    "x_forwarded_for": "forwarded",
    "user_agent": "agent",
    "request_id": "id",
    "upstream_host": "upstream",
    "upstream_cluster": "cluster",
    "upstream_local_address": "upstream_local",
    "downstream_local_address": "local",
    "downstream_remote_address": "remote",
    "requested_server_name": "sni",
    "route_name": "route",
    "method": "method",
    "path": "path",
    "protocol": "protocol",
    "duration": "duration",
    "authority": "authority",
}
"""Keys of Istio's JSON format, and the fields that they fill."""
_MARKS = ("response_code", "response_flags")
"""Without these an object is no access-log entry."""
_INSIDE = ("log", "message", "msg", "textPayload", "jsonPayload", "MESSAGE", "_raw", "line", "event", "body", "json")
"""Where log shippers keep the line."""
_POD_PATHS = (
    ("kubernetes", "pod_name"),
    ("kubernetes", "pod", "name"),
    ("resource", "labels", "pod_name"),
    ("podName",),
    ("pod",),
)
_NAMESPACE_PATHS = (
    ("kubernetes", "namespace_name"),
    ("kubernetes", "namespace"),
    ("resource", "labels", "namespace_name"),
    ("namespace",),
)
_DEEPEST = 4


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One request or connection, as one proxy logged it; what it does not know is empty."""

    time: str = ""
    method: str = ""
    path: str = ""
    protocol: str = ""
    status: int = 0
    flags: frozenset[str] = frozenset()
    details: str = ""
    termination: str = ""
    """Connection termination details, where network filters write."""
    failure: str = ""
    """The upstream transport failure reason."""
    received: int = 0
    sent: int = 0
    duration: int = 0
    """Milliseconds."""
    forwarded: str = ""
    """`x-forwarded-for`, which gateways set."""
    agent: str = ""
    id: str = ""
    authority: str = ""
    upstream: str = ""
    cluster: str = ""
    upstream_local: str = ""
    local: str = ""
    remote: str = ""
    sni: str = ""
    route: str = ""
    pod: str = ""
    """`NAME` or `NAME.NAMESPACE` of the proxy's pod, where the pipeline says it."""
    line: str = ""
    """The line as it stood."""

    @property
    def is_connection(self) -> bool:
        """Whether it tells of a connection and no request."""
        return not self.method

    @property
    def is_inbound(self) -> bool:
        """Whether the proxy is the server's."""
        return self.cluster.startswith("inbound") or self.cluster == names.INBOUND_PASSTHROUGH


def parse_line(line: str) -> Entry | None:
    """What a line says, or None."""
    text = _COLOUR.sub("", line.rstrip("\r\n")) if "\x1b" in line else line.rstrip("\r\n")
    found = _parse(text, 0)
    return msgspec.structs.replace(found, line=text) if found is not None else None


def _parse(text: str, depth: int) -> Entry | None:
    if len(text) > _LONGEST:
        return None
    brace = text.find("{")
    if brace != -1 and (brace == 0 or ('"' in text[brace : brace + 3] and '] "' not in text[:brace])):
        found = _parse_json(text, brace, depth)
        if found is not None:
            return found
    return _parse_text(text)


# -- text -------------------------------------------------------------------------------------------------------------


def _parse_text(text: str) -> Entry | None:
    if '] "' not in text:
        return None
    for pattern in (*_STRICT, *_FORGIVING):
        match = pattern.search(text)
        if match is not None:
            fields = match.groupdict()
            method, _, rest = (fields.pop("request") or "").partition(" ")
            path, _, protocol = rest.rpartition(" ")
            fields.update(method=method, path=path, protocol=protocol, pod=_prefixed(text[: match.start()]))
            return _build(fields)
    return None


def _prefixed(prefix: str) -> str:
    for pattern in _PODS if prefix else ():
        match = pattern.search(prefix)
        if match is not None:
            namespace = match.groupdict().get("namespace")
            return f"{match['pod']}.{namespace}" if namespace else match["pod"]
    return ""


def _build(fields: Mapping[str, Any]) -> Entry:
    text: dict[str, Any] = {name: _text(value) for name, value in fields.items() if name in Entry.__struct_fields__}
    flags = frozenset(flag for flag in text.pop("flags", "").split(",") if flag)
    text.update({name: _number(text.get(name, "")) for name in ("status", "received", "sent", "duration")})
    return Entry(flags=flags, **text)


def _text(value: Any) -> str:
    return "" if value is None or value == "-" else str(value)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else 0


# -- JSON -------------------------------------------------------------------------------------------------------------


def _parse_json(text: str, brace: int, depth: int) -> Entry | None:
    try:
        document = msgspec.json.decode(text[brace:].encode(errors="replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    found = _read(document, depth) if isinstance(document, dict) else None
    prefixed = _prefixed(text[:brace]) if found is not None and not found.pod else ""
    return msgspec.structs.replace(found, pod=prefixed) if found is not None and prefixed else found


def _read(document: Mapping[str, Any], depth: int) -> Entry | None:
    """An entry, or what holds one."""
    if all(mark in document for mark in _MARKS):
        return _build({field: document.get(key) for key, field in _KEYS.items()})
    if depth >= _DEEPEST:
        return None
    for inside in _held(document):
        found = _read(inside, depth + 1) if isinstance(inside, dict) else _parse(inside, depth + 1)
        if found is not None:
            return found if found.pod else msgspec.structs.replace(found, pod=_pod(document))
    return None


def _held(document: Mapping[str, Any]) -> Iterator[Any]:
    for key in _INSIDE:
        value = document.get(key)
        if isinstance(value, dict | str) and value:
            yield value


def _pod(document: Mapping[str, Any]) -> str:
    name = next((found for path in _POD_PATHS if (found := _at(document, path))), "")
    namespace = next((found for path in _NAMESPACE_PATHS if (found := _at(document, path))), "")
    return f"{name}.{namespace}" if name and namespace else name


def _at(document: Any, path: tuple[str, ...]) -> str:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, str) else ""
