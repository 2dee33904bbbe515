"""Access logs of a mesh with faults in it: ten thousand lines whose causes are known, from lines that real Envoys wrote.

`log_recordings.log` holds what the proxies on both sides wrote about one request each, under `## CAUSE KIND SERVICE
NAMESPACE`: the cause that was put there, and the object that held it. A `Fault` is one recording moved to a Service of
its own. `generate` writes events of all faults among healthy ones, with addresses, ports, ids, times and paths drawn anew
and the lines wrapped as log pipelines wrap them. What no recording shows stands in `_DOCUMENTED`.
"""

import datetime
import json
import pathlib
import random
import re
import shlex
import uuid
from collections.abc import Callable, Iterator, Sequence

import msgspec

RECORDINGS = pathlib.Path(__file__).with_name("log_recordings.log")
_START = datetime.datetime(2026, 11, 30, 1, 0, tzinfo=datetime.UTC)
_FINE = "fine"
_ID = re.compile(r'"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"')
_TIME = re.compile(r"^\[[^\]]+\]")
_ADDRESS = re.compile(r"\b(10|240)\.\d+\.\d+\.\d+(?::(\d+))?|\b127\.0\.0\.6:(\d+)")
_EPHEMERAL = 20_000
_SPACES = ("shop", "billing", "search", "accounts")
_PATHS = ("/", "/api/v1/items?id=7", "/health", "/cart/42/lines", "/a%20b/c")
_DOCUMENTED = """
## authorizer-denies AuthorizationPolicy authz-no traffic
IN 403 UAEX ext_authz_denied - "-" 0 13 4
## authorizer-fails AuthorizationPolicy authz-down traffic
IN 403 UAEX ext_authz_error - "-" 0 0 2001
## limiter-fails EnvoyFilter limiter-down traffic
IN 500 RLSE rate_limiter_error - "-" 0 0 21
## global-limit EnvoyFilter limited-by-all traffic
OUT 429 RL request_rate_limited - "-" 0 0 3
## filter-missing WasmPlugin module-lost traffic
IN 500 NFCF filter_config_not_found - "-" 0 0 0
## idle EnvoyFilter silent traffic
OUT 408 SI stream_idle_timeout - "-" 0 24 300001
## connect-timeout DestinationRule far-away traffic
OUT 503 URX,UF upstream_reset_before_response_started{connection_timeout} - "-" 0 114 30012
## upstream-reset Service crashing traffic
OUT 503 UR upstream_reset_before_response_started{remote_reset} - "-" 0 89 12
## wrong-protocol Service misnamed traffic
OUT 502 UPE upstream_reset_before_response_started{protocol_error} - "-" 0 87 2
## tls-expired - stale traffic
OUT 503 URX,UF upstream_reset_before_response_started{remote_connection_failure|TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_X509_verify_cert:_certificate_verification_error_at_depth_0:_certificate_has_expired:TLS_error_end} - "TLS_error:|268435581:SSL_routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_X509_verify_cert:_certificate_verification_error_at_depth_0:_certificate_has_expired:TLS_error_end" 0 121 45
"""
"""The changing middle of lines, from the tables of Envoy's documentation; `IN` is the server's proxy, `OUT` the client's."""


class Recording(msgspec.Struct, frozen=True):
    """What proxies wrote about one request, and what was wrong."""

    cause: str
    kind: str
    service: str
    namespace: str
    lines: tuple[str, ...]


class Fault(msgspec.Struct, frozen=True):
    """A recording at a Service of its own."""

    cause: str
    kind: str
    name: str
    """What the object's name, or the host that it is for, begins with; empty where no object is at fault."""
    number: int
    lines: tuple[str, ...]


class Line(msgspec.Struct, frozen=True):
    """A line, and the fault that it tells of; None for a healthy one."""

    text: str
    fault: Fault | None


def recordings() -> list[Recording]:
    """All recordings."""
    documented = re.sub(r"^(IN|OUT) (.*)$", lambda m: _complete(m[1], m[2]), _DOCUMENTED, flags=re.MULTILINE)
    found = []
    for block in (RECORDINGS.read_text() + documented).split("## ")[1:]:
        head, *lines = block.strip().splitlines()
        cause, kind, service, namespace = ("" if part == "-" else part for part in head.split())
        filled = tuple(line.replace("SERVICE", service).replace("SPACE", namespace) for line in lines)
        found.append(Recording(cause, kind, service, namespace, filled))
    return found


def _complete(side: str, middle: str) -> str:
    """A whole line around the middle of one."""
    start = f'[2026-11-30T01:00:00.000Z] "GET / HTTP/1.1" {middle} - "-" "curl/8" "{uuid.UUID(int=1)}" "SERVICE" '
    if side == "IN":
        sni = "outbound_.80_._.SERVICE.SPACE.svc.cluster.local"
        return f'{start}"-" inbound|8080|| - 10.44.0.19:8080 10.44.0.16:44538 {sni} default'
    cluster = "outbound|80||SERVICE.SPACE.svc.cluster.local"
    return f'{start}"10.44.0.19:8080" {cluster} - 10.96.7.7:80 10.44.0.16:39528 - default'


def faults() -> list[Fault]:
    """One fault for each recording of something wrong."""
    broken = [recording for recording in recordings() if recording.cause != _FINE]
    return [_move(recording, number) for number, recording in enumerate(broken)]


