"""istiod's debug documents, as plain data.

In: the connections of `xds`, and the findings of the sources. Out: what `/debug/…` answers, in istiod's shapes, for
istioctl and for `diagnose`. A config dump shows what was really sent to a proxy, with private keys cut out.
`problems` is our own: every object that is not, or not wholly, in force, and why. Who may see what is `http`'s affair.
"""

import datetime
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mizzen import protos
from mizzen.compile.resource import CLUSTER, ENDPOINT, EXTENSION, LISTENER, ROUTE, SECRET, Resource
from mizzen.diagnose import printing
from mizzen.sources.origins import Finding
from mizzen.xds import kinds
from mizzen.xds.status import Connection, TypeStatus, proxy_id

_NEVER = "0001-01-01T00:00:00Z"
_FLAT = {
    CLUSTER: "cluster",
    LISTENER: "listener",
    ROUTE: "route",
    ENDPOINT: "endpoint",
    EXTENSION: "extensionconfig",
}
_ADMIN = protos.TYPE_PREFIX + "envoy.admin.v3."


def format_time(seconds: float) -> str:
    """RFC 3339 with as many digits as it takes; the zero time of Go for 0."""
    if not seconds:
        return _NEVER
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return f"{text}Z"


def syncz(connections: Iterable[Connection]) -> list[dict[str, Any]]:
    """For each proxy and each type it watches: what was sent, what was acknowledged, the last rejection."""
    return [_sync(connection) for connection in connections]


def _sync(connection: Connection) -> dict[str, Any]:
    proxy = connection.proxy
    entry: dict[str, Any] = {
        "cluster_id": proxy.cluster_id,
        "proxy": proxy_id(proxy),
        "proxy_type": proxy.kind,
        "istio_version": connection.version,
    }
    types = connection.types()
    for status in types:
        if flat := _FLAT.get(status.type_url):
            entry[f"{flat}_sent"] = status.sent_nonce
            entry[f"{flat}_acked"] = status.acked_nonce
    entry = _without_empty(entry)
    entry["resources"] = {status.type_url: _type_sync(status) for status in types}
    return entry


def _type_sync(status: TypeStatus) -> dict[str, str]:
    texts = {"sent": status.sent_nonce, "acked": status.acked_nonce, "lastError": status.error}
    return {**_without_empty(texts), "sentTime": format_time(status.sent_at)}


def _without_empty(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value}


def connections_document(connections: Iterable[Connection]) -> dict[str, Any]:
    """Who is connected, from where and since when."""
    clients = [_client(connection) for connection in connections]
    return {"totalClients": len(clients), "clients": clients}


def adsz(connections: Iterable[Connection]) -> dict[str, Any]:
    """The same with what each proxy said of itself and what it subscribes to."""
    clients = [_detailed_client(connection) for connection in connections]
    return {"totalClients": len(clients), "clients": clients}


def _client(connection: Connection) -> dict[str, Any]:
    return {
        "connectionId": connection.id,
        "connectedAt": format_time(connection.connected_at),
        "address": connection.address,
    }


def _detailed_client(connection: Connection) -> dict[str, Any]:
    proxy = connection.proxy
    locality = {
        "region": proxy.locality.region,
        "zone": proxy.locality.zone,
        "sub_zone": proxy.locality.subzone,
    }
    return {
        **_client(connection),
        "labels": dict(proxy.labels),
        "metadata": json.loads(proxy.metadata),
        "locality": _without_empty(locality),
        "watches": {status.type_url: list(status.names) for status in connection.types()},
    }


def problems(findings: Iterable[Finding], connections: Iterable[Connection]) -> dict[str, Any]:
    """What users wrote that is not in force and why, and what proxies refused."""
    return {
        "objects": [_problem(finding) for finding in findings],
        "rejections": [
            _without_empty(
                {
                    "proxy": proxy_id(connection.proxy),
                    "typeUrl": status.type_url,
                    "error": status.error,
                    "resources": list(status.culprits),
                }
            )
            for connection in connections
            for status in connection.types()
            if status.error
        ],
    }


def _problem(finding: Finding) -> dict[str, Any]:
    origin, problem = finding
    entry: dict[str, Any] = {"level": problem.level, "code": problem.code, "message": problem.message}
    if problem.key is not None:
        entry |= problem.key._asdict()
    return _without_empty({**entry, "path": problem.path, "file": origin.file, "line": origin.line})


# -- config dumps -----------------------------------------------------------------------------------------------------


def config_dump(
    connection: Connection, types: frozenset[str] | None = None, with_endpoints: bool = False
) -> dict[str, Any]:
    """What was sent to a proxy: in the sections of Envoy's dump, or with `types` (`cds`, `lds`, …) just the resources.

    Large ones cost tenths of a second; not for the event loop.
    """
    if types is not None:
        watched = (status.type_url for status in connection.types())
        chosen = [url for url in watched if kinds.short_name(url) in types]
        return {"configs": [_json(found) for url in chosen for found in connection.sent(url) or ()]}
    sections = [
        _section("BootstrapConfigDump"),
        _listing(connection, CLUSTER, "ClustersConfigDump", "dynamicActiveClusters", _cluster),
    ]
    if with_endpoints:
        sections.append(_listing(connection, ENDPOINT, "EndpointsConfigDump", "dynamicEndpointConfigs", _endpoint))
    sections += [
        _listing(connection, LISTENER, "ListenersConfigDump", "dynamicListeners", _listener),
        _section("ScopedRoutesConfigDump"),
        _listing(connection, ROUTE, "RoutesConfigDump", "dynamicRouteConfigs", _route),
        _listing(connection, SECRET, "SecretsConfigDump", "dynamicActiveSecrets", _secret),
        _listing(connection, EXTENSION, "EcdsConfigDump", "ecdsFilters", _extension),
    ]
    return {"configs": sections}


def _section(name: str, **fields: Any) -> dict[str, Any]:
    return {"@type": _ADMIN + name, **fields}


def _listing(
    connection: Connection, type_url: str, section: str, field: str, show: Callable[[Resource], dict[str, Any]]
) -> dict[str, Any]:
    sent = connection.sent(type_url)
    if not sent:
        return _section(section)
    version = {"versionInfo": sent.version} if type_url in (CLUSTER, LISTENER) else {}
    return _section(section, **version, **{field: [show(found) for found in sent]})


def _json(found: Resource) -> dict[str, Any]:
    return printing.print_any(protos.message_class("google.protobuf.Any").FromString(found.data))


def _cluster(found: Resource) -> dict[str, Any]:
    return {"versionInfo": found.version, "cluster": _json(found)}


def _endpoint(found: Resource) -> dict[str, Any]:
    return {"versionInfo": found.version, "endpointConfig": _json(found)}


def _listener(found: Resource) -> dict[str, Any]:
    return {"name": found.name, "activeState": {"versionInfo": found.version, "listener": _json(found)}}


def _route(found: Resource) -> dict[str, Any]:
    return {"versionInfo": found.version, "routeConfig": _json(found)}


def _secret(found: Resource) -> dict[str, Any]:
    return {"name": found.name, "versionInfo": found.version, "secret": _json(found)}


def _extension(found: Resource) -> dict[str, Any]:
    return {"versionInfo": found.version, "ecdsFilter": _json(found)}


def in_namespace(connections: Iterable[Connection], namespace: str) -> Iterator[Connection]:
    """The connections of proxies of that namespace; all of them when it is empty."""
    return (connection for connection in connections if not namespace or connection.proxy.namespace == namespace)
