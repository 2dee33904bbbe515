"""How backends are spoken to, as DestinationRules for the gateway's proxies alone."""

from collections.abc import Iterable, Iterator
from typing import Any

from mizzen.migrate.findings import Notes
from mizzen.migrate.servers import Backend, Location
from mizzen.migrate.settings import Hash, Upstream
from mizzen.migrate.writing.documents import ISTIO_NETWORKING, Document, Target, document
from mizzen.model.names import service_host

_SECOND = "another Ingress speaks to {service}:{port} in another way; the oldest one's way holds"


def destination_rules(locations: Iterable[Location], target: Target, notes: Notes) -> Iterator[Document]:
    """One for each Service that somebody wants to be spoken to in a way of its own."""
    ways: dict[tuple[str, str], dict[int, Upstream]] = {}
    for location in locations:
        for backend in _backends(location):
            ports = ways.setdefault((backend.namespace, backend.service), {})
            first = ports.setdefault(backend.port, location.settings.upstream)
            if first != location.settings.upstream:
                how = _SECOND.format(service=backend.service, port=backend.port)
                notes.add(location.ingress, "backend", "approximated", how)
    for (namespace, service), ports in sorted(ways.items()):
        levels = [level for port, upstream in sorted(ports.items()) if len(level := _level(port, upstream)) > 1]
        if levels:
            spec = {
                "host": service_host(service, namespace, target.domain),
                "exportTo": ["."],
                "workloadSelector": {"matchLabels": dict(target.labels)},
                "trafficPolicy": {"portLevelSettings": levels},
            }
            yield document(ISTIO_NETWORKING, "DestinationRule", target.namespace, f"{service}.{namespace}", spec)


def _backends(location: Location) -> Iterator[Backend]:
    if location.backend is not None:
        yield location.backend
    if location.canary is not None:
        yield location.canary[1]


def _level(port: int, upstream: Upstream) -> dict[str, Any]:
    level: dict[str, Any] = {"port": {"number": port}}
    pool: dict[str, Any] = {}
    if upstream.connect_seconds:
        pool["tcp"] = {"connectTimeout": f"{upstream.connect_seconds}s"}
    if upstream.http2:
        pool["http"] = {"h2UpgradePolicy": "UPGRADE"}
    if pool:
        level["connectionPool"] = pool
    if upstream.hash is not None:
        level["loadBalancer"] = {"consistentHash": _hash(upstream.hash)}
    elif upstream.balancer:
        level["loadBalancer"] = {"simple": upstream.balancer}
    if upstream.tls:
        level["tls"] = _tls(upstream)
    return level


def _hash(by: Hash) -> dict[str, Any]:
    if by.source_address:
        return {"useSourceIp": True}
    if by.header:
        return {"httpHeaderName": by.header}
    if by.query:
        return {"httpQueryParameterName": by.query}
    cookie: dict[str, Any] = {"name": by.cookie}
    if by.cookie_path:
        cookie["path"] = by.cookie_path
    if by.cookie_seconds is not None:
        cookie["ttl"] = f"{by.cookie_seconds}s"
    return {"httpCookie": cookie}


def _tls(upstream: Upstream) -> dict[str, Any]:
    """TLS without verification, as nginx does by default, or with the Secret's roots and certificate."""
    tls: dict[str, Any] = {"mode": "SIMPLE"}
    if upstream.credential is not None:
        tls = {"mode": "MUTUAL", "credentialName": upstream.credential[1]}
    if not upstream.verified:
        tls["insecureSkipVerify"] = True
    if upstream.server_name:
        tls["sni"] = upstream.server_name
        if upstream.verified:
            tls["subjectAltNames"] = [upstream.server_name]
    return tls
