"""Deployments: what the control plane would run for a managed Gateway, as a value; `inject.gateways` writes it out.

In: a Gateway without an address of its own choice, its class, its listeners and those of its ListenerSets, and the
ConfigMaps that customise it: the class's defaults in the root namespace, then the Gateway's own parameters. Out:
`Deployment`; None for a Gateway that somebody else deploys.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

import msgspec

from mizzen.api.gateway_api.listeners import Gateway
from mizzen.api.kube.data import ConfigMap
from mizzen.api.meta import Key
from mizzen.incremental import Engine, Index, attempt, query
from mizzen.model import mesh, objects
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways import addresses
from mizzen.model.convert.gateways.classes import ServiceType
from mizzen.model.convert.gateways.listeners import facts, gateway_listeners, gateway_traits
from mizzen.model.convert.gateways.parameters import parameters_fault, parameters_key

DEFAULTS_FOR_CLASS = "gateway.istio.io/defaults-for-class"
Part = Literal["deployment", "service", "serviceAccount", "horizontalPodAutoscaler", "podDisruptionBudget"]
PARTS: tuple[Part, ...] = get_args(Part)
"""The keys of a ConfigMap that customises Gateways, by the object that each is laid over."""

CONTROLLER_VERSION = "gateway.istio.io/controller-version"
_OURS = (addresses.NAME_OVERRIDE, addresses.SERVICE_ACCOUNT, CONTROLLER_VERSION)
"""Annotations that are told to the control plane, not to what it deploys."""
_RESERVED = "gateway.networking.k8s.io/"
_STATUS_PORT = 15021
_LONGEST_NAME = 63
_SERVICE_TYPES: Mapping[str, ServiceType] = {name: name for name in get_args(ServiceType)}

_defaults = Index(
    "ConfigMap",
    "class of Gateways",
    lambda key, found: ((key[1], name),) if (name := found.metadata.labels.get(DEFAULTS_FOR_CLASS)) else (),
)


class ServicePort(msgspec.Struct, frozen=True, kw_only=True):
    """A port of the Service."""

    name: str
    number: int
    protocol: str
    """Of the application, in lower case."""


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a ConfigMap, still as text."""

    part: Part
    source: Key
    text: str


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """What a managed Gateway wants to have running."""

    gateway: Key
    uid: str
    """Empty where the Gateway comes from a file."""
    class_name: str
    controller: str
    is_waypoint: bool
    name: str
    """Of Deployment and Service."""
    service_account: str
    service_type: ServiceType
    address: str
    """The address that the load balancer is to have; empty for any."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    ports: tuple[ServicePort, ...]
    patches: tuple[Patch, ...] = ()
    """The later over the earlier."""
    fault: Fault | None = None
    """Why nothing can be deployed."""


@query
def gateway_keys(db: Engine) -> tuple[Key, ...]:
    """All Gateways."""
    return objects.of_kind(db, "KubernetesGateway")


@query
def deployment(db: Engine, key: Key) -> Deployment | None:
    """What the Gateway of that key wants."""
    gateway: Gateway | None = db.input(key)
    traits = gateway_traits(db, key)
    if gateway is None or traits is None or traits.service_type is None or not addresses.is_managed(gateway):
        return None
    wished = gateway.metadata.annotations.get(addresses.SERVICE_TYPE, "")
    return Deployment(
        gateway=key,
        uid=gateway.metadata.uid,
        class_name=gateway.spec.gateway_class_name,
        controller=traits.controller,
        is_waypoint=traits.is_waypoint,
        name=addresses.deployment_name(gateway, traits),
        service_account=addresses.service_account_name(gateway, traits),
        service_type=_SERVICE_TYPES.get(wished, traits.service_type),
        address=gateway.spec.addresses[0].value if gateway.spec.addresses else "",
        labels=_labels(gateway),
        annotations=_annotations(gateway),
        ports=tuple(_ports(db, key)),
        patches=tuple(_patches(db, gateway)),
        fault=parameters_fault(db, gateway),
    )


def _labels(gateway: Gateway) -> dict[str, str]:
    """The labels that the Gateway asks for; without any its own."""
    asked = gateway.spec.infrastructure.labels if gateway.spec.infrastructure is not None else {}
    return _unreserved(asked) if asked else dict(gateway.metadata.labels)


def _annotations(gateway: Gateway) -> dict[str, str]:
    asked = gateway.spec.infrastructure.annotations if gateway.spec.infrastructure is not None else {}
    found = _unreserved(asked) if asked else gateway.metadata.annotations
    return {name: value for name, value in found.items() if name not in _OURS}


def _unreserved(asked: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in asked.items() if not name.startswith(_RESERVED)}


# -- ports ------------------------------------------------------------------------------------------------------------


def _ports(db: Engine, key: Key) -> Iterator[ServicePort]:
    """The port of health checks, then one for each port that listeners have, called by the first of these."""
    yield ServicePort(name="status-port", number=_STATUS_PORT, protocol="tcp")
    taken, numbers = {"status-port"}, {_STATUS_PORT}
    for listener in gateway_listeners(db, key):
        one = attempt(facts, db, listener)
        if one is None or not one.port or one.port in numbers:
            continue
        name = _port_name(one.name, one.port, taken)
        taken.add(name)
        numbers.add(one.port)
        yield ServicePort(name=name, number=one.port, protocol=one.protocol.lower())


def _port_name(listener: str, number: int, taken: Iterable[str]) -> str:
    name = listener.replace(".", "-")[:_LONGEST_NAME].rstrip("-")
    if name not in taken:
        return name
    suffix = f"-{number}"
    return name[: _LONGEST_NAME - len(suffix)] + suffix


# -- customisation ----------------------------------------------------------------------------------------------------


def _patches(db: Engine, gateway: Gateway) -> Iterator[Patch]:
    """Those of the class in the root namespace, then those that the Gateway names."""
    root = mesh.root_namespace(db)
    sources = sorted(Key(*key) for key in db.lookup(_defaults, (root, gateway.spec.gateway_class_name)))
    own = parameters_key(gateway)
    for source in (*sources, *(() if own is None else (own,))):
        found: ConfigMap | None = db.input(source)
        data = found.data if found is not None else {}
        for part in PARTS:
            if part in data:
                yield Patch(part=part, source=source, text=data[part])
