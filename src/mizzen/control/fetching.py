"""Documents fetched from addresses that users write: bounded in size and time, and never from where they must not be.

In: a URL. Out: the body, or a FetchError that says why not. A user of the mesh may write any URL into an object, and
the control plane calls it; so link-local addresses, where clouds keep their metadata, are always refused, others by
settings. What is checked is the address that is connected to, whatever the name resolves to and wherever a redirect
leads.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from mizzen import settings
from mizzen.errors import MizzenError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_METADATA = tuple(
    ipaddress.ip_network(text)
    for text in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32", "192.0.0.192/32")
)
"""Link-local networks, and the addresses outside them at which clouds keep their metadata."""
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 3
_CONNECTIONS = 64
_CONNECTIONS_TO_ONE = 4


class FetchError(MizzenError):
    """A document that was not fetched."""


class Guard:
    """Which addresses may be called."""

    def __init__(self, blocked: Iterable[Network] = (), *, refuse_private: bool = False) -> None:
        self._blocked = (*_METADATA, *blocked)
        self._refuse_private = refuse_private

    def check(self, text: str) -> None:
        """Raise FetchError for an address that must not be called."""
        address = _plain(ipaddress.ip_address(text.partition("%")[0]))
        if address.is_unspecified or address.is_multicast or any(address in network for network in self._blocked):
            raise FetchError(f"{text} is an address that is not called")
        if self._refuse_private and not address.is_global:
            raise FetchError(f"{text} is a private address, which the settings refuse")


def _plain(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _TRANSLATED:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


class _GuardedResolver(AbstractResolver):
    """Resolves names to addresses that may be called; a name that has any other is refused whole."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name."""
        found = await self._inner.resolve(host, port, family)
        for each in found:
            self._guard.check(each["host"])
        return found

    async def close(self) -> None:
        """End it."""
        await self._inner.close()


class Fetcher:
    """Fetches documents; enter it before use, which raises FetchError for roots that do not read."""

    def __init__(self, config: settings.KeySets) -> None:
        self._config = config
        self._guard = Guard(config.blocked_networks, refuse_private=config.refuse_private)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Fetcher":
        connector = aiohttp.TCPConnector(
            resolver=_GuardedResolver(self._guard),
            ssl=_trust(self._config),
            limit=_CONNECTIONS,
            limit_per_host=_CONNECTIONS_TO_ONE,
            use_dns_cache=False,
            force_close=True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "mizzen"},
            timeout=aiohttp.ClientTimeout(total=self._config.timeout),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def fetch(self, url: str) -> bytes:
        """The document at a URL; raises FetchError."""
        try:
            async with asyncio.timeout(self._config.timeout):
                return await self._follow(url)
        except TimeoutError:
            raise FetchError(f"no answer within {self._config.timeout:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(str(error) or type(error).__name__) from error

    async def _follow(self, url: str) -> bytes:
        for _ in range(_MOST_REDIRECTS + 1):
            self._check(url)
            answer = await self._get(url)
            if isinstance(answer, bytes):
                return answer
            if urlsplit(url).scheme == "https" and urlsplit(answer).scheme != "https":
                raise FetchError("a redirect leads from https to http")
            url = answer
        raise FetchError(f"more than {_MOST_REDIRECTS} redirects")

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FetchError(f"{url!r} is no http or https URL")
        try:
            ipaddress.ip_address(parts.hostname.partition("%")[0])
        except ValueError:
            return  # A name: what it resolves to is checked.
        self._guard.check(parts.hostname)

    async def _get(self, url: str) -> bytes | str:
        """The body, or where a redirect leads."""
        if self._session is None:
            raise RuntimeError("the fetcher was not entered")
        async with self._session.get(url, allow_redirects=False) as answer:
            if answer.status in _REDIRECTS and "Location" in answer.headers:
                return urljoin(url, answer.headers["Location"])
            if answer.status != 200:
                raise FetchError(f"status {answer.status}")
            body = b""
            while chunk := await answer.content.read(self._config.max_bytes + 1 - len(body)):
                body += chunk
                if len(body) > self._config.max_bytes:
                    raise FetchError(f"more than {self._config.max_bytes} bytes")
            return body


def _trust(config: settings.KeySets) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif Path(config.extra_roots).is_file():
        try:
            context.load_verify_locations(cafile=config.extra_roots)
        except OSError as error:  # Also what OpenSSL says of them.
            raise FetchError(f"{config.extra_roots} holds no readable roots: {error}") from error
    return context
