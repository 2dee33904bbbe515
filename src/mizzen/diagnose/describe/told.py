"""Which objects the configuration of a proxy says that it comes from.

In: a dump, a host and a port. Out: the keys of objects, each once, in the order in which the dump names
them. A dump without the section in question names nothing.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mizzen.api.meta import Key
from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json
from mizzen.model import names

_UNKNOWN = ("", "<unknown>")
_VIRTUAL_INBOUND = "virtualInbound"
_HTTP_MANAGER = "envoy.filters.network.http_connection_manager"
_GATEWAY_ROUTES = ("http.", "https.")


class Port(NamedTuple):
    """A port of a host."""

    host: str
    number: int


def find_destination_rule(source: Dump, port: Port) -> Key | None:
    """The rule that the clusters of the port name."""
    found = (
        dump.describe_origin(dump.message(cluster, "metadata"))
        for cluster in _dynamic(source, "Clusters", "dynamic_active_clusters", "cluster")
        if _names_port(dump.text(cluster, "name"), port)
    )
    origin = next((each for each in found if each not in _UNKNOWN), "")
    return _key("DestinationRule", origin) if origin else None


def find_virtual_services(source: Dump, port: Port, configurations: Iterable[str] = ()) -> tuple[Key, ...]:
    """The VirtualServices whose routes lead to the port: of these route configurations, else of all that may.

    A sidecar names its configuration after the port, or host and port where the protocol is found by looking.
    """
    wanted = tuple(configurations) or (str(port.number), f"{port.host}:{port.number}", *_GATEWAY_ROUTES)
    origins = dict.fromkeys((*_route_origins(source, port, wanted), *_stream_origins(source, port)))
    return tuple(_key("VirtualService", origin) for origin in origins if origin not in _UNKNOWN)


def _route_origins(source: Dump, port: Port, wanted: tuple[str, ...]) -> Iterator[str]:
    for configuration in _dynamic(source, "Routes", "dynamic_route_configs", "route_config"):
        if not _is_wanted(dump.text(configuration, "name"), wanted):
            continue
        for host in dump.items(configuration, "virtual_hosts"):
            serves = any(_bare_domain(domain) == port.host for domain in dump.texts(host, "domains"))
            for route in dump.items(host, "routes"):
                if serves or any(_names_port(name, port) for name in _targets(dump.message(route, "route"))):
                    yield dump.describe_origin(dump.message(route, "metadata"))


def _is_wanted(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether it is one of these; one that ends in a dot stands for all that begin with it."""
    return any(name == each or (each.endswith(".") and name.startswith(each)) for each in wanted)


def _stream_origins(source: Dump, port: Port) -> Iterator[str]:
    """Of filter chains that carry TLS or TCP."""
    for listener in _dynamic(source, "Listeners", "dynamic_listeners", "active_state", "listener"):
        for chain in _chains(listener):
            configs = (dump.message(each, "typed_config") for each in dump.items(chain, "filters"))
            if any(_names_port(name, port) for config in configs for name in _targets(config)):
                yield dump.describe_origin(dump.message(chain, "metadata"))


def find_stream_services(source: Dump, number: int) -> tuple[Key, ...]:
    """The VirtualServices that decide on TLS and TCP at a port, wherever they lead."""
    found: dict[str, None] = {}
    for listener in _dynamic(source, "Listeners", "dynamic_listeners", "active_state", "listener"):
        if dump.number(listener, "address", "socket_address", "port_value") == number:
            for chain in _chains(listener):
                found[dump.describe_origin(dump.message(chain, "metadata"))] = None
    return tuple(_key("VirtualService", origin) for origin in found if origin not in _UNKNOWN)


def _chains(listener: Json) -> list[Json]:
    return [*dump.items(listener, "filter_chains"), dump.message(listener, "default_filter_chain")]


def _targets(action: Json) -> list[str]:
    """The clusters of a route's action or of a TCP proxy."""
    weighted = dump.items(action, "weighted_clusters", "clusters")
    return [dump.text(action, "cluster"), *(dump.text(each, "name") for each in weighted)]


def _names_port(cluster: str, port: Port) -> bool:
    parts = names.parse_subset_key(cluster)
    return parts is not None and parts.direction == names.OUTBOUND and (parts.host, parts.port) == port


def _bare_domain(domain: str) -> str:
    host, colon, number = domain.rpartition(":")
    return host if colon and number.isdigit() else domain


def find_policies(source: Dump) -> tuple[str, ...]:
    """The rules of AuthorizationPolicies that inbound requests are held against, as the proxy names them.

    HTTP filters are looked at first; a pod without HTTP has them on its connections.
    """
    listeners = _dynamic(source, "Listeners", "dynamic_listeners", "active_state", "listener")
    inbound = next((each for each in listeners if dump.text(each, "name") == _VIRTUAL_INBOUND), {})
    filters = [f for chain in dump.items(inbound, "filter_chains") for f in dump.items(chain, "filters")]
    managers = (dump.message(f, "typed_config") for f in filters if f.get("name") == _HTTP_MANAGER)
    in_requests = dict.fromkeys(name for m in managers for f in dump.items(m, "http_filters") for name in _policies(f))
    found = in_requests or dict.fromkeys(name for f in filters for name in _policies(f))
    return tuple(sorted(found))


def _policies(filter_: Json) -> Iterator[str]:
    config = dump.message(filter_, "typed_config")
    if str(config.get("@type", "")).endswith(".rbac.v3.RBAC"):
        yield from dump.message(config, "rules", "policies")


def route_configurations(source: Dump) -> tuple[str, ...]:
    """The names of all route configurations."""
    found = _dynamic(source, "Routes", "dynamic_route_configs", "route_config")
    return tuple(dump.text(each, "name") for each in found)


def _dynamic(source: Dump, kind: str, entries: str, *path: str) -> Iterator[Json]:
    sections = source.sections(kind)
    for entry in dump.items(sections[-1], entries) if sections else ():
        if found := dump.message(entry, *path):
            yield found


def _key(kind: str, origin: str) -> Key:
    name, _, namespace = origin.rpartition(".")
    return Key(kind, namespace, name)
