"""How the control plane is reached: its address, the roots that prove it, the token that proves us.

Every call opens a channel of its own, so that a renewed token, a changed root or another replica behind the same name
is taken up with the next connection and nothing has to be told to reconnect. An address is `host:port` or
`unix:///path`. Only TLS and Unix sockets carry the token.
"""

import base64
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec

from mizzen.agent.files import read_file
from mizzen.errors import AgentError

SYSTEM_ROOTS = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
    Path("/etc/ssl/ca-bundle.pem"),
    Path("/etc/ssl/cert.pem"),
)
"""Where distributions keep the roots that they trust."""

PUSHED_ROOTS = "pushed-roots.pem"
"""The file, in the folder of the agent's identity, of the roots that the control plane has pushed."""

_TOKEN_PORT, _MUTUAL_PORT = "15012", "15011"

_OPTIONS: Sequence[tuple[str, Any]] = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # Else a minute, whatever the one above says.
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # Also how long one attempt to connect may take.
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One service of the control plane and the credentials for it."""

    address: str
    """`host:port` or `unix:///path`."""
    roots: tuple[Path, ...] = ()
    """Files searched in turn for the roots of its certificate."""
    pushed_roots: Path | None = None
    """A file with roots that are trusted besides: what the control plane itself has pushed."""
    tls: bool = True
    server_name: str = ""
    """Name expected in its certificate; empty means the address' host."""
    token: Path | None = None
    """File of the bearer token, read for every call."""
    certificate: Path | None = None
    """Folder of a certificate to show where there is no token in force: cert-chain.pem and key.pem."""
    headers: Mapping[str, str] = {}
    """Further metadata of every call, such as `clusterid`."""

    @property
    def mutual_address(self) -> str:
        """Where certificates are looked at: the port beside the one for tokens, which asks for none."""
        host, _, port = self.address.rpartition(":")
        return f"{host}:{_MUTUAL_PORT}" if port == _TOKEN_PORT and self.tls else self.address

    @property
    def host(self) -> str:
        """The address' host, without brackets; `localhost` for a Unix socket."""
        if self.address.startswith("unix:"):
            return "localhost"
        return self.address.rpartition(":")[0].strip("[]")


def open_channel(endpoint: Endpoint) -> grpc.aio.Channel:
    """A channel to the endpoint; raises AgentError where the roots to trust are missing."""
    if not endpoint.tls:
        return grpc.aio.insecure_channel(endpoint.address, options=_OPTIONS)
    chain, key = _read_certificate(endpoint)
    address = endpoint.mutual_address if chain and key else endpoint.address
    credentials = grpc.ssl_channel_credentials(read_roots(endpoint), key, chain)
    options = list(_OPTIONS)
    if endpoint.server_name and endpoint.server_name != endpoint.host:
        options.append(("grpc.ssl_target_name_override", endpoint.server_name))
    return grpc.aio.secure_channel(address, credentials, options=options)


def read_roots(endpoint: Endpoint) -> bytes:
    """The PEM of the first root file that exists, and of the roots that were pushed since."""
    for path in endpoint.roots:
        content = read_file(path)
        if content:
            pushed = read_file(endpoint.pushed_roots) if endpoint.pushed_roots is not None else None
            return content + b"\n" + pushed if pushed else content
    searched = ", ".join(str(path) for path in endpoint.roots)
    raise AgentError(f"no root certificate for {endpoint.address}: searched {searched or 'nowhere'}")


def build_call_metadata(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """The metadata of a call made now; raises AgentError where what should be the token can be none."""
    metadata = [(name.lower(), value) for name, value in sorted(endpoint.headers.items())]
    token = _read_token(endpoint)
    if not (token.isascii() and token.isprintable()):
        # gRPC would say so by an error of its own kind, in the middle of the call.
        raise AgentError(f"{endpoint.token} holds no token")
    if token and (endpoint.tls or endpoint.address.startswith("unix:")):
        metadata.append(("authorization", f"Bearer {token}"))
    return tuple(metadata)


def _read_token(endpoint: Endpoint, clock: Callable[[], float] = time.time) -> str:
    """The token; none where its time is over and there is a certificate to show in its place."""
    content = read_file(endpoint.token) if endpoint.token is not None else None
    token = content.decode(errors="replace").strip() if content else ""
    end = _token_end(token) if token else None
    is_over = end is not None and clock() >= end
    if is_over and endpoint.certificate is not None and _read_pair(endpoint.certificate) is not None:
        return ""
    return token


def _token_end(token: str) -> float | None:
    """When a token ends; None where it does not say."""
    try:
        payload = token.split(".")[1]
        end = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))).get("exp")
    except (IndexError, ValueError, AttributeError):
        return None
    return float(end) if isinstance(end, int | float) else None


def _read_certificate(endpoint: Endpoint) -> tuple[bytes | None, bytes | None]:
    if endpoint.certificate is None or _read_token(endpoint):
        return None, None
    return _read_pair(endpoint.certificate) or (None, None)


def _read_pair(folder: Path) -> tuple[bytes, bytes] | None:
    chain, key = read_file(folder / "cert-chain.pem"), read_file(folder / "key.pem")
    return (chain, key) if chain and key else None


def find_roots(choice: str, provisioned: str) -> tuple[Path, ...]:
    """The root files to search: the operator's choice alone, or the usual places in Istio's order."""
    if choice == "SYSTEM":
        return SYSTEM_ROOTS
    if choice:
        return (Path(choice),)
    places = [Path("./etc/certs/root-cert.pem")]
    if provisioned:
        places.append(Path(provisioned) / "root-cert.pem")
    return (*places, Path("./var/run/secrets/istio/root-cert.pem"))


def select_headers(prefix: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Metadata that variables such as `XDS_HEADER_X_TENANT` ask for."""
    return {
        name.removeprefix(prefix).lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith(prefix) and value
    }


class BackOff:
    """Delays that double from `first` to `most` seconds, each drawn at random from its upper half."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self._next = first
        self._random = random.Random(os.urandom(8))

    def reset(self) -> None:
        """Begin again with the shortest delay."""
        self._next = self._first

    def delay(self, most: float | None = None) -> float:
        """Seconds to wait before the next attempt; `most` is a smaller limit for this one."""
        longest = self._next
        self._next = min(self._most, 2 * longest)
        return min(longest, self._most if most is None else most) * self._random.uniform(0.5, 1.0)
