"""Gateways: which Gateway objects a gateway proxy serves, and which of their servers share a port.

In: Gateways, those that `convert` generates, and the proxy's workload: its labels and the services it stands behind.
Out: the accepted servers in order, each with its listening port, bind and route name. A server that collides with an
earlier one on its port is left out, as Istio does; the others stay.
Golden cases: gateway/merge-one-port, gateway/conflicting-servers, gateway/target-ports, gateway-api/managed-gateway.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway, Server
from mizzen.api.problems import Problem
from mizzen.incremental import Engine, attempt, query
from mizzen.model import names, objects, targets, workloads
from mizzen.model.convert.gateways.objects import namespace_gateways
from mizzen.model.convert.ingress import ingress_gateways
from mizzen.model.protocols import Protocol, parse_protocol
from mizzen.model.proxy import Labels, Proxy
from mizzen.model.services import is_port

_GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"
_PASSTHROUGH = ("PASSTHROUGH", "AUTO_PASSTHROUGH")


class ServedPort(NamedTuple):
    """A port of a service that the proxy stands behind."""

    service: str
    """The service's host."""
    number: int
    target: int
    """The port that the proxy listens on for it; 0 where the service asks for gateways to listen on its own number."""


class GatewayWorkload(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A gateway's workload, as far as the servers that it has follow from it."""

    namespace: str
    labels: Labels
    """By which Gateways select it."""
    service_account: str = ""
    ports: tuple[ServedPort, ...] = ()
    """Of the oldest service first."""
    unprivileged: bool = False
    """Whether it cannot open ports below 1024."""

    @property
    def is_managed(self) -> bool:
        """Whether it was deployed for a Gateway of the Gateway API."""
        return any(name == _GATEWAY_NAME for name, _ in self.labels)


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
    grants: tuple[str, ...] = ()
    """Credentials of other namespaces that its Gateway may refer to, and the proxy therefore have."""
    is_gateway_api: bool = False

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


class Selected(NamedTuple):
    """A Gateway that a workload serves, with the port that it listens on for each port of a server."""

    gateway: Gateway
    listening: Mapping[int, int]
    is_gateway_api: bool = False
    has_grants: bool = False
    """Whether the workload may have what the Gateway's references were granted."""


@query
def gateway_workload(db: Engine, proxy: Proxy) -> GatewayWorkload:
    """A gateway proxy, as far as the servers that it has follow from it."""
    workload = workloads.proxy_workload(db, proxy)
    ports = (
        ServedPort(t.service.host, t.port.number, t.target_port if targets.is_translated(t) else 0)
        for t in targets.service_targets(db, proxy)
    )
    return GatewayWorkload(
        namespace=proxy.namespace,
        labels=workload.labels,
        service_account=workload.service_account,
        ports=tuple(ports),
        unprivileged=proxy.unprivileged,
    )


@query
def _gateways_by_selector(db: Engine) -> tuple[Gateway, ...]:
    """The Gateways that select workloads by labels: those that users wrote, and those of Ingresses."""
    written = (db.input(key) for key in objects.of_kind(db, "Gateway"))
    return (*written, *(attempt(ingress_gateways, db) or ()))


@query
def selected_gateways(db: Engine, workload: GatewayWorkload) -> tuple[Selected, ...]:
    """The Gateways that a workload serves: those in any namespace whose selector matches its labels (an empty one
    matches every gateway), and the generated ones of its namespace that are bound to a service it stands behind.

    A workload deployed for a Gateway of the Gateway API takes written ones of its own namespace only.
    """
    own = {p.number: p.target for p in reversed(workload.ports) if p.target}
    found: list[Selected] = []
    for gateway in _gateways_by_selector(db):
        is_foreign = workload.is_managed and gateway.metadata.namespace != workload.namespace
        if not is_foreign and workloads.selects(workloads.freeze(gateway.spec.selector), workload.labels):
            found.append(Selected(gateway, own))
    for generated in attempt(namespace_gateways, db, workload.namespace) or ():
        bound = {p.number: p.target or p.number for p in reversed(workload.ports) if p.service in generated.services}
        if bound:
            trusted = generated.service_account in ("", workload.service_account)
            found.append(Selected(generated.gateway, bound, is_gateway_api=True, has_grants=trusted))
    return tuple(sorted(found, key=lambda s: s.gateway.metadata.age_order))


@query
def gateway_servers(db: Engine, workload: GatewayWorkload) -> tuple[GatewayServer, ...]:
    """The servers that a workload has, in order of precedence."""
    accepted: list[GatewayServer] = []
    for selected in selected_gateways(db, workload):
        for nth, server in enumerate(selected.gateway.spec.servers):
            candidate = _read(selected, server)
            if candidate is None:
                continue
            if workload.unprivileged and candidate.port < 1024:
                _remark(db, candidate, nth, f"left out, for its gateway may not open port {candidate.port}")
            elif _fits(candidate, accepted):
                accepted.append(candidate)
            else:
                _remark(db, candidate, nth, f"left out, for an earlier server has port {candidate.port}")
    return tuple(accepted)


def _remark(db: Engine, server: GatewayServer, nth: int, message: str) -> None:
    """Tell of a server that is not in force; generated ones are told of in the statuses of their sources."""
    if not server.is_gateway_api:
        db.remark(Problem(key=server.gateway, path=f"spec.servers[{nth}]", code="unusable-server", message=message))


@query
def granted_credentials(db: Engine, workload: GatewayWorkload) -> frozenset[str]:
    """The credentials of other namespaces that a workload may have, because a Gateway it serves was granted them."""
    return frozenset(name for server in gateway_servers(db, workload) for name in server.grants)


def _read(selected: Selected, server: Server) -> GatewayServer | None:
    """The server; None where it has no port, or where a generated one's is not a port of the service it is bound to."""
    if server.port is None or not is_port(server.port.number):
        return None
    meta = selected.gateway.metadata
    number = server.port.number
    if selected.is_gateway_api and number not in selected.listening:
        return None
    read = GatewayServer(
        gateway=Key("Gateway", meta.namespace, meta.name),
        server=server,
        number=number,
        port=selected.listening.get(number, number),
        protocol=parse_protocol(server.port.protocol),
        hosts=tuple(_qualify(h.lower(), meta.namespace) for h in server.hosts),
        grants=_credentials(server) if selected.has_grants else (),
        is_gateway_api=selected.is_gateway_api,
    )
    return msgspec.structs.replace(read, route_name=_route_name(read))


def _credentials(server: Server) -> tuple[str, ...]:
    if server.tls is None:
        return ()
    named = (server.tls.credential_name, *server.tls.credential_names, server.tls.ca_cert_credential_name)
    return tuple(name.removesuffix("-cacert") for name in named if name.startswith("kubernetes-gateway://"))


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
