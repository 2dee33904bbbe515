"""Generated Gateways: an Istio Gateway for each listener that is served, with exactly one server.

In: the facts of a Gateway's listeners and the Services that it is bound to. Out: `GeneratedGateway` values by Gateway
and by namespace: a Gateway is served by proxies of its own namespace only, so nobody else looks at it.
Golden cases: gateway-api/tls-listeners (names and order), gateway-api/listener-sets, gateway-api/managed-gateway.
"""

import msgspec

from mizzen.api.gateway_api.listeners import Gateway as KubernetesGateway
from mizzen.api.gateway_api.listeners import ListenerSet
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.networking.gateway import Gateway, GatewaySpec, Port, Server
from mizzen.incremental import Engine, attempt, query
from mizzen.model import objects
from mizzen.model.convert import names
from mizzen.model.convert.gateways import addresses
from mizzen.model.convert.gateways.addresses import Bound
from mizzen.model.convert.gateways.listeners import Facts, facts, gateway_listeners, gateway_traits

PARENTS = "internal.istio.io/parents"
_SEMANTICS = "internal.istio.io/gateway-semantics"
_SERVICES = "internal.istio.io/gateway-service"
_SERVICE_ACCOUNT = "internal.istio.io/service-account-name"


class GeneratedGateway(msgspec.Struct, frozen=True, kw_only=True):
    """An Istio Gateway that stands for a listener."""

    gateway: Gateway
    services: tuple[str, ...]
    """The hosts of the Services whose endpoints serve it."""
    service_account: str = ""
    """Whose proxies may have its certificates; empty for any of the namespace."""


@query
def namespace_gateways(db: Engine, namespace: str) -> tuple[GeneratedGateway, ...]:
    """What the Gateways of a namespace become, in order of precedence."""
    found = [
        generated
        for key in objects.in_namespace(db, "KubernetesGateway", namespace)
        for generated in attempt(generated_gateways, db, key) or ()
    ]
    return tuple(sorted(found, key=lambda g: g.gateway.metadata.age_order))


@query
def generated_gateways(db: Engine, key: Key) -> tuple[GeneratedGateway, ...]:
    """What one Gateway becomes, with the listeners of its ListenerSets."""
    traits = gateway_traits(db, key)
    bound = addresses.gateway_bound(db, key, traits) if traits is not None else None
    if bound is None or bound.is_hopeless:
        return ()
    known = (attempt(facts, db, listener) for listener in gateway_listeners(db, key))
    return tuple(_generate(db, one, bound) for one in known if one is not None and one.is_served)


def _generate(db: Engine, one: Facts, bound: Bound) -> GeneratedGateway:
    owner = one.id.owner
    found: KubernetesGateway | ListenerSet = db.input(owner)
    kind = "Gateway" if owner.kind == "KubernetesGateway" else owner.kind
    meta = ObjectMeta(
        name=names.gateway_name(owner.name, one.name),
        namespace=owner.namespace,
        creation_timestamp=found.metadata.creation_timestamp,
        annotations={
            PARENTS: f"{kind}/{owner.name}/{one.name}.{owner.namespace}",
            _SEMANTICS: "gateway",
            _SERVICES: ",".join(bound.services),
            _SERVICE_ACCOUNT: bound.service_account,
        },
    )
    server = Server(
        port=Port(number=one.port, protocol=one.protocol, name="default"),
        hosts=tuple(f"{namespace}/{one.hostname or '*'}" for namespace in one.namespaces or ("~",)),
        tls=one.tls,
    )
    return GeneratedGateway(
        gateway=Gateway(metadata=meta, spec=GatewaySpec(servers=(server,))),
        services=bound.services,
        service_account=bound.service_account,
    )
