"""Settings: what one Ingress asks of nginx beyond its rules, typed.

Made by `reading` from annotations; read by `rules` and `writing`. All fields are what they are without annotations.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

Balancer = Literal["", "ROUND_ROBIN", "LEAST_REQUEST"]


class Redirect(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with another place; empty parts are those of the request."""

    code: int
    scheme: str = ""
    host: str = ""
    port: int = 0
    path: str = ""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of headers."""

    set: Mapping[str, str] = {}
    add: Mapping[str, str] = {}
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.add or self.remove)


class Cors(msgspec.Struct, frozen=True, kw_only=True):
    """Cross-origin sharing."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...]
    exposed: tuple[str, ...] = ()
    credentials: bool = True
    max_age: int = 0


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Second tries with another endpoint."""

    attempts: int
    codes: tuple[int, ...] = ()


class ExternalAuth(msgspec.Struct, frozen=True, kw_only=True):
    """A service that is asked whether a request may pass."""

    host: str
    port: int
    path: str
    headers: tuple[str, ...] = ()
    """Of its answer, for the backend."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who may come in."""

    allowed: tuple[str, ...] = ()
    """Ranges of addresses; empty for all."""
    denied: tuple[str, ...] = ()
    auth: ExternalAuth | None = None

    def __bool__(self) -> bool:
        return bool(self.allowed or self.denied or self.auth)


class ClientTLS(msgspec.Struct, frozen=True, kw_only=True):
    """Clients' certificates."""

    namespace: str
    secret: str
    optional: bool = False


class Hash(msgspec.Struct, frozen=True, kw_only=True):
    """By what requests are sent to the same endpoint; one field is set."""

    cookie: str = ""
    cookie_path: str = ""
    cookie_seconds: int | None = None
    """None for a cookie that only the client sets."""
    header: str = ""
    query: str = ""
    source_address: bool = False


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """How backends are spoken to."""

    tls: bool = False
    http2: bool = False
    server_name: str = ""
    verified: bool = False
    credential: tuple[str, str] | None = None
    """Namespace and name of the Secret with the client's certificate and the trusted roots."""
    connect_seconds: int | None = None
    hash: Hash | None = None
    balancer: Balancer = ""


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """When requests go to this Ingress's backends instead of those of the main one."""

    header: str = ""
    header_value: str = ""
    header_pattern: str = ""
    cookie: str = ""
    weight: int = 0
    total: int = 100


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that the annotations of an Ingress say."""

    ssl_redirect: bool = True
    """Where the host has a certificate."""
    force_ssl_redirect: bool = False
    app_root: str = ""
    redirect: Redirect | None = None
    rewrite_target: str = ""
    use_regex: bool = False
    backend_host: str = ""
    request_headers: Changes = Changes()
    response_headers: Changes = Changes()
    cors: Cors | None = None
    timeout_seconds: int | None = None
    retry: Retry | None = None
    mirror: tuple[str, str, int] | None = None
    """Namespace, Service and port that get a copy of each request."""
    access: Access = Access()
    client_tls: ClientTLS | None = None
    upstream: Upstream = Upstream()
    canary: Canary | None = None
    aliases: tuple[str, ...] = ()
    www_redirect: bool = False
    passthrough: bool = False
