"""Configuration dumps of one proxy, in the sections of Envoy's own.

In: a connection of `xds`. Out: messages of `envoy.admin.v3`, as JSON for the pages and packed for `istioctl
proxy-status POD`. A dump shows what was really sent, without what Envoy adds to it; private keys and passwords are cut
out. Large ones cost tenths of a second; they are built in threads, from values that nobody changes.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from mizzen import protos
from mizzen.compile.resource import (
    CLUSTER,
    ENDPOINT,
    EXTENSION,
    LISTENER,
    ROUTE,
    SECRET,
    VIRTUAL_HOST,
    Resource,
    ResourceSet,
)
from mizzen.compile.routes.on_demand import with_hosts
from mizzen.control.debug import redaction
from mizzen.control.debug.clients import find
from mizzen.control.debug.console import Page, Pages, Query, Write
from mizzen.diagnose import printing
from mizzen.xds import kinds
from mizzen.xds.status import Connection, Connections

_admin_v3 = protos.package("envoy.admin.v3")
_ADMIN = protos.TYPE_PREFIX + "envoy.admin.v3."


def pages(connections: Connections) -> Pages:
    """The dump of everything and those of one type."""

    def read(query: Query, types: str = "") -> Write:
        connection = find(connections, query)
        words = types or query["types"]
        sent = sent_to(connection)
        if words:
            chosen = frozenset(filter(None, words.split(",")))
            return lambda: {"configs": list(_bare(sent, chosen))}
        with_endpoints = "include_eds" in query
        return lambda: config_dump(sent, with_endpoints=with_endpoints)

    return {
        "config_dump": Page("What the proxy proxyID was sent; types=cds,… for one type, include_eds.", read),
        "ecdsz": Page("The extensions of the proxy proxyID.", functools.partial(read, types="ecds")),
        "edsz": Page("The endpoints of the proxy proxyID.", functools.partial(read, types="eds")),
        "ndsz": Page("The name table of the proxy proxyID.", functools.partial(read, types="nds")),
    }


Sent = dict[str, ResourceSet]


def sent_to(connection: Connection) -> Sent:
    """What a proxy was sent of each type that it watches, in order."""
    found = ((status.type_url, connection.sent(status.type_url)) for status in connection.types())
    return {type_url: resources for type_url, resources in found if resources is not None}


def _bare(sent: Sent, words: frozenset[str]) -> Iterator[dict[str, Any]]:
    """The resources of these types (`cds`, `lds`, …) without sections around them."""
    for type_url, resources in sent.items():
        if kinds.short_name(type_url) in words:
            yield from (printing.print_any(_packed(resource)) for resource in resources)


def config_dump(sent: Sent, *, with_endpoints: bool = False) -> dict[str, Any]:
    """All sections as JSON."""
    return {
        "configs": [
            {"@type": _ADMIN + section.DESCRIPTOR.name, **printing.print_message(section)}
            for section in sections(sent, with_endpoints=with_endpoints)
        ]
    }


def packed_sections(sent: Sent) -> list[bytes]:
    """All sections but the endpoints, redacted, as encoded Anys."""
    return [protos.encode(protos.pack(redaction.redact(section))) for section in sections(sent)]


def sections(sent: Sent, *, with_endpoints: bool = False) -> Iterator[Any]:
    """The messages of all sections, private keys included: print or redact them."""
    yield _admin_v3.BootstrapConfigDump()
    clusters = _entries(sent, CLUSTER, _cluster)
    yield _admin_v3.ClustersConfigDump(version_info=_version(sent, CLUSTER), dynamic_active_clusters=clusters)
    if with_endpoints:
        yield _admin_v3.EndpointsConfigDump(dynamic_endpoint_configs=_entries(sent, ENDPOINT, _endpoint))
    listeners = _entries(sent, LISTENER, _listener)
    yield _admin_v3.ListenersConfigDump(version_info=_version(sent, LISTENER), dynamic_listeners=listeners)
    yield _admin_v3.ScopedRoutesConfigDump()
    hosts = list(sent.get(VIRTUAL_HOST, ()))
    routes = _entries(sent, ROUTE, lambda found: _route(found, hosts))
    yield _admin_v3.RoutesConfigDump(dynamic_route_configs=routes)
    yield _admin_v3.SecretsConfigDump(dynamic_active_secrets=_entries(sent, SECRET, _secret))
    yield _admin_v3.EcdsConfigDump(ecds_filters=_entries(sent, EXTENSION, _extension))


def _version(sent: Sent, type_url: str) -> str:
    resources = sent.get(type_url)
    return resources.version if resources else ""


def _entries(sent: Sent, type_url: str, show: Callable[[Resource], dict[str, Any]]) -> list[dict[str, Any]]:
    return [show(resource) for resource in sent.get(type_url, ())]


def _packed(resource: Resource) -> Any:
    return protos.message_class("google.protobuf.Any").FromString(resource.data)


def _cluster(found: Resource) -> dict[str, Any]:
    return {"version_info": found.version, "cluster": _packed(found)}


def _endpoint(found: Resource) -> dict[str, Any]:
    return {"version_info": found.version, "endpoint_config": _packed(found)}


def _listener(found: Resource) -> dict[str, Any]:
    return {"name": found.name, "active_state": {"version_info": found.version, "listener": _packed(found)}}


def _route(found: Resource, hosts: list[Resource]) -> dict[str, Any]:
    return {"version_info": found.version, "route_config": _packed(with_hosts(found, hosts))}


def _secret(found: Resource) -> dict[str, Any]:
    return {"name": found.name, "version_info": found.version, "secret": _packed(found)}


def _extension(found: Resource) -> dict[str, Any]:
    return {"version_info": found.version, "ecds_filter": _packed(found)}
