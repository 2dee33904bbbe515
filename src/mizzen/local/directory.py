"""Who answers under which name and address: the published objects as the resolver and the hub need them.

In: Services, their EndpointSlices and ServiceEntries. Out: the resolver's zone, the Service rules of the hub, and the
ready targets of one port for what is published on the host. Pure; computed anew after every change, which for a mesh
on one machine costs less than knowing what changed.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address

import msgspec

from mizzen.api.kube.services import Endpoint, EndpointSlice, Service
from mizzen.api.meta import Key, Object
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.local import publish
from mizzen.local.addresses import HEADLESS, service_key
from mizzen.local.net import dns
from mizzen.local.net.vips import Target, VirtualPort

_PROTOCOLS = {"TCP": "tcp", "UDP": "udp"}


class Directory(msgspec.Struct, frozen=True, kw_only=True):
    """Services with what stands behind them."""

    services: Mapping[Key, Service]
    slices: Mapping[Key, tuple[EndpointSlice, ...]]
    entries: tuple[ServiceEntry, ...] = ()
    domain: str = "cluster.local"

    @classmethod
    def of(cls, objects: Iterable[Object], domain: str = "cluster.local") -> "Directory":
        """A directory of all objects that matter here; a later object replaces an earlier one of the same name."""
        services: dict[Key, Service] = {}
        slices: dict[Key, EndpointSlice] = {}
        entries: dict[tuple[str, str], ServiceEntry] = {}
        for item in objects:
            namespace = item.metadata.namespace or "default"
            if isinstance(item, Service):
                services[service_key(item)] = item
            elif isinstance(item, EndpointSlice):
                slices[Key("EndpointSlice", namespace, item.metadata.name)] = item
            elif isinstance(item, ServiceEntry):
                entries[namespace, item.metadata.name] = item
        by_service: dict[Key, list[EndpointSlice]] = {}
        for key in sorted(slices):
            owner = Key("Service", key.namespace, slices[key].metadata.labels.get(publish.SERVICE_NAME, ""))
            by_service.setdefault(owner, []).append(slices[key])
        grouped = {key: tuple(found) for key, found in by_service.items()}
        known = tuple(entries[key] for key in sorted(entries))
        return cls(services=services, slices=grouped, entries=known, domain=domain)


def ready_targets(directory: Directory, service: Key, port_name: str) -> tuple[Target, ...]:
    """The ready endpoints of one port."""
    found = []
    for part in directory.slices.get(service, ()):
        for port in part.ports:
            if port.name == port_name and port.port is not None:
                found += [Target(IPv4Address(item.addresses[0]), port.port) for item in _ready(part.endpoints)]
    return tuple(sorted(found))


def build_virtual_ports(directory: Directory) -> tuple[VirtualPort, ...]:
    """Every port of every Service that has an address and somebody behind it."""
    ports = []
    for key, service in sorted(directory.services.items()):
        addresses = [address for address in _cluster_ips(service) if ":" not in address]
        for port in service.spec.ports:
            targets = ready_targets(directory, key, port.name)
            protocol = _PROTOCOLS.get(port.protocol)
            if targets and protocol:
                ports += [VirtualPort(IPv4Address(address), protocol, port.port, targets) for address in addresses]
    return tuple(ports)


def build_zone(directory: Directory) -> dns.Zone:
    """The names of Services, of the pods behind headless ones, and of hosts outside that the manifests describe."""
    zone: dict[str, dns.Records] = {}
    for entry in directory.entries:
        for host in entry.spec.hosts:
            if records := _outside_records(entry, host):
                zone[host.lower()] = records
    for key, service in sorted(directory.services.items()):
        host = f"{key.name}.{key.namespace}.svc.{directory.domain}"
        zone.update(_service_records(directory, key, service, host))
    return zone


def _service_records(directory: Directory, key: Key, service: Service, host: str) -> Iterator[tuple[str, dns.Records]]:
    if service.spec.type == "ExternalName":
        yield host, dns.Records(alias=service.spec.external_name.rstrip(".").lower())
        return
    addresses = _cluster_ips(service)
    if service.spec.cluster_ip == HEADLESS:
        members = [item for part in directory.slices.get(key, ()) for item in _ready(part.endpoints)]
        addresses = tuple(sorted(item.addresses[0] for item in members))
        for item in members:
            if item.hostname:
                yield f"{item.hostname}.{host}", dns.Records(addresses=(item.addresses[0],))
    yield host, dns.Records(addresses=addresses)
    for port in service.spec.ports:
        if port.name and port.protocol in _PROTOCOLS:
            name = f"_{port.name}._{_PROTOCOLS[port.protocol]}.{host}"
            yield name, dns.Records(services=(dns.Service(port.port, host),))


def _outside_records(entry: ServiceEntry, host: str) -> dns.Records | None:
    """What the world's name servers would say: the addresses or the endpoints that the entry states."""
    if host.startswith("*"):
        return None
    stated = tuple(address for address in entry.spec.addresses if _is_address(address))
    endpoints = [endpoint.address for endpoint in entry.spec.endpoints if endpoint.address]
    addresses = stated or tuple(address for address in endpoints if _is_address(address))
    if addresses:
        return dns.Records(addresses=addresses)
    names = [address for address in endpoints if not address.startswith("unix:") and address != host]
    return dns.Records(alias=names[0].lower()) if names else None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _cluster_ips(service: Service) -> tuple[str, ...]:
    spec = service.spec
    stated = spec.cluster_ips or ((spec.cluster_ip,) if spec.cluster_ip else ())
    return tuple(address for address in stated if address != HEADLESS)


def _ready(endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    return [item for item in endpoints if item.conditions.ready is not False and item.addresses]
