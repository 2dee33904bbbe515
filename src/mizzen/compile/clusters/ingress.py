"""Inbound clusters of a Sidecar's ingress listeners, which stand in for those of the workload's services.

In: the Sidecar's listeners, the proxy's addresses, the services that its workload serves.
Out: a cluster for each listener. Golden case: networking/sidecar-ingress.
"""

from typing import Any

import msgspec

from mizzen.api.networking.sidecar import IstioIngressListener
from mizzen.api.networking.traffic_policy import ConnectionPoolSettings, TrafficPolicy
from mizzen.compile.clusters.draft import Draft
from mizzen.compile.clusters.inbound import apply_loopback, apply_policy, describe, fixed_endpoint
from mizzen.compile.context import ClientTraits
from mizzen.compile.resource import Resource, encode_resource
from mizzen.compile.values import socket_address
from mizzen.incremental import Engine, query
from mizzen.model import destination_rules, names, scope
from mizzen.model.destination_rules import port_policy
from mizzen.model.protocols import parse_protocol
from mizzen.model.scope import ScopeId
from mizzen.model.targets import ServiceTarget

_UNIX = "unix://"


class Ingress(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A proxy as its ingress clusters depend on it."""

    scope: ScopeId
    addresses: tuple[str, ...]


@query
def ingress_clusters(
    db: Engine, client: ClientTraits, ingress: Ingress, targets: tuple[ServiceTarget, ...]
) -> tuple[Resource, ...]:
    """A cluster for each ingress listener of the scope's Sidecar; one whose endpoint cannot be read has none."""
    sidecar = scope.sidecar(db, ingress.scope)
    if sidecar is None:
        return ()
    default = sidecar.spec.inbound_connection_pool
    built = (_build(db, client, ingress, listener, targets, default) for listener in sidecar.spec.ingress)
    return tuple(resource for resource in built if resource is not None)


def _build(
    db: Engine,
    client: ClientTraits,
    ingress: Ingress,
    listener: IstioIngressListener,
    targets: tuple[ServiceTarget, ...],
    default: ConnectionPoolSettings | None,
) -> Resource | None:
    if listener.port is None:
        return None
    number = listener.port.number
    name = names.subset_key(names.INBOUND, number, "", "")
    draft = Draft(name)
    draft.set_default_thresholds()
    if not _apply_endpoint(db, draft, client, ingress, listener.default_endpoint):
        return None
    same = tuple(t for t in targets if t.target_port == number)
    policy = TrafficPolicy()
    if same:
        host, namespace = same[0].service.host, same[0].service.namespace
        rule = destination_rules.destination_rule(db, ingress.scope.namespace, host, namespace, ())
        if rule is not None and rule.traffic_policy is not None:
            draft.istio_metadata["config"] = rule.config_path
            policy = port_policy(rule.traffic_policy, number) or policy
        describe(draft, same[0], same)
    pool = listener.connection_pool or default
    apply_policy(db, draft, client, policy, pool, parse_protocol(listener.port.protocol))
    return encode_resource(name, draft.message(client.dialect))


def _apply_endpoint(db: Engine, draft: Draft, client: ClientTraits, ingress: Ingress, written: str) -> bool:
    """Where the application listens; False for an endpoint without a readable port."""
    if not written:
        apply_loopback(db, draft, client)
        return True
    if written.startswith(_UNIX):
        fixed_endpoint(draft, {"pipe": {"path": written.removeprefix(_UNIX)}})
        _bind(db, draft, client)
        return True
    host, colon, port = written.rpartition(":")
    if not colon or not port.isdigit():
        return False
    address, local = _address(host, client, ingress)
    fixed_endpoint(draft, socket_address(address, int(port)))
    if not local:
        _bind(db, draft, client)
    return True


def _address(host: str, client: ClientTraits, ingress: Ingress) -> tuple[str, bool]:
    """The address behind the written one, and whether it is the loopback's; families that are missing fall to it."""
    by_family = {":" in a: a for a in reversed(ingress.addresses)}
    local = "::1" if client.families == "IPv6" else "127.0.0.1"
    if host == "0.0.0.0" and False in by_family:
        return by_family[False], False
    if host == "[::]":
        return (by_family[True], False) if True in by_family else ("::1", True)
    if host == "[::1]" and client.families != "IPv4":
        return "::1", True
    return local, True


def _bind(db: Engine, draft: Draft, client: ClientTraits) -> None:
    kept: dict[str, Any] = {k: draft.fields[k] for k in ("type", "load_assignment")}
    apply_loopback(db, draft, client)
    draft.fields.pop("cleanup_interval", None)
    draft.fields.pop("lb_policy", None)
    draft.fields.update(kept)
