"""The chains of a sidecar's own workload, planned.

In: the workload's service targets or its Sidecar's ingress listeners, and the mutual TLS mode of each port. Out:
`InboundPlan` values: `virtualInbound`, and a listener for each port that really listens. Golden cases: base,
networking/shared-workloads, networking/sidecar-ingress, networking/protocol-selection, security/pa-* .
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from mizzen.api.networking.sidecar import IstioIngressListener
from mizzen.compile import observed
from mizzen.compile.addresses import Bind
from mizzen.compile.filters import alpn
from mizzen.compile.filters.stat_names import fill_pattern
from mizzen.compile.listeners.outbound import Ground
from mizzen.incremental import Engine, query
from mizzen.model import mesh, names, scope
from mizzen.model.policies import Mode, PeerModes
from mizzen.model.protocols import Protocol, parse_protocol
from mizzen.model.scope import ScopeId
from mizzen.model.targets import ServiceTarget

VIRTUAL_INBOUND = "virtualInbound"
Speaks = Literal["http", "tcp", "auto"]


class InboundPort(msgspec.Struct, frozen=True, kw_only=True):
    """One port of the workload, or (number 0) all that nobody declares."""

    number: int
    speaks: Speaks
    mode: Mode
    cluster: str
    stat_prefix: str
    """Of the TCP proxy."""
    http_stat_prefix: str
    http_name: str
    """The name of chains that serve HTTP."""
    tcp_name: str
    service_port: int = 0
    host: str = ""
    """The host that traces name; empty for undeclared ports."""
    protocol: Protocol = Protocol.AUTO
    origin: str = ""


class InboundPlan(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """An inbound listener: `virtualInbound`, or one that really listens on a port of its own."""

    name: str
    bind: Bind
    port: int
    ports: tuple[InboundPort, ...]
    virtual: bool = True
    transparent: bool = False


class ChainShape(msgspec.Struct, frozen=True):
    """One chain of a port: what it takes, whether it serves HTTP, whether it terminates mutual TLS."""

    transport: str
    alpn: tuple[str, ...]
    http: bool
    terminates: bool


def chain_shapes(mode: Mode, speaks: Speaks, plain: tuple[str, ...]) -> tuple[ChainShape, ...]:
    """The chains of a port by its mutual TLS mode and what it speaks, in Istio's order.

    `plain` is what plain-text HTTP looks like. PERMISSIVE tells the mesh's TLS from the application's by its ALPN.
    """
    return tuple(ChainShape(*shape) for shape in _shapes(mode, speaks, plain))


def _shapes(mode: Mode, speaks: Speaks, plain: tuple[str, ...]) -> list[tuple[str, tuple[str, ...], bool, bool]]:
    http = speaks == "http"
    match mode, speaks:
        case "PERMISSIVE", "auto":
            return [
                ("tls", alpn.MESH_HTTP, True, True),
                ("raw_buffer", plain, True, False),
                ("tls", alpn.MESH_TCP, False, True),
                ("raw_buffer", (), False, False),
                ("tls", (), False, False),
            ]
        case "PERMISSIVE", "http":
            return [("tls", alpn.MESH_ALL, True, True), ("raw_buffer", (), True, False)]
        case "PERMISSIVE", _:
            return [
                ("tls", alpn.MESH_ALL, False, True),
                ("tls", (), False, False),
                ("raw_buffer", (), False, False),
            ]
        case "STRICT", "auto":
            return [("tls", alpn.MESH_HTTP, True, True), ("tls", (), False, True)]
        case "STRICT", _:
            return [("tls", (), http, True)]
        case _, "auto":
            return [("raw_buffer", plain, True, False), ("raw_buffer", (), False, False)]
        case _:
            return [("raw_buffer", (), http, False)]


# -- which ports ------------------------------------------------------------------------------------------------------


class Workload(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What of a sidecar's workload decides its inbound chains."""

    scope: ScopeId
    targets: tuple[ServiceTarget, ...]
    modes: PeerModes
    address: str = ""
    """Its first global address, if a Sidecar's ingress listeners name chains by it; else empty."""


@query
def inbound_plans(db: Engine, workload: Workload, ground: Ground, transparent: bool) -> tuple[InboundPlan, ...]:
    """The inbound listeners, `virtualInbound` first; without capture there is none of it."""
    config = mesh.mesh_config(db)
    declared = list(_declared_ports(db, workload, ground))
    found = []
    if ground.captured:
        virtual = [port for port, bound in declared if bound is None]
        ports = (*_undeclared_ports(db, workload.modes, {p.number for p in virtual}), *virtual)
        found.append(
            InboundPlan(
                name=VIRTUAL_INBOUND,
                bind=ground.network.virtual_wildcard,
                port=config.proxy_inbound_listen_port,
                ports=ports,
                transparent=transparent,
            )
        )
    for port, bound in declared:
        if bound is not None:
            name = f"{bound.address}_{port.number}"
            found.append(InboundPlan(name=name, bind=bound, port=port.number, ports=(port,), virtual=False))
    return tuple(found)


