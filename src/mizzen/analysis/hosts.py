"""Hosts: which Service or ServiceEntry a written host means, by the rules of the reference's analyzers.

In: a host, the namespace of the object that wrote it, and that object's exportTo. Out: a `Target`, or None where it
means nothing. These rules are coarser than those by which proxies route (`model.scope`): the domain is fixed, Sidecars
and default visibility do not count, and of several ServiceEntries of a host one is looked at.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from mizzen.api.meta import Key
from mizzen.incremental import Engine, Index, query
from mizzen.model.proxy import Labels
from mizzen.model.workloads import freeze

SUFFIX = ".svc.cluster.local"
_EXPORT_TO = "networking.istio.io/exportTo"
EVERYBODY = "*"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What a host means."""

    key: Key
    ports: tuple[int, ...] = ()
    labels: Labels = ()
    """The workload selector of a ServiceEntry."""


def fqdn(host: str, namespace: str) -> str:
    """The host as a full name, if it is a short one."""
    return host if "." in host or host.startswith("*") else f"{host}.{namespace}{SUFFIX}"


def short_name(host: str) -> tuple[str, str] | None:
    """Name and namespace of a Service's host; None for other hosts."""
    name, dot, namespace = host.removesuffix(SUFFIX).partition(".")
    return (name, namespace) if dot and host.endswith(SUFFIX) and "." not in namespace else None


def _scopes(export_to: Iterable[str], namespace: str) -> tuple[str, ...]:
    return tuple(namespace if scope == "." else scope for scope in export_to) or (EVERYBODY,)


def _entry_groups(key: tuple[str, ...], entry: Any) -> Iterable[Hashable]:
    for scope in _scopes(entry.spec.export_to, key[1]):
        for host in entry.spec.hosts:
            yield (scope, fqdn(host, key[1]))


def _wildcard_groups(key: tuple[str, ...], entry: Any) -> Iterable[Hashable]:
    if any(host.startswith("*") for host in entry.spec.hosts):
        yield from _scopes(entry.spec.export_to, key[1])


_entries_by_host = Index("ServiceEntry", "scope and host", _entry_groups)
_wildcard_entries = Index("ServiceEntry", "wildcards by scope", _wildcard_groups)


@query
def service_scopes(db: Engine, key: Key) -> tuple[str, ...]:
    """The namespaces that see a Service."""
    found: Any = db.input(key)
    text = found.metadata.annotations.get(_EXPORT_TO, "") if found is not None else ""
    return _scopes((scope.strip() for scope in text.split(",") if scope.strip()), key.namespace)


@query
def find_target(db: Engine, host: str, namespace: str, export_to: tuple[str, ...]) -> Target | None:
    """What `host` means to an object of `namespace`."""
    full = fqdn(host, namespace)
    for scope in (EVERYBODY, *(_scopes(export_to, namespace) if export_to else (namespace,))):
        found = _exact(db, scope, full)
        if found is not None:
            return found
    return _wildcard(db, full, namespace)


def _exact(db: Engine, scope: str, host: str) -> Target | None:
    name = short_name(host)
    if name is not None:
        key = Key("Service", name[1], name[0])
        if db.input(key) is not None and scope in service_scopes(db, key):
            return target(db, key)
    entries = db.lookup(_entries_by_host, (scope, host))
    return target(db, Key(*entries[-1])) if entries else None


def _wildcard(db: Engine, host: str, namespace: str) -> Target | None:
    bare = host.removeprefix("*")
    for scope in (EVERYBODY, namespace):
        for key in db.lookup(_wildcard_entries, scope):
            entry: Any = db.input(key)
            if any(h.startswith("*") and bare.endswith(h.removeprefix("*")) for h in entry.spec.hosts):
                return target(db, Key(*key))
    return None


@query
def target(db: Engine, key: Key) -> Target:
    """The Service or ServiceEntry as a target; it exists."""
    found: Any = db.input(key)
    if key.kind == "Service":
        return Target(key=key, ports=tuple(port.port for port in found.spec.ports))
    selector = found.spec.workload_selector
    return Target(
        key=key,
        ports=tuple(port.number for port in found.spec.ports),
        labels=freeze(selector.labels) if selector is not None else (),
    )
