"""ServiceEntries: TCP without addresses, and hosts whose ports have several protocols.

In: ServiceEntries, the mesh config. Out: IST0134, IST0177.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from mizzen.analysis import catalogue
from mizzen.analysis.findings import Finding, full_name, report
from mizzen.api.meta import Key
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.incremental import Engine, Index, query
from mizzen.model import mesh

_ALLOCATING = ("ISTIO_META_DNS_AUTO_ALLOCATE", "PILOT_ENABLE_IP_AUTOALLOCATE")
_AUTO_ALLOCATE = "networking.istio.io/enable-autoallocate-ip"
_EVERYBODY = "*"


@query
def check_addresses(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Ports by which a connection does not tell which service it is for."""
    found: ServiceEntry | None = db.input(key)
    if found is None or found.spec.addresses or found.status.addresses:
        return ()
    if _gets_addresses(found) or _allocates(db):
        return ()
    return tuple(
        report(catalogue.SERVICE_ENTRY_ADDRESSES_REQUIRED, key, path=f"spec.ports[{index}].protocol")
        for index, port in enumerate(found.spec.ports)
        if port.protocol.upper() in ("", "TCP")
    )


def _gets_addresses(found: ServiceEntry) -> bool:
    """Whether the control plane gives addresses to the entry's hosts, as it writes them into a live object's status.

    Golden cases: networking/se-protocols, networking/se-static-and-none.
    """
    has_name = any(not host.startswith("*") for host in found.spec.hosts)
    opted_out = found.metadata.labels.get(_AUTO_ALLOCATE) == "false"
    return has_name and found.spec.resolution not in ("NONE", "DYNAMIC_DNS") and not opted_out


@query
def _allocates(db: Engine) -> bool:
    """Whether the sidecars' DNS gives addresses to hosts without any."""
    config = mesh.mesh_config(db).default_config
    metadata = config.proxy_metadata if config is not None else {}
    captures = metadata.get("ISTIO_META_DNS_CAPTURE") == "true"
    return captures and any(metadata.get(name) == "true" for name in _ALLOCATING)


# -- protocols ------------------------------------------------------------------------------------------------------


def _scopes(key: tuple[str, ...], entry: Any) -> tuple[str, ...]:
    return tuple(key[1] if scope == "." else scope for scope in entry.spec.export_to) or (_EVERYBODY,)


def _by_port(key: tuple[str, ...], entry: Any) -> Iterable[Hashable]:
    for host in entry.spec.hosts:
        for port in entry.spec.ports:
            for scope in _scopes(key, entry):
                yield (scope, host, port.number)


_entries = Index("ServiceEntry", "scope, host and port", _by_port)


@query
def check_protocols(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A port of a host that other entries give another protocol; at most one finding an entry."""
    found: ServiceEntry | None = db.input(key)
    if found is None:
        return ()
    for scope in _scopes(tuple(key), found):
        for host in found.spec.hosts:
            for index, port in enumerate(found.spec.ports):
                names, protocols = _protocols(db, scope, host, port.number)
                if len(protocols) > 1:
                    args = (", ".join(names), host, port.number, ", ".join(protocols))
                    path = f"spec.ports[{index}].protocol"
                    return (report(catalogue.CONFLICTING_SERVICE_ENTRY_PROTOCOL, key, *args, path=path),)
    return ()


@query
def _protocols(db: Engine, scope: str, host: str, number: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The entries that a scope sees of a port, and their protocols."""
    keys = {*db.lookup(_entries, (scope, host, number)), *db.lookup(_entries, (_EVERYBODY, host, number))}
    protocols = set()
    for key in keys:
        entry: ServiceEntry = db.input(Key(*key))
        protocols |= {port.protocol.upper() for port in entry.spec.ports if port.number == number}
    return tuple(sorted(full_name(Key(*key)) for key in keys)), tuple(sorted(protocols))
