"""Who is connected, and what each was told: syncz, adsz, connections, problems.

In: the connections of `xds`, and the findings of the sources. Out: istiod's documents, as JSON for the pages and as
`ClientConfig` messages for `istioctl proxy-status`. `problems` is our own: every object that is not, or not wholly, in
force, and why, and what proxies refused.
"""

import datetime
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mizzen import protos
from mizzen.compile.resource import CLUSTER, ENDPOINT, EXTENSION, LISTENER, ROUTE
from mizzen.control.debug.console import Page, PageError, Pages, Query, Write, text
from mizzen.sources.origins import Finding
from mizzen.xds.status import Connection, Connections, TypeStatus, proxy_id

ABSENT = "Proxy not connected to this Pilot instance. It may be connected to another instance."
NO_PROXY_ID = "You must provide a proxyID in the query string"

_NEVER = "0001-01-01T00:00:00Z"
_NEVER_SECONDS = -62_135_596_800
"""The same in seconds: the zero time of Go."""
_FLAT = {
    CLUSTER: "cluster",
    LISTENER: "listener",
    ROUTE: "route",
    ENDPOINT: "endpoint",
    EXTENSION: "extensionconfig",
}
_status_v3 = protos.package("envoy.service.status.v3")


def pages(connections: Connections, findings: Callable[[], Iterable[Finding]], *, administrate: bool) -> Pages:
    """The pages about clients; with `administrate` also what disturbs them."""

    def read_adsz(query: Query) -> Write:
        if query.is_true("push"):
            return _push_to_all(connections)
        shown = [find(connections, query)] if query["proxyID"] else list(connections)
        return lambda: adsz(shown)

    def read_syncz(query: Query) -> Write:
        document = syncz(in_namespace(connections, query["namespace"]))
        return lambda: document

    def read_connections(_: Query) -> Write:
        shown = list(connections)
        return lambda: connections_document(shown)

    def read_problems(_: Query) -> Write:
        document = problems(findings(), connections)
        return lambda: document

    def disconnect(query: Query) -> Write:
        find(connections, query).stream.close()
        return lambda: text("OK")

    found = {
        "adsz": Page("Connected proxies and what they watch; push=true sends everything again.", read_adsz),
        "connections": Page("Connected proxies.", read_connections),
        "problems": Page("Objects that are not wholly in force, and what proxies refused.", read_problems),
        "syncz": Page("What each proxy was sent and what it acknowledged.", read_syncz),
    }
    if administrate:
        found["force_disconnect"] = Page("Ends the stream of the proxy proxyID.", disconnect)
    return found


def _push_to_all(connections: Connections) -> Write:
    streams = [connection.stream for connection in connections]
    for stream in streams:
        stream.resend()
    return lambda: text(f"Pushed to {len(streams)} servers")


# -- which ------------------------------------------------------------------------------------------------------------


def in_namespace(connections: Iterable[Connection], namespace: str) -> Iterator[Connection]:
    """The connections of proxies of that namespace; all of them when it is empty."""
    return (connection for connection in connections if not namespace or connection.proxy.namespace == namespace)


def find(connections: Iterable[Connection], query: Query) -> Connection:
    """The connection whose id contains the query's proxyID; one that the caller may not see is not there."""
    part = query["proxyID"]
    if not part:
        raise PageError(400, NO_PROXY_ID)
    found = find_part(connections, part, query.namespace)
    if found is None:
        raise PageError(404, ABSENT)
    return found


def find_part(connections: Iterable[Connection], part: str, namespace: str) -> Connection | None:
    """The first connection of the namespace (empty: of any) whose id contains `part`."""
    return next((connection for connection in in_namespace(connections, namespace) if part in connection.id), None)


# -- documents --------------------------------------------------------------------------------------------------------


def format_time(seconds: float) -> str:
    """RFC 3339 with as many digits as it takes; the zero time of Go for 0."""
    if not seconds:
        return _NEVER
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    written = moment.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return f"{written}Z"


def without_empty(entry: dict[str, Any]) -> dict[str, Any]:
    """The entries that say something."""
    return {name: value for name, value in entry.items() if value}


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
    entry = without_empty(entry)
    entry["resources"] = {status.type_url: _type_sync(status) for status in types}
    return entry


def _type_sync(status: TypeStatus) -> dict[str, str]:
    texts = {"sent": status.sent_nonce, "acked": status.acked_nonce, "lastError": status.error}
    return {**without_empty(texts), "sentTime": format_time(status.sent_at)}


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
        "locality": without_empty(locality),
        "watches": {status.type_url: list(status.names) for status in connection.types()},
    }


def problems(findings: Iterable[Finding], connections: Iterable[Connection]) -> dict[str, Any]:
    """What users wrote that is not in force and why, and what proxies refused."""
    return {
        "objects": [_problem(finding) for finding in findings],
        "rejections": [
            without_empty(
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
    return without_empty({**entry, "path": problem.path, "file": origin.file, "line": origin.line})


# -- for proxy-status -------------------------------------------------------------------------------------------------


def is_agent(connection: Connection) -> bool:
    """Whether a mesh's agent is behind it: it tells the configuration of its proxy."""
    return connection.proxy.proxy_config is not None


def client_config(connection: Connection) -> Any:
    """What a proxy was sent and what it acknowledged, as `ClientConfig`."""
    proxy = connection.proxy
    metadata = {
        "CLUSTER_ID": proxy.cluster_id,
        "ISTIO_VERSION": connection.version,
        "NAMESPACE": proxy.namespace,
    }
    config = _status_v3.ClientConfig(node={"id": proxy_id(proxy)})
    config.node.metadata.CopyFrom(protos.struct(metadata))
    for status in sorted(connection.types(), key=lambda status: status.type_url):
        entry = config.generic_xds_configs.add(
            type_url=status.type_url, config_status=status.state.name, last_updated=_timestamp(status.sent_at)
        )
        if status.error:
            entry.error_state.last_update_attempt.CopyFrom(entry.last_updated)
            entry.error_state.details = status.error
    return config


def _timestamp(seconds: float) -> dict[str, int]:
    if not seconds:
        return {"seconds": _NEVER_SECONDS}
    whole, micros = divmod(round(seconds * 1e6), 1_000_000)
    return {"seconds": whole, "nanos": micros * 1000}
