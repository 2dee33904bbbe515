"""Statuses of BackendTLSPolicy: one for each target, then one for each Gateway whose routes lead there.

In: what policies ask for, which of them count, and routes by their backends. Out: statuses as values.
Golden case: gateway-api/backend-tls.
"""

from collections.abc import Iterator

from mizzen.api.gateway_api.policies import BackendTLSPolicy
from mizzen.api.gateway_api.references import GATEWAY_GROUP, LocalPolicyTargetReference
from mizzen.api.gateway_api.statuses import Condition, PolicyAncestorStatus, PolicyStatus, StatusReference
from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways.classes import GATEWAY_CONTROLLER, MESH_CONTROLLER
from mizzen.model.convert.gateways.listeners import gateway_traits
from mizzen.model.convert.policies import IGNORED, Wanted, target_fault, target_key, wanted, winners
from mizzen.model.convert.routes.heads import host_backend, parent_key, route_head, routes_of_backend
from mizzen.model.convert.routes.services import parent_hosts
from mizzen.model.convert.status.conditions import ACCEPTED, RESOLVED_REFS, judge

_MOST_ANCESTORS = 16
_VALID = "Configuration is valid"


@query
def policy_status(db: Engine, key: Key) -> PolicyStatus | None:
    """The status of a BackendTLSPolicy."""
    policy: BackendTLSPolicy | None = db.input(key)
    found = wanted(db, key)
    if policy is None or found is None:
        return None
    ancestors: list[PolicyAncestorStatus] = []
    gateways: dict[Key, Fault | None] = {}  # the first fault of the targets that routes of a Gateway lead to
    for reference in policy.spec.target_refs:
        target = target_key(reference, key.namespace)
        fault = _target_fault(db, key, found, reference, target)
        ancestors.append(_ancestor(_target_reference(reference), MESH_CONTROLLER, _conditions(found, fault)))
        if target is not None and target_fault(db, target, reference.section_name) is None:
            for gateway in _gateways(db, target):
                gateways[gateway] = gateways.get(gateway) or fault
    for gateway in sorted(gateways):
        named = StatusReference(group=GATEWAY_GROUP, kind="Gateway", name=gateway.name)
        ancestors.append(_ancestor(named, GATEWAY_CONTROLLER, _conditions(found, gateways[gateway])))
    return PolicyStatus(ancestors=tuple(ancestors[:_MOST_ANCESTORS]))


def _ancestor(reference: StatusReference, controller: str, conditions: tuple[Condition, ...]) -> PolicyAncestorStatus:
    return PolicyAncestorStatus(ancestor_ref=reference, controller_name=controller, conditions=conditions)


def _target_reference(reference: LocalPolicyTargetReference) -> StatusReference:
    return StatusReference(
        group=reference.group, kind=reference.kind, name=reference.name, section_name=reference.section_name
    )


def _conditions(found: Wanted, fault: Fault | None) -> tuple[Condition, ...]:
    return (
        judge(ACCEPTED, fault, f"{_VALID}{found.note}"),
        judge(RESOLVED_REFS, found.reference_fault, _VALID),
    )


def _target_fault(
    db: Engine, key: Key, found: Wanted, reference: LocalPolicyTargetReference, target: Key | None
) -> Fault | None:
    """Why the policy is not in force for one of its targets."""
    if target is None:
        return Fault("TargetNotFound", f"targetRefs invalid: unsupported reference kind: {reference.kind}")
    bad = target_fault(db, target, reference.section_name)
    if bad is not None:
        return Fault("TargetNotFound", f"targetRefs invalid: {bad}")
    if found.is_ignored:
        return Fault("IgnoredByIstio", f"Ignored because of the annotation {IGNORED}")
    winner = winners(db, target).get(reference.section_name)
    if winner is not None and winner != key:
        message = f'Conflicts with BackendTLSPolicy "{winner.name}" targeting the same backend'
        return Fault("Conflicted", message)
    return found.fault


def _gateways(db: Engine, target: Key) -> Iterator[Key]:
    """The Gateways of ours that routes to a target name as parents."""
    backends = [host_backend(host) for host in parent_hosts(db, target)] if target.kind == "ServiceEntry" else [target]
    for route in (route for backend in backends for route in routes_of_backend(db, backend)):
        head = route_head(db, route)
        for reference in head.parents if head is not None else ():
            parent = parent_key(reference, route.namespace)
            if parent is not None and parent.kind == "KubernetesGateway" and gateway_traits(db, parent) is not None:
                yield parent
