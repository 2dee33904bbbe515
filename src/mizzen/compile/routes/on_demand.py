"""Virtual hosts on demand: the host of a sidecar's route configuration that the authority of a request means.

In: the virtual hosts of a whole route configuration, and names `ROUTE/AUTHORITY` as Envoy asks for them. Out: for each
one virtual host with that authority as its only domain, so that no two that a proxy holds ever share a domain. What
meets unknown hosts is answered for them like any other. A route configuration on demand itself holds no virtual host:
one that takes every host would keep Envoy from asking.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mizzen import protos
from mizzen.compile.filters.alpn import ROUTE_FILTER, build_route_override
from mizzen.compile.resource import Resource, encode_resource
from mizzen.compile.routes.refusals import is_domain
from mizzen.compile.routes.virtual_hosts import MAX_DIRECT_RESPONSE, VirtualHost, encode_virtual_host
from mizzen.compile.values import ADS_SOURCE
from mizzen.model import names

_route_v3 = protos.package("envoy.config.route.v3")

NOBODY = "_"
"""In place of an authority: a virtual host that no request means. Envoy takes a listener into service only when it was
told anything of the virtual hosts of its routes."""

_OTHER = "OTHER "
"""Begins the name of a host that was not asked for; Envoy asks in small letters."""


class Directory(msgspec.Struct, frozen=True):
    """The virtual hosts of a route configuration as Envoy finds them."""

    exact: Mapping[str, VirtualHost]
    endings: tuple[tuple[str, VirtualHost], ...]
    """By what stands behind the `*`, the longest first."""
    beginnings: tuple[tuple[str, VirtualHost], ...]
    anything: VirtualHost | None
    ignores_port: bool

    def find(self, authority: str) -> VirtualHost | None:
        """The virtual host that takes requests to an authority."""
        host = without_port(authority) if self.ignores_port else authority
        found = self.exact.get(host)
        if found is None:
            by_ending = (each for end, each in self.endings if host.endswith(end) and len(host) > len(end))
            by_beginning = (
                each for start, each in self.beginnings if host.startswith(start) and len(host) > len(start)
            )
            found = next(by_ending, None) or next(by_beginning, None)
        return found or self.anything

    def domains(self) -> Iterator[tuple[str, VirtualHost]]:
        """Every domain and the host that has it."""
        yield from self.exact.items()
        yield from ((f"*{end}", host) for end, host in self.endings)
        yield from ((f"{start}*", host) for start, host in self.beginnings)
        if self.anything is not None:
            yield "*", self.anything


def build_directory(hosts: Iterable[VirtualHost], *, ignores_port: bool) -> Directory:
    """Of two hosts the first keeps a domain, but the last keeps `*`."""
    exact: dict[str, VirtualHost] = {}
    endings: dict[str, VirtualHost] = {}
    beginnings: dict[str, VirtualHost] = {}
    anything: VirtualHost | None = None
    for host in hosts:
        for domain in map(str.lower, host.domains):
            if domain == "*":
                anything = host
            elif domain.startswith("*"):
                endings.setdefault(domain[1:], host)
            elif domain.endswith("*"):
                beginnings.setdefault(domain[:-1], host)
            else:
                exact.setdefault(domain, host)
    return Directory(exact, _longest_first(endings), _longest_first(beginnings), anything, ignores_port)


def _longest_first(hosts: Mapping[str, VirtualHost]) -> tuple[tuple[str, VirtualHost], ...]:
    return tuple(sorted(hosts.items(), key=lambda entry: (-len(entry[0]), entry[0])))


def without_port(authority: str) -> str:
    """The host of an authority."""
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdigit() and (":" not in host or host.endswith("]")) else authority


def encode_bare_configuration(name: str) -> Resource:
    """A route configuration whose virtual hosts are asked for."""
    message = _route_v3.RouteConfiguration(
        name=name,
        validate_clusters={},
        max_direct_response_body_size_bytes={"value": MAX_DIRECT_RESPONSE},
        vhds={"config_source": ADS_SOURCE},
    )
    return encode_resource(name, message)


def encode_nobody(route: str) -> Resource:
    """The virtual host that no request means."""
    name = f"{route}/{NOBODY}"
    return encode_resource(name, _route_v3.VirtualHost(name=name, domains=[f"{NOBODY}.{route}.invalid"]))


def encode_answer(name: str, found: VirtualHost | None) -> Resource:
    """The virtual host of a name `ROUTE/AUTHORITY`; Envoy removes it by the name that stands in it too.

    Where there is none (Envoy could not take such a domain) one that matches nothing ends the wait: 404.
    """
    _, authority = parse_name(name)
    if found is None or not is_domain(authority) or "*" in authority:
        spelled = authority.encode().hex()
        return encode_resource(name, _route_v3.VirtualHost(name=name, domains=[f"{spelled}.{NOBODY}.invalid"]))
    return _encode(name, found, [authority])


def encode_others(route: str, directory: Directory, held: frozenset[str]) -> Iterator[Resource]:
    """All virtual hosts under the domains that are not `held`, with the port too, as Envoy looks for what was sent."""
    domains: dict[str, list[str]] = {}
    hosts: dict[str, VirtualHost] = {}
    for domain, host in directory.domains():
        spellings = (domain, f"{domain}:{route}") if directory.ignores_port and not domain.endswith("*") else (domain,)
        hosts[host.name] = host
        domains.setdefault(host.name, []).extend(each for each in spellings if each not in held and is_domain(each))
    for name, left in domains.items():
        if left:
            yield _encode(f"{route}/{_OTHER}{name}", hosts[name], left)


def _encode(name: str, found: VirtualHost, domains: Iterable[str]) -> Resource:
    message = _route_v3.VirtualHost.FromString(encode_virtual_host(found))
    message.name = name
    message.domains[:] = domains
    for route in message.routes:
        if ROUTE_FILTER not in route.typed_per_filter_config:
            route.typed_per_filter_config[ROUTE_FILTER].CopyFrom(build_route_override(""))
    return encode_resource(name, message)


def with_hosts(configuration: Resource, hosts: Iterable[Resource]) -> Resource:
    """A route configuration with those of the virtual hosts that are its own, as Envoy puts them together."""
    own = [host for host in hosts if parse_name(host.name)[0] == configuration.name]
    if not own:
        return configuration
    message = _route_v3.RouteConfiguration()
    message.MergeFrom(configuration.message())
    message.virtual_hosts.extend(host.message() for host in sorted(own, key=lambda host: host.name))
    return encode_resource(configuration.name, message)


def parse_name(name: str) -> tuple[str, str]:
    """The route configuration and the authority of a virtual host's name; of any other name the authority is empty."""
    route, slash, authority = name.partition("/")
    return (route, authority) if slash and names.is_asked_for_hosts(route) else (name, "")
