"""Gateways among each other: one certificate on several, one port and host on several.

In: Gateways, pods. Out: IST0138, IST0145. Golden case: gateway/conflicting-servers, where a host that stands twice on a
port of one Gateway makes a conflict with every other Gateway of that port.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from mizzen.analysis import catalogue, objects
from mizzen.analysis import settings as analysis_settings
from mizzen.analysis.findings import Finding, format_labels, full_name, report
from mizzen.api.meta import Key
from mizzen.api.networking.gateway import Gateway, ServerTLSSettings
from mizzen.incremental import Engine, query
from mizzen.model.proxy import Labels
from mizzen.model.workloads import freeze, selects

# -- certificates ---------------------------------------------------------------------------------------------------


class _Certificates(NamedTuple):
    """The certificates of a Gateway, and whom it selects."""

    key: Key
    selector: Labels
    certificates: frozenset[tuple[str, ...]]


@query
def _certificates(db: Engine, key: Key) -> _Certificates:
    found: Gateway | None = db.input(key)
    spec = found.spec if found is not None else None
    servers = spec.servers if spec is not None else ()
    named = frozenset(_certificate(s.tls) for s in servers if s.tls is not None and _certificate(s.tls))
    return _Certificates(key, freeze(spec.selector) if spec is not None else (), named)


def _certificate(tls: ServerTLSSettings) -> tuple[str, ...]:
    """What tells a certificate from others; empty for none."""
    if tls.credential_name:
        return ("secret", tls.credential_name)
    both = tls.server_certificate and tls.private_key
    return ("files", tls.server_certificate, tls.private_key) if both else ()


@query
def _holders(db: Engine) -> dict[tuple[str, ...], tuple[Key, ...]]:
    """The Gateways of each certificate that several have."""
    holders: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key in objects.keys(db, "Gateway"):
        for certificate in _certificates(db, key).certificates:
            holders[certificate].append(key)
    return {certificate: tuple(keys) for certificate, keys in holders.items() if len(keys) > 1}


@query
def check_certificates(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Other Gateways, for the same pods, with a certificate of this one."""
    own = _certificates(db, key)
    alone = analysis_settings.settings(db).scopes_gateways
    shared = {other for each in own.certificates for other in _holders(db).get(each, ()) if other != key}
    findings = []
    for other in sorted(shared):
        is_near = not alone or other.namespace == key.namespace
        if is_near and selects(own.selector, _certificates(db, other).selector):
            names = [full_name(key), full_name(other)]
            findings.append(report(catalogue.GATEWAY_DUPLICATE_CERTIFICATE, key, names))
    return tuple(findings)


# -- hosts ----------------------------------------------------------------------------------------------------------


class _Hosts(NamedTuple):
    """The hosts of one server."""

    gateway: Key
    selector: str
    hosts: tuple[str, ...]


@query
def _gateway_servers(db: Engine, key: Key) -> tuple[tuple[tuple[int, str], _Hosts], ...]:
    """The servers of a Gateway by port number and bind."""
    found: Gateway | None = db.input(key)
    if found is None:
        return ()
    selector = format_labels(found.spec.selector.items())
    return tuple(
        ((server.port.number, server.bind), _Hosts(key, selector, tuple(server.hosts)))
        for server in found.spec.servers
        if server.port is not None
    )


@query
def _places(db: Engine) -> dict[tuple[int, str], tuple[_Hosts, ...]]:
    """All servers of each place that several share."""
    places: dict[tuple[int, str], list[_Hosts]] = defaultdict(list)
    for key in objects.keys(db, "Gateway"):
        for place, server in _gateway_servers(db, key):
            places[place].append(server)
    return {place: tuple(servers) for place, servers in places.items() if len(servers) > 1}


@query
def check_hosts(db: Engine, key: Key) -> tuple[Finding, ...]:
    """Servers whose hosts another Gateway of the same pods serves on the same port."""
    found: Gateway | None = db.input(key)
    if found is None:
        return ()
    return tuple(_conflicts(db, key, found))


def _conflicts(db: Engine, key: Key, found: Gateway) -> Iterator[Finding]:
    pods = set(objects.matching_pods(db, "", freeze(found.spec.selector)))
    selector = format_labels(found.spec.selector.items())
    places = _places(db)
    for index, server in enumerate(found.spec.servers):
        if server.port is None:
            continue
        nearby = places.get((server.port.number, server.bind), ())
        rivals = [each for each in nearby if _share_pods(db, selector, pods, each)]
        names = sorted({full_name(each.gateway) for each in rivals if each.gateway != key})
        served = [host for each in rivals for host in each.hosts]
        if names and any(served.count(host) > 1 for host in server.hosts):
            args = (",".join(names), selector, server.port.number, ",".join(server.hosts))
            yield report(catalogue.CONFLICTING_GATEWAYS, key, *args, path=f"spec.servers[{index}].hosts")


def _share_pods(db: Engine, selector: str, pods: set[Key], other: _Hosts) -> bool:
    if other.selector == selector:
        return True
    if other.selector not in selector and selector not in other.selector:
        return False
    found: Gateway = db.input(other.gateway)
    return bool(pods & set(objects.matching_pods(db, "", freeze(found.spec.selector))))
