"""Route configurations of a sidecar: by port number, by sniffed `host:port`, for the HTTP proxy port or a Unix socket.

In: the name asked for, the client's scope. Out: one encoded RouteConfiguration. VirtualServices take the services
they name, the most specific host winning; every service left gets its default route; calls of unknown hosts meet the
scope's outbound policy. Golden cases: golden base, networking/vs-*, networking/sidecar-*, networking/se-*.
"""

from typing import Any

import msgspec

from mizzen import protos
from mizzen.compile import resource
from mizzen.compile.filters.timeouts import build_timeouts
from mizzen.compile.resource import Resource, ResourceSet, shared
from mizzen.compile.routes.destinations import Place, alpn_config, resolve
from mizzen.compile.routes.mesh_hosts import SidecarClient, port_hosts, serves_every_port
from mizzen.compile.routes.virtual_hosts import VirtualHost, encode_configuration, with_domains
from mizzen.compile.routes.virtual_service import EncodedRoute
from mizzen.incremental import Engine, query
from mizzen.model import names, scope

_route_v3 = protos.package("envoy.config.route.v3")

HTTP_PROXY = "http_proxy"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A route configuration's name, taken apart."""

    port: int = 0
    host: str = ""
    """The host of a sniffed name."""
    bind: str = ""
    """The Unix socket."""


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The virtual hosts of a route configuration, and whether they are found without the port."""

    hosts: tuple[VirtualHost, ...]
    ignores_port: bool
    sound: bool
    """Whether no domain is in two of them, and Envoy takes each."""


@query
def configurations(db: Engine, client: SidecarClient, asked: frozenset[str]) -> ResourceSet:
    """The route configurations of these names; each is answered, if only with an empty one."""
    return ResourceSet(resource.ROUTE, (configuration(db, client, name) for name in sorted(asked)))


@query
def configuration(db: Engine, client: SidecarClient, name: str) -> Resource:
    """The route configuration of one name."""
    wanted = parse_name(name)
    if wanted is None:
        return encode_configuration(name, (), known=False)
    if not wanted.host:
        found = configured(db, client, wanted)
        return shared(encode_configuration(name, found.hosts, ignores_port=found.ignores_port, sound=found.sound))
    full = f"{wanted.host}:{wanted.port}"
    hosts = port_hosts(db, client, wanted.port, wanted.bind).hosts
    matching = [h for h in hosts if full in h.domains or wanted.host in h.domains]
    if len(matching) != 1:
        return encode_configuration(name, ())
    return encode_configuration(name, [with_domains(matching[0], ("*",))])


def configured(db: Engine, client: SidecarClient, wanted: Wanted) -> Configured:
    """All virtual hosts of a port or a socket."""
    found = port_hosts(db, client, wanted.port, wanted.bind)
    ignores_port = client.routes.dialect != "envoy" or not serves_every_port(db, client, wanted.port, wanted.bind)
    hosts = (*found.hosts, _unknown_hosts(db, client))
    return Configured(hosts=hosts, ignores_port=ignores_port, sound=found.sound)


def parse_name(name: str) -> Wanted | None:
    """The parts of a name that a sidecar may ask for; None for any other."""
    if name == HTTP_PROXY:
        return Wanted()
    if name.startswith("unix://"):
        return Wanted(bind=name)
    if name.isdigit():
        return Wanted(port=int(name))
    host, colon, port = name.rpartition(":")
    return Wanted(port=int(port), host=host) if colon and host and port.isdigit() else None


def _unknown_hosts(db: Engine, client: SidecarClient) -> VirtualHost:
    """What meets calls of hosts that nobody knows."""
    policy = scope.outbound_policy(db, client.routes.scope)
    if policy.mode == "REGISTRY_ONLY":
        return _catch_all(client, "block_all", {"direct_response": {"status": 502}})
    if policy.mode == "ALLOW_ANY_DYNAMIC_DNS":
        return _catch_all(client, "allow_any_dynamic_dns", {"route": _forward(client, names.DYNAMIC_DNS)})
    proxy = policy.egress_proxy
    if proxy is None:
        return _catch_all(client, "allow_any", {"route": _forward(client, names.PASSTHROUGH)})
    target = resolve(db, client.routes, proxy, policy.namespace, Place(port=0))
    port = proxy.port.number if proxy.port is not None else 0
    cluster = names.subset_key(names.OUTBOUND, port, proxy.subset, target.host)
    overrides = {"typed_per_filter_config": alpn_config(target)}
    return _catch_all(client, "allow_any", {"route": _forward(client, cluster), **overrides})


def _forward(client: SidecarClient, cluster: str) -> dict[str, Any]:
    action: dict[str, Any] = {"cluster": cluster, **build_timeouts({}, client.routes.dialect)}
    if client.routes.forwarded_host:
        action["append_x_forwarded_host"] = True
    return action


def _catch_all(client: SidecarClient, name: str, action: dict[str, Any]) -> VirtualHost:
    route = protos.encode(_route_v3.Route(name=name, match={"prefix": "/"}, **action))
    return VirtualHost(
        name=name,
        domains=("*",),
        routes=(EncodedRoute(route, is_catch_all=True),),
        attempt_count=client.routes.attempt_count,
    )
