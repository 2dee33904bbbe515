"""Gateways: which Gateway objects a gateway proxy serves, and which of their servers share a port.

In: Gateways, the proxy's labels and the ports its service maps. Out: the accepted servers in order, each with its
listening port, bind and route name. A server that collides with an earlier one on its port is left out, as Istio
does; the others stay. Golden cases: gateway/merge-one-port, gateway/conflicting-servers, gateway/target-ports.
"""

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway, Server
from mizzen.incremental import Engine, Index, query
from mizzen.model import names, workloads
from mizzen.model.protocols import Protocol, parse_protocol
from mizzen.model.proxy import Labels
from mizzen.model.services import is_port

_all = Index("Gateway", "all", lambda _key, _gateway: ((),))

PortMap = tuple[tuple[int, int], ...]
"""Service port to listening port, for ports that the gateway's service maps to another."""

_PASSTHROUGH = ("PASSTHROUGH", "AUTO_PASSTHROUGH")


class GatewayServer(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted server of a Gateway."""

    gateway: Key
    server: Server
    number: int
    """The port that the Gateway names."""
    port: int
    """The port that the proxy listens on."""
    protocol: Protocol
    hosts: tuple[str, ...]
    """Lower-cased `namespace/host`; the namespace is `*` for any."""
    route_name: str = ""
    """The route configuration of HTTP servers; empty for those that route connections."""

    @property
    def qualified_gateway(self) -> str:
        """The Gateway as VirtualServices name it."""
        return f"{self.gateway.namespace}/{self.gateway.name}"

    @property
    def bind(self) -> str:
        """The address that the server asks to listen on; empty for every address."""
        return self.server.bind

    @property
    def is_tls(self) -> bool:
        """Whether connections are TLS, terminated here or not."""
        return self.server.tls is not None and not self.is_plain_http

    @property
    def is_plain_http(self) -> bool:
        """Whether the server speaks HTTP in plain text; `tls` then only asks for a redirect."""
        return self.protocol.is_http

    @property
    def passes_tls_through(self) -> bool:
        """Whether TLS is routed by SNI without being terminated."""
        return self.is_tls and self.server.tls is not None and self.server.tls.mode in _PASSTHROUGH

    @property
    def terminates_http(self) -> bool:
        """Whether it terminates TLS and speaks HTTP inside."""
        return self.protocol is Protocol.HTTPS and self.is_tls and not self.passes_tls_through

    @property
    def bare_hosts(self) -> tuple[str, ...]:
        """The hosts without namespaces, each once."""
        return tuple(dict.fromkeys(h.partition("/")[2] for h in self.hosts))


@query
def selected_gateways(db: Engine, labels: Labels) -> tuple[Gateway, ...]:
    """The Gateways whose selector matches these labels, in any namespace; an empty selector matches every gateway."""
    found = (db.input(Key(*key)) for key in db.lookup(_all, ()))
    selecting = (g for g in found if workloads.selects(workloads.freeze(g.spec.selector), labels))
    return tuple(sorted(selecting, key=lambda g: g.metadata.age_order))


@query
def gateway_servers(db: Engine, labels: Labels, ports: PortMap, unprivileged: bool) -> tuple[GatewayServer, ...]:
    """The servers that proxies with these labels serve, in order of precedence."""
    listening = dict(ports)
    accepted: list[GatewayServer] = []
    for gateway in selected_gateways(db, labels):
        for server in gateway.spec.servers:
            candidate = _read(gateway, server, listening)
            if candidate is None or (unprivileged and candidate.port < 1024):
                continue
            if _fits(candidate, accepted):
                accepted.append(candidate)
    return tuple(accepted)


def _read(gateway: Gateway, server: Server, listening: dict[int, int]) -> GatewayServer | None:
    if server.port is None or not is_port(server.port.number):
        return None
    meta = gateway.metadata
    number = server.port.number
    read = GatewayServer(
        gateway=Key("Gateway", meta.namespace, meta.name),
        server=server,
        number=number,
        port=listening.get(number, number),
        protocol=parse_protocol(server.port.protocol),
        hosts=tuple(_qualify(h.lower(), meta.namespace) for h in server.hosts),
    )
    return msgspec.structs.replace(read, route_name=_route_name(read))


def _qualify(host: str, own: str) -> str:
    namespace, slash, name = host.partition("/")
    if not slash:
        return f"*/{host}"
    return f"{own if namespace == '.' else namespace}/{name}"


def _route_name(server: GatewayServer) -> str:
    suffix = f".{server.bind}" if server.bind else ""
    if server.is_plain_http:
        return f"http.{server.port}{suffix}"
    if not server.terminates_http or server.server.port is None:
        return ""
    gateway = server.gateway
    return f"https.{server.number}.{server.server.port.name}.{gateway.name}.{gateway.namespace}{suffix}"


def _fits(candidate: GatewayServer, accepted: list[GatewayServer]) -> bool:
    """Whether a server can share its port with those accepted before it."""
    there = [s for s in accepted if s.port == candidate.port]
    if candidate.is_tls and _shares_tls_host(candidate, there):
        return False
    if not there:
        return True
    plain = next((s for s in there if not s.is_tls), None)
    if plain is not None and plain.bind == candidate.bind:
        return plain.is_plain_http and candidate.is_plain_http
    same_bind = [s for s in there if s.bind == candidate.bind]
    if candidate.terminates_http and any(s.route_name == candidate.route_name for s in there):
        return False
    return not (same_bind and not candidate.is_tls and candidate.protocol.is_tls)


def _shares_tls_host(candidate: GatewayServer, there: list[GatewayServer]) -> bool:
    """Whether an earlier TLS server of the port and bind has one of the hosts as written."""
    mine = {h.lower() for h in candidate.server.hosts}
    return any(s.is_tls and s.bind == candidate.bind and mine & {h.lower() for h in s.server.hosts} for s in there)


def narrower_host(server_host: str, namespace: str, host: str) -> str | None:
    """What a server's host and a VirtualService's have in common: the narrower of the two; None for nothing, or
    where the server takes only VirtualServices of another namespace."""
    space, _, name = server_host.partition("/")
    if space not in ("*", namespace):
        return None
    if names.matches(name, host):
        return host
    return name if names.matches(host, name) else None
