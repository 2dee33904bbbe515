"""Envoy's admin interface: the few questions and orders that the agent has for it.

In: answers of the admin port. Out: what readiness and draining need, as values; `parse_` and `count_` are pure.
"""

import re
from collections.abc import Mapping

import aiohttp
import msgspec

from mizzen.errors import AgentError

_TIMEOUT = aiohttp.ClientTimeout(total=2.0)
_READINESS = (
    r"^(cluster_manager\.cds\.update_(success|rejected)|listener_manager\.lds\.update_(success|rejected)"
    r"|server\.state|listener_manager\.workers_started)$"
)
_CONNECTIONS = r"downstream_cx_active$"
_STATES = ("LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING")
# Listeners of the agent's own bootstrap, and Envoy's admin listener: their connections are not the application's.
_OWN_LISTENERS = re.compile(r"listener\.(admin|.+_(15090|15021))\.downstream_cx_active")


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """How far Envoy has come."""

    state: str
    workers_started: bool
    clusters_accepted: int
    clusters_rejected: int
    listeners_accepted: int
    listeners_rejected: int

    def obstacle(self) -> str:
        """Why Envoy is not ready, in pilot-agent's words; empty when it is."""
        counts = (
            f"cds updates: {self.clusters_accepted} successful, {self.clusters_rejected} rejected; "
            f"lds updates: {self.listeners_accepted} successful, {self.listeners_rejected} rejected"
        )
        if not (self.clusters_accepted and self.listeners_accepted):
            if self.clusters_rejected or self.listeners_rejected:
                return f"config received from XDS server, but was rejected: {counts}"
            return f"config not received from XDS server (is Istiod running?): {counts}"
        if self.state != "LIVE":
            return f"server is not live, current state is: {self.state}"
        return "" if self.workers_started else "workers have not yet started"


def parse_stats(text: str) -> dict[str, int]:
    """Counters and gauges of `/stats` by name; lines of another form are left out."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(": ")
        if name and value.isdigit():
            found[name] = int(value)
    return found


def parse_readiness(values: Mapping[str, int]) -> Readiness:
    """Readiness out of the statistics that `Admin.readiness` asks for."""
    state = values.get("server.state", len(_STATES))
    return Readiness(
        state=_STATES[state] if state < len(_STATES) else "UNKNOWN",
        workers_started=values.get("listener_manager.workers_started", 0) > 0,
        clusters_accepted=values.get("cluster_manager.cds.update_success", 0),
        clusters_rejected=values.get("cluster_manager.cds.update_rejected", 0),
        listeners_accepted=values.get("listener_manager.lds.update_success", 0),
        listeners_rejected=values.get("listener_manager.lds.update_rejected", 0),
    )


def count_connections(values: Mapping[str, int]) -> int | None:
    """Open connections of the application's listeners; None where Envoy does not count them."""
    counted = [
        value
        for name, value in values.items()
        if name.startswith("listener.") and ".worker_" not in name and not _OWN_LISTENERS.fullmatch(name)
    ]
    return sum(counted) if counted else None


class Admin:
    """The admin interface at one address; every failure is an AgentError."""

    def __init__(self, session: aiohttp.ClientSession, host: str, port: int) -> None:
        self._session = session
        self._base = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def readiness(self) -> Readiness:
        """How far Envoy has come."""
        return parse_readiness(parse_stats(await self._ask("GET", "/stats", {"filter": _READINESS})))

    async def active_connections(self) -> int | None:
        """Open connections of the application's listeners; None where Envoy does not count them."""
        return count_connections(parse_stats(await self._ask("GET", "/stats", {"filter": _CONNECTIONS})))

    async def drain(self, *, inbound_only: bool, skip_exit: bool) -> None:
        """Stop taking new connections and ask clients to close theirs."""
        words = ["inboundonly"] if inbound_only else []
        words += ["graceful", "skip_exit"] if skip_exit else ["graceful"]
        await self._ask("POST", "/drain_listeners?" + "&".join(words), {})

    async def _ask(self, method: str, path: str, query: Mapping[str, str]) -> str:
        try:
            async with self._session.request(
                method, self._base + path, params=query or None, timeout=_TIMEOUT
            ) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise AgentError(f"Envoy's admin interface: {str(failed) or type(failed).__name__}") from failed
        if response.status != 200:
            raise AgentError(f"Envoy's admin interface answers {response.status} to {path}: {text.strip()}")
        return text