def _move(recording: Recording, number: int) -> Fault:
    """The recording at a Service with a name that nothing else has."""
    space = _SPACES[number % len(_SPACES)]
    old, own = recording.service, recording.namespace
    first = old.removeprefix("*.").partition(".")[0]
    new = f"svc-{number:02}"
    lines = recording.lines
    if own:
        swaps = ((f"{first}.{own}", f"{new}.{space}"), (f"ns[{own}]", f"ns[{space}]"))
        for before, after in swaps:
            lines = tuple(line.replace(before, after) for line in lines)
    if first:
        pattern = re.compile(rf"(?<![a-z0-9_-]){re.escape(first)}(?![a-z0-9-])")
        lines = tuple(pattern.sub(new, line) for line in lines)
    return Fault(recording.cause, recording.kind, new if first else "", number, lines)


def generate(seed: int, count: int = 10_000, broken: float = 0.4) -> list[Line]:
    """So many lines; a share of the events is broken, and every fault happens at least a few times."""
    draw = random.Random(seed)
    known = faults()
    healthy = [_move(recording, 900 + n) for n, recording in enumerate(recordings()) if recording.cause == _FINE]
    weights = [1 / (1 + draw.randrange(8)) for _ in known]
    events: list[tuple[Fault, bool]] = [(fault, True) for fault in known for _ in range(4)]
    total = sum(len(fault.lines) for fault, _ in events)
    while total < count:
        is_broken = draw.random() < broken
        fault = draw.choices(known, weights)[0] if is_broken else draw.choice(healthy)
        events.append((fault, is_broken))
        total += len(fault.lines)
    draw.shuffle(events)
    lines = [line for moment, event in enumerate(events) for line in _event(draw, *event, moment)]
    return lines[:count]


def _event(draw: random.Random, fault: Fault, is_broken: bool, moment: int) -> Iterator[Line]:
    """One request: the same ids and addresses on all its lines, everything else drawn anew."""
    own_id = f'"{uuid.UUID(int=draw.getrandbits(128))}"'
    replica, path = draw.randrange(3), draw.choice(_PATHS)
    ports: dict[str, int] = {}

    def address(match: re.Match[str]) -> str:
        host, _, port = match[0].partition(":")
        octet = host.rpartition(".")[2]
        if host.startswith("127."):
            new = host
        elif host.startswith("10.44."):
            new = f"10.{60 + fault.number // 200}.{fault.number % 200}.{(int(octet) + 40 * replica) % 250}"
        else:
            new = f"10.96.{fault.number % 200}.{octet}"
        if not port:
            return new
        if int(port) >= _EPHEMERAL:
            port = str(ports.setdefault(port, draw.randrange(_EPHEMERAL, 60_000)))
        return f"{new}:{port}"

    when = _START + datetime.timedelta(milliseconds=7 * moment + draw.randrange(5))
    for line in fault.lines:
        text = _ID.sub(own_id, _ADDRESS.sub(address, line)).replace('"GET / HTTP', f'"GET {path} HTTP')
        text = _TIME.sub(f"[{when.strftime('%Y-%m-%dT%H:%M:%S')}.{when.microsecond // 1000:03}Z]", text)
        wrap = draw.choices(_WRAPS, (10, 3, 2, 2, 2, 1))[0]
        yield Line(wrap(text), fault if is_broken else None)


# -- what pipelines make of a line ------------------------------------------------------------------------------------

_KEYS = (
    *("request", "response_code", "response_flags", "response_code_details", "connection_termination_details"),
    *("upstream_transport_failure_reason", "bytes_received", "bytes_sent", "duration", "upstream_service_time"),
    *("x_forwarded_for", "user_agent", "request_id", "authority", "upstream_host", "upstream_cluster"),
    *("upstream_local_address", "downstream_local_address", "downstream_remote_address", "requested_server_name"),
    "route_name",
)
_NUMBERS = ("response_code", "bytes_received", "bytes_sent", "duration")


def as_json(line: str) -> str:
    """The line in Istio's JSON format."""
    start, _, rest = line.partition("] ")
    values: dict[str, object] = dict(zip(_KEYS, shlex.split(rest), strict=True))
    method, path, protocol = str(values.pop("request")).split(" ")
    values |= {"start_time": start[1:], "method": method, "path": path, "protocol": protocol}
    document = {key: None if value == "-" else value for key, value in values.items()}
    return json.dumps({key: int(str(v)) if key in _NUMBERS and v else v for key, v in document.items()})


def with_prefix(line: str) -> str:
    """As `kubectl logs --prefix` prints it."""
    return f"[pod/web-7d4b9c/istio-proxy] {line}"


def by_stern(line: str) -> str:
    """As stern prints it, colours included."""
    return f"\x1b[32mweb-7d4b9c\x1b[0m \x1b[36mistio-proxy\x1b[0m {line}"


def by_docker(line: str) -> str:
    """As Docker's json-file driver keeps it."""
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-11-30T01:00:00.123456789Z"})


def by_cri(line: str) -> str:
    """As containerd keeps it."""
    return f"2026-11-30T01:00:00.123456789Z stdout F {line}"


def _plain(line: str) -> str:
    return line


_WRAPS: Sequence[Callable[[str], str]] = (_plain, as_json, with_prefix, by_stern, by_docker, by_cri)
