"""ServiceEntries that stand in each other's way.

In: ServiceEntries, Services. Out: MZ0112: a host and port that another entry of the same clients has, a host that is a
Service's, an address and TCP port that another host has.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from mizzen.analysis import own_codes
from mizzen.analysis.findings import Finding, describe, report
from mizzen.api.meta import Key
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.incremental import Engine, Index, query
from mizzen.model import mesh, services
from mizzen.model.protocols import parse_protocol


def _by_host(_key: tuple[str, ...], entry: Any) -> Iterable[Hashable]:
    return {(host.lower(), port.number) for host in entry.spec.hosts for port in entry.spec.ports}


def _by_address(_key: tuple[str, ...], entry: Any) -> Iterable[Hashable]:
    return {
        (address, port.number)
        for address in entry.spec.addresses
        for port in entry.spec.ports
        if not parse_protocol(port.protocol).is_http
    }


_hosts = Index("ServiceEntry", "host and port", _by_host)
_addresses = Index("ServiceEntry", "address and port", _by_address)


@query
def check_entry(db: Engine, key: Key) -> tuple[Finding, ...]:
    """What of an entry others define too."""
    found: ServiceEntry | None = db.input(key)
    return tuple(_check(db, key, found)) if found is not None else ()


def _check(db: Engine, key: Key, found: ServiceEntry) -> Iterator[Finding]:
    for index, host in enumerate(found.spec.hosts):
        name = host.lower()
        path = f"spec.hosts[{index}]"
        own = next((s for s in services.services_of_host(db, name) if s.is_kubernetes), None)
        if own is not None:
            text = "clients take the Service's ports and endpoints"
            yield report(own_codes.SERVICE_ENTRY_OVERLAP, key, f"Host {host}", describe(own.id.source), text, path=path)
        for port in found.spec.ports:
            others = _rivals(db, key, found, db.lookup(_hosts, (name, port.number)))
            if others:
                what = f"Port {port.number} of host {host}"
                text = "the oldest one counts, and endpoints of all are mixed or left out"
                yield report(own_codes.SERVICE_ENTRY_OVERLAP, key, what, ", ".join(others), text, path=path)
                break
    for index, address in enumerate(found.spec.addresses):
        numbers = (port.number for port in found.spec.ports if not parse_protocol(port.protocol).is_http)
        for number in sorted(set(numbers)):
            keys = tuple(k for k in db.lookup(_addresses, (address, number)) if not _shares_host(db, found, k))
            others = _rivals(db, key, found, keys)
            if others:
                what, text = f"Address {address}:{number}", "connections to it go to one host only"
                path = f"spec.addresses[{index}]"
                yield report(own_codes.SERVICE_ENTRY_OVERLAP, key, what, ", ".join(others), text, path=path)
                break


def _shares_host(db: Engine, found: ServiceEntry, key: tuple[str, ...]) -> bool:
    other: ServiceEntry = db.input(Key(*key))
    return bool({host.lower() for host in found.spec.hosts} & {host.lower() for host in other.spec.hosts})


def _rivals(db: Engine, key: Key, found: ServiceEntry, keys: Iterable[tuple[str, ...]]) -> list[str]:
    """The other entries that some client sees beside this one."""
    default = tuple(mesh.mesh_config(db).default_service_export_to)
    own = services.audience(tuple(found.spec.export_to), default, key.namespace)
    rivals = []
    for each in sorted(keys):
        other = Key(*each)
        entry: ServiceEntry = db.input(other)
        if other == key:
            continue
        audience = services.audience(tuple(entry.spec.export_to), default, other.namespace)
        together = own.everybody or audience.everybody or bool(own.namespaces & audience.namespaces)
        nobody = not (own.everybody or own.namespaces) or not (audience.everybody or audience.namespaces)
        if together and not nobody:
            rivals.append(describe(other))
    return rivals
