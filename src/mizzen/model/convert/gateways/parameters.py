"""Parameters: the ConfigMap by which a Gateway customises what is deployed for it."""

from mizzen.api.gateway_api.listeners import Gateway
from mizzen.api.meta import Key
from mizzen.incremental import Engine
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways.addresses import is_managed

_INVALID = "InvalidParameters"


def parameters_key(gateway: Gateway) -> Key | None:
    """The ConfigMap that a Gateway names; None where it names none, or something else."""
    infrastructure = gateway.spec.infrastructure
    reference = infrastructure.parameters_ref if infrastructure is not None else None
    if reference is None or (reference.group, reference.kind) != ("", "ConfigMap"):
        return None
    return Key("ConfigMap", gateway.metadata.namespace, reference.name)


def parameters_fault(db: Engine, gateway: Gateway) -> Fault | None:
    """What is wrong with the parameters of a Gateway that is deployed."""
    infrastructure = gateway.spec.infrastructure
    reference = infrastructure.parameters_ref if infrastructure is not None else None
    if reference is None or not is_managed(gateway):
        return None
    key = parameters_key(gateway)
    if key is None:
        return Fault(_INVALID, f'unsupported parametersRef: group "{reference.group}" kind "{reference.kind}"')
    if db.input(key) is None:
        return Fault(_INVALID, f"parametersRef ConfigMap {key.namespace}/{key.name} not found")
    return None
