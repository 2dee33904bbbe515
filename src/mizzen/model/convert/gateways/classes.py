"""Classes: what a GatewayClass says about the Gateways that name it.

In: GatewayClasses. Out: `Traits` by the name of a class; None for one that another controller serves. The classes that
the control plane would create count as there, until an object of their name says otherwise.
"""

from typing import Literal

import msgspec

from mizzen.api.gateway_api.listeners import GatewayClass
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query

GATEWAY_CONTROLLER = "istio.io/gateway-controller"
MESH_CONTROLLER = "istio.io/mesh-controller"
UNMANAGED_CONTROLLER = "istio.io/unmanaged-gateway"

ServiceType = Literal["LoadBalancer", "ClusterIP", "NodePort"]


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller of a class does with its Gateways."""

    controller: str
    service_type: ServiceType | None = None
    """The Service made for a Gateway; None where nothing is deployed."""
    has_suffix: bool = False
    """Whether what is made for a Gateway is called by its name and class, not by its name alone."""
    reports_ip: bool = False
    """Whether the cluster address is reported beside the host name."""
    takes_listener_sets: bool = False
    is_remote: bool = False
    """Whether it only stands for a Gateway elsewhere."""
    is_waypoint: bool = False


_CONTROLLERS = {
    traits.controller: traits
    for traits in (
        Traits(controller=GATEWAY_CONTROLLER, service_type="LoadBalancer", has_suffix=True, takes_listener_sets=True),
        Traits(controller=MESH_CONTROLLER, service_type="ClusterIP", reports_ip=True, is_waypoint=True),
        Traits(controller=UNMANAGED_CONTROLLER, is_remote=True),
    )
}
_BUILT_IN = {
    "istio": GATEWAY_CONTROLLER,
    "istio-waypoint": MESH_CONTROLLER,
    "istio-remote": UNMANAGED_CONTROLLER,
}


@query
def class_traits(db: Engine, name: str) -> Traits | None:
    """What the class means; None where it is another controller's or does not exist."""
    found: GatewayClass | None = db.input(Key("GatewayClass", "", name))
    controller = found.spec.controller_name if found is not None else _BUILT_IN.get(name, "")
    return _CONTROLLERS.get(controller)