def _undeclared_ports(db: Engine, modes: PeerModes, declared: Iterable[int]) -> Iterator[InboundPort]:
    pattern = mesh.mesh_config(db).inbound_cluster_stat_name
    cluster = names.INBOUND_PASSTHROUGH
    own_modes = [(0, modes.default), *((p, m) for p, m in modes.by_port if p not in set(declared))]
    for number, mode in own_modes:
        yield InboundPort(
            number=number,
            speaks="auto",
            mode=mode,
            cluster=cluster,
            stat_prefix=fill_pattern(pattern, None) if pattern else cluster,
            http_stat_prefix=f"{cluster};",
            http_name="virtualInbound-catchall-http",
            tcp_name=VIRTUAL_INBOUND,
        )


def _declared_ports(db: Engine, workload: Workload, ground: Ground) -> Iterator[tuple[InboundPort, Bind | None]]:
    """The declared ports by number, each with the address it really listens on, if it does."""
    sidecar = scope.sidecar(db, workload.scope)
    ingress = sidecar.spec.ingress if sidecar is not None else ()
    found: dict[int, tuple[InboundPort, Bind | None]] = {}
    if sidecar is not None and ingress:
        host = f"{sidecar.metadata.name}.{sidecar.metadata.namespace}"
        path = f"/apis/networking.istio.io/v1/namespaces/{sidecar.metadata.namespace}/sidecar/{sidecar.metadata.name}"
        for listener in ingress:
            own = _ingress_port(workload, ground, listener, host, path)
            if own is not None:
                found.setdefault(own[0].number, own)
    elif ground.captured:
        for target in workload.targets:
            if target.target_port in ground.reserved:
                continue
            port = _target_port(db, workload, ground, target)
            first, _ = found.setdefault(port.number, (port, None))
            if first.host != port.host and first.protocol != port.protocol:
                observed.observe(db, observed.INBOUND_CONFLICT, port.http_name)
    yield from (found[number] for number in sorted(found))


def _target_port(db: Engine, workload: Workload, ground: Ground, target: ServiceTarget) -> InboundPort:
    number, port = target.target_port, target.port
    cluster = names.subset_key(names.INBOUND, number, "", "")
    pattern = mesh.mesh_config(db).inbound_cluster_stat_name
    stat_prefix = cluster
    if pattern:
        stat_prefix = fill_pattern(pattern, target.service, port=port.number, port_name=port.name, target_port=number)
    name = f"{ground.network.wildcard.address}_{number}"
    return InboundPort(
        number=number,
        speaks=_speaks(port.protocol),
        mode=workload.modes.of(number),
        cluster=cluster,
        stat_prefix=stat_prefix,
        http_stat_prefix=f"inbound_{name};",
        http_name=name,
        tcp_name=name,
        service_port=port.number,
        host=target.service.host,
        protocol=port.protocol,
    )


def _ingress_port(
    workload: Workload, ground: Ground, listener: IstioIngressListener, host: str, origin: str
) -> tuple[InboundPort, Bind | None] | None:
    if listener.port is None:
        return None
    number = listener.port.number
    protocol = parse_protocol(listener.port.protocol)
    bind = listener.bind or workload.address or ground.network.wildcard.address
    name = f"{bind}_{number}"
    cluster = names.subset_key(names.INBOUND, number, "", "")
    port = InboundPort(
        number=number,
        speaks=_speaks(protocol),
        mode=workload.modes.of(number),
        cluster=cluster,
        stat_prefix=cluster,
        http_stat_prefix=f"inbound_{name};",
        http_name=name,
        tcp_name=name,
        service_port=number,
        host=host,
        protocol=protocol,
        origin=origin,
    )
    bound = listener.capture_mode == "NONE" or not ground.captured
    return port, Bind(bind) if bound else None


def _speaks(protocol: Protocol) -> Speaks:
    return "http" if protocol.is_http else "auto" if protocol.is_auto else "tcp"


def global_address(addresses: Iterable[str]) -> str:
    """The first address that others can reach; empty where there is none."""
    for text in addresses:
        address = ipaddress.ip_address(text)
        if not (address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local):
            return text
    return ""


def needs_address(db: Engine, scope_id: ScopeId) -> bool:
    """Whether a Sidecar names chains by the proxy's own address."""
    sidecar = scope.sidecar(db, scope_id)
    return sidecar is not None and any(not listener.bind for listener in sidecar.spec.ingress)
