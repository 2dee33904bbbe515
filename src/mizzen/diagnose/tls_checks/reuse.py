"""One port, asked about by clients of many classes: what was found of one may hold for another.

In: a world, a Service's port and its servers, clients. Out: `Check`s. A walk's verdict about TLS is that of another
client if the walk would have seen the same at its proxy, if its name leads to the same address, and if no server
tells clients apart by their names. Only what goes well is shared: causes are looked for in the client's own namespace.
"""

import msgspec

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Json
from mizzen.diagnose.tls_checks import checks, clients
from mizzen.diagnose.tls_checks.checks import Check
from mizzen.diagnose.tls_checks.looks import Looks
from mizzen.diagnose.tls_checks.servers import Server
from mizzen.diagnose.trace import names, tls, virtual_hosts
from mizzen.diagnose.trace.verdict import Link, Trace
from mizzen.diagnose.trace.world import Holdings, Workload, World
from mizzen.model import services
from mizzen.model.protocols import Protocol

_BEHIND_TLS: tuple[Link, ...] = ("", "policy", "application")
"""Where a connection may fail without a word about TLS."""


class _Known(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one client, and by what."""

    client: Workload
    resolved: names.Resolved
    looks: Looks
    traced: Trace
    check: Check


class PortChecks:
    """The checks of one port."""

    def __init__(self, world: World, service: services.Service, port: services.Port, found: tuple[Server, ...]) -> None:
        self._world = world
        self._service = service
        self._port = port
        self.servers = found
        self._known: list[_Known] = []

    def alone(self, pod: Workload) -> Check:
        """That of a client that is like no other."""
        if pod.proxy == "router":
            return checks.check(self._world, pod, self._service, self._port)
        return checks.check_servers(self._world, pod, self._service, self._port, self.servers)

    def check(self, pod: Workload) -> Check:
        """That of a client that is none of the servers; or that of another that fares alike."""
        if pod.proxy == "router":
            return self.alone(pod)
        resolved = names.resolve(self._world, pod, self._service.host)
        for known in self._known:
            if self._holds(known, pod, resolved):
                return known.check
        looks = Looks(self._world.holdings(pod))
        traced = checks.connect(self._seen_by(pod, looks), pod, self._service, self._port)
        check = checks.judge(self._world, pod, self._service, self._port, self.servers, traced)
        if self._may_hold_for_others(pod, check, traced):
            self._known.append(_Known(client=pod, resolved=resolved, looks=looks, traced=traced, check=check))
        return check

    def _seen_by(self, pod: Workload, looks: Looks) -> World:
        def hold(asked: Workload) -> Holdings:
            return looks.held if asked.reference == pod.reference else self._world.holdings(asked)

        return self._world.held_by(hold)

    def _holds(self, known: _Known, pod: Workload, resolved: names.Resolved) -> bool:
        first = known.client
        if (first.proxy, first.capture, known.resolved) != (pod.proxy, pod.capture, resolved):
            return False
        if self._is_server(pod):
            return False
        authority = checks.request(pod, self._service, self._port).authority
        speaks = clients.read_client(self._world, pod, self._service, self._port, known.traced, side=first.reference)
        return speaks == known.check.speaks and known.looks.same_at(
            self._world, self._world.holdings(pod), (authority, virtual_hosts.strip_port(authority))
        )

    def _is_server(self, pod: Workload) -> bool:
        return any(server.address in pod.addresses for server in self.servers)

    def _may_hold_for_others(self, pod: Workload, check: Check, traced: Trace) -> bool:
        """Whether nothing of it hangs on who the client is."""
        if len({server.kind for server in self.servers}) > 1 or self._is_server(pod) or traced.divides:
            return False
        if traced.link not in _BEHIND_TLS or check.reason or check.cause is not None:
            return False
        # Whether a server's proxy was reached, which policies decide, is part of the verdict about these alone.
        is_inspected = self._port.protocol is Protocol.TCP and check.speaks.speaks == "plain text"
        return not is_inspected and not any(
            self._tells_apart(passage.side, passage.chain)
            for way in traced.ways
            for passage in way
            if passage.side != pod.reference
        )

    def _tells_apart(self, side: str, chain: Json | None) -> bool:
        """Whether a server takes certificates of some names only, within the trust domain."""
        server = self._world.find(side) if chain is not None else None
        if server is None or chain is None:
            return False
        receiving = tls.server(self._world, server, self._world.holdings(server), chain)
        return receiving is not None and not all(_is_trust_domain(matcher) for _, matcher in receiving.names)


def _is_trust_domain(matcher: Json) -> bool:
    prefix = dump.text(matcher, "prefix")
    return len(matcher) == 1 and prefix.startswith("spiffe://") and prefix.endswith("/") and prefix.count("/") == 3
