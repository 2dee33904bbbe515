"""Virtual hosts and route configurations put together from encoded routes.

In: names, domains and encoded routes. Out: encoded messages: repeated fields of protobuf concatenate, so a route is
encoded once however many virtual hosts and route configurations hold it.
"""

import weakref
from collections.abc import Iterable

import msgspec

from mizzen import protos
from mizzen.compile.resource import Resource
from mizzen.compile.routes.refusals import is_domain
from mizzen.compile.routes.virtual_service import EncodedRoute

_route_v3 = protos.package("envoy.config.route.v3")

_ROUTES, _VIRTUAL_HOSTS = 3, 2
MAX_DIRECT_RESPONSE = 1048576


class VirtualHost(msgspec.Struct, frozen=True, kw_only=True, weakref=True, cache_hash=True):
    """A virtual host before its domains are freed of those that others took."""

    name: str
    domains: tuple[str, ...]
    routes: tuple[EncodedRoute, ...]
    attempt_count: bool = True
    require_tls: bool = False
    encoded: bytes = b""
    """The message, where it has been made with these domains, all of which Envoy takes."""
    lowered: tuple[str, ...] = ()
    """The domains in lower case, where it is encoded."""


_known: weakref.WeakValueDictionary[VirtualHost, VirtualHost] = weakref.WeakValueDictionary()
"""What is encoded now, by what it was encoded from."""


def encoded(host: VirtualHost) -> VirtualHost:
    """The same, encoded once for all that hold it or an equal one: a service has the same names in all namespaces but
    its own."""
    found = _known.get(host)
    if found is not None:
        return found
    if not all(map(is_domain, host.domains)):
        return host
    lowered = _lower(host)
    # As a rule they are, and one tuple is enough.
    lowered = host.domains if lowered == host.domains else lowered
    found = _known[host] = msgspec.structs.replace(host, encoded=encode_virtual_host(host), lowered=lowered)
    return found


def with_domains(host: VirtualHost, domains: tuple[str, ...]) -> VirtualHost:
    """The same under other names."""
    return host if domains == host.domains else msgspec.structs.replace(host, domains=domains, encoded=b"", lowered=())


def encode_virtual_host(host: VirtualHost) -> bytes:
    """The message, its routes appended as they are."""
    if host.encoded:
        return host.encoded
    head = _route_v3.VirtualHost(
        name=host.name,
        domains=host.domains,
        include_request_attempt_count=host.attempt_count,
        require_tls="ALL" if host.require_tls else "NONE",
    )
    return protos.encode(head) + b"".join(protos.length_delimited(_ROUTES, r.data) for r in host.routes)


def encode_configuration(
    name: str, hosts: Iterable[VirtualHost], *, known: bool = True, ignores_port: bool = True, sound: bool = False
) -> Resource:
    """The route configuration; one that nobody knows (`known` False) is empty and has only its name.

    `sound` says that Envoy takes every domain, and each is in one host alone.
    """
    fields = {
        "max_direct_response_body_size_bytes": {"value": MAX_DIRECT_RESPONSE},
        "ignore_port_in_host_matching": ignores_port,
    }
    head = _route_v3.RouteConfiguration(name=name, validate_clusters={}, **(fields if known else {}))
    messages = map(encode_virtual_host, hosts if sound else _with_sound_domains(hosts))
    parts = (part for message in messages for part in (protos.delimiter(_VIRTUAL_HOSTS, len(message)), message))
    data = b"".join((protos.encode(head), *parts))
    return Resource(name, protos.encode_any(_route_v3.RouteConfiguration.DESCRIPTOR.full_name, data))


def _with_sound_domains(hosts: Iterable[VirtualHost]) -> Iterable[VirtualHost]:
    """Hosts whose domains Envoy takes; it refuses the whole configuration for a domain in vain, or in two of them.

    No object that passed validation gets here with one. Of two hosts the first keeps a domain, but the last keeps `*`,
    which is what meets everything else.
    """
    listed = list(hosts)
    if all(host.encoded or all(map(is_domain, host.domains)) for host in listed) and _all_domains(listed) is not None:
        return listed
    last = max((place for place, host in enumerate(listed) if "*" in host.domains), default=-1)
    seen: set[str] = set()
    kept = []
    for place, host in enumerate(listed):
        mine = []
        for domain in host.domains:
            lowered = domain.lower()
            if is_domain(domain) and lowered not in seen and (domain != "*" or place == last):
                seen.add(lowered)
                mine.append(domain)
        if mine:
            kept.append(with_domains(host, tuple(mine)))
    return kept


