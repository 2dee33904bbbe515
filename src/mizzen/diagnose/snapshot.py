"""All that one proxy is told, as protobuf JSON: the offline counterpart of Envoy's own dump.

In: the inputs in an engine, and a proxy. Out: its resources by kind and name, private keys redacted. Kinds that Envoy
asks for by name are followed as Envoy follows them: routes, extensions and secrets that the listeners and clusters
name, endpoints of EDS clusters.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mizzen import protos
from mizzen.compile import resource, snapshot
from mizzen.compile.resource import ResourceSet
from mizzen.diagnose import printing, references
from mizzen.diagnose.dump import Dump
from mizzen.diagnose.table import Table
from mizzen.incremental import Engine
from mizzen.model.proxy import Proxy

_ADMIN = protos.TYPE_PREFIX + "envoy.admin.v3."
KINDS = ("clusters", "listeners", "routes", "endpoints", "extensions", "secrets")

Printed = Mapping[str, dict[str, Any]]
"""Resources by name, as protobuf JSON with `@type` first."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The resources of one proxy: the sets that would be sent, and how they print."""

    sets: Mapping[str, ResourceSet]
    printed: Mapping[str, Printed]
    subscriptions: tuple[tuple[str, frozenset[str] | None], ...] = ()
    """The type URLs that the proxy asks for, each with the names; None for everything."""


def take_snapshot(db: Engine, proxy: Proxy) -> Snapshot:
    """Everything that the proxy would be told if it connected now."""
    sets = {
        "clusters": snapshot.resources(db, proxy, resource.CLUSTER, None),
        "listeners": snapshot.resources(db, proxy, resource.LISTENER, None),
    }
    printed = {kind: print_set(found) for kind, found in sets.items()}
    asked = references.find_references(printed["clusters"].values(), printed["listeners"].values())
    names = {
        "routes": (resource.ROUTE, frozenset(asked.routes)),
        "endpoints": (resource.ENDPOINT, frozenset(asked.endpoints)),
        "extensions": (resource.EXTENSION, frozenset(asked.extensions)),
        "secrets": (resource.SECRET, frozenset(asked.secrets)),
    }
    for kind, (type_url, wanted) in names.items():
        sets[kind] = snapshot.resources(db, proxy, type_url, wanted)
        printed[kind] = print_set(sets[kind])
    subscriptions = ((resource.CLUSTER, None), (resource.LISTENER, None), *names.values())
    return Snapshot(sets=sets, printed={kind: printed[kind] for kind in KINDS}, subscriptions=subscriptions)


def print_set(found: Iterable[resource.Resource]) -> Printed:
    """Resources by name as protobuf JSON."""
    return {each.name: print_resource(each) for each in found}


def print_resource(found: resource.Resource) -> dict[str, Any]:
    """One resource as protobuf JSON."""
    return printing.print_any(protos.message_class("google.protobuf.Any").FromString(found.data))


def summarize(taken: Snapshot) -> Table:
    """How many resources of each kind, how many bytes they are, and the version that tells two sets apart."""
    rows = tuple(
        (kind, str(len(found)), str(sum(len(each.data) for each in found)), found.version)
        for kind, found in ((kind, taken.sets[kind]) for kind in KINDS)
    )
    return Table(columns=("KIND", "RESOURCES", "BYTES", "VERSION"), rows=rows)


def as_dump(taken: Snapshot) -> Dump:
    """The snapshot in the sections of Envoy's own dump, for all that reads such dumps."""

    def section(kind: str, entries: str, resources: Printed, *path: str) -> dict[str, Any]:
        wrapped: list[dict[str, Any]] = []
        for name, message in resources.items():
            entry: Any = message
            for step in reversed(path):
                entry = {step: entry}
            wrapped.append({"name": name, **entry})
        return {"@type": f"{_ADMIN}{kind}ConfigDump", entries: wrapped}

    printed = taken.printed
    return Dump(
        (
            section("Clusters", "dynamicActiveClusters", printed["clusters"], "cluster"),
            section("Endpoints", "dynamicEndpointConfigs", printed["endpoints"], "endpointConfig"),
            section("Listeners", "dynamicListeners", printed["listeners"], "activeState", "listener"),
            section("Routes", "dynamicRouteConfigs", printed["routes"], "routeConfig"),
            section("Secrets", "dynamicActiveSecrets", printed["secrets"], "secret"),
            section("Ecds", "ecdsFilters", printed["extensions"], "ecdsFilter"),
        )
    )