def without_duplicates(hosts: Iterable[VirtualHost]) -> list[VirtualHost]:
    """The first of each name, with the domains that no earlier one has (in any case of letters).

    A shortened alternate that is another service's full name is left to that service. What keeps no domain goes.
    """
    listed = list(hosts)
    if _are_apart(listed):
        return listed
    full = {name for host in listed for name in _full_names(host)}
    names: set[str] = set()
    taken: set[str] = set()
    kept: list[VirtualHost] = []
    for host in listed:
        if host.name in names:
            continue
        mine = _full_names(host)
        domains = []
        for domain in host.domains:
            lowered = domain.lower()
            if lowered in taken or (lowered in full and lowered not in mine):
                continue
            taken.add(lowered)
            domains.append(domain)
        if domains:
            names.add(host.name)
            kept.append(with_domains(host, tuple(domains)))
    return kept


class Part(msgspec.Struct, frozen=True, weakref=True):
    """Some of the virtual hosts of a route configuration, and what tells whether they stand in the way of others."""

    hosts: tuple[VirtualHost, ...]
    domains: tuple[str, ...]
    """All of them, in lower case."""
    full_names: tuple[str, ...]
    """Names of the hosts, with and without the port, that are no domains of theirs."""
    sound: bool
    """Whether Envoy takes every domain, and no host lacks one."""


_known_parts: weakref.WeakValueDictionary[tuple[VirtualHost, ...], Part] = weakref.WeakValueDictionary()


def part_of(hosts: Iterable[VirtualHost]) -> Part:
    """These hosts, looked at once for all configurations that hold them or equal ones."""
    listed = tuple(hosts)
    found = _known_parts.get(listed)
    if found is not None:
        return found
    domains = tuple(domain for host in listed for domain in _lower(host))
    full = (name for host in listed for name in _full_names(host) if name not in _lower(host))
    sound = all(host.encoded and host.domains for host in listed)
    found = _known_parts[listed] = Part(listed, domains, tuple(full), sound)
    return found


def join_apart(parts: Iterable[Part]) -> tuple[VirtualHost, ...] | None:
    """The hosts of all parts by name, as `without_duplicates` would leave them.

    None where they are not apart for certain: a domain is said twice, Envoy may not take one, or one takes every host.
    """
    listed = list(parts)
    hosts = {host.name: host for part in listed for host in part.hosts}
    domains = set[str]().union(*(part.domains for part in listed))
    apart = (
        all(part.sound for part in listed)
        and len(hosts) == sum(len(part.hosts) for part in listed)
        and len(domains) == sum(len(part.domains) for part in listed)
        and all(domains.isdisjoint(part.full_names) for part in listed)
        and "*" not in domains
    )
    return tuple(hosts[name] for name in sorted(hosts)) if apart else None


def _full_names(host: VirtualHost) -> tuple[str, str]:
    """A host's name with and without the port."""
    lowered = host.name.lower()
    # As a rule it is, and one text is enough.
    own = host.name if lowered == host.name else lowered
    return own, own.rpartition(":")[0]


def _lower(host: VirtualHost) -> tuple[str, ...]:
    return host.lowered or tuple(domain.lower() for domain in host.domains)


def _all_domains(hosts: list[VirtualHost]) -> set[str] | None:
    """The domains of all hosts, in lower case; None where one is said twice."""
    found = set[str]().union(*map(_lower, hosts))
    return found if len(found) == sum(len(host.domains) for host in hosts) else None


def _are_apart(hosts: list[VirtualHost]) -> bool:
    """Whether each has a name and domains of its own, and no other's full name; the usual case, found quickly."""
    domains = _all_domains(hosts)
    if domains is None or len({host.name for host in hosts}) != len(hosts) or not all(host.domains for host in hosts):
        return False
    return not any(name in domains and name not in _lower(host) for host in hosts for name in _full_names(host))
