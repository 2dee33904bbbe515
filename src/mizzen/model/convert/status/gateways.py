"""Statuses of GatewayClass, Gateway and ListenerSet.

In: classes, the facts of listeners, addresses and what they reach, the routes that attach. Out: statuses as values.
Golden cases: gateway-api/allowed-routes, invalid-references, listener-sets, managed-gateway, tls-listeners.
"""

import ipaddress
from collections.abc import Iterable, Iterator

from mizzen.api.gateway_api.listeners import Gateway, GatewayClass
from mizzen.api.gateway_api.references import GATEWAY_GROUP
from mizzen.api.gateway_api.statuses import (
    Condition,
    GatewayClassStatus,
    GatewayStatus,
    ListenerSetStatus,
    ListenerStatus,
    StatusAddress,
    SupportedKind,
)
from mizzen.api.meta import Key
from mizzen.incremental import Engine, attempt, query
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways import addresses, tls
from mizzen.model.convert.gateways.addresses import Assignment, Bound
from mizzen.model.convert.gateways.classes import Traits, class_traits
from mizzen.model.convert.gateways.conflicts import ListenerId
from mizzen.model.convert.gateways.listeners import (
    Facts,
    facts,
    gateway_listeners,
    gateway_traits,
    owned_listeners,
)
from mizzen.model.convert.gateways.parameters import parameters_fault
from mizzen.model.convert.gateways.sets import admission, admitted_sets
from mizzen.model.convert.routes.parents import listener_routes
from mizzen.model.convert.status.conditions import (
    ACCEPTED,
    CONFLICTED,
    INSECURE_FRONTEND,
    PROGRAMMED,
    RESOLVED_REFS,
    fails,
    holds,
    judge,
    pending,
)

_ADDRESS_TYPE = "networking.istio.io/address-type"
_OK = "No errors found"
_ALL_RESOLVED = "All references resolved"
_LISTENERS_NOT_VALID = "ListenersNotValid"
_UNREADABLE_TRUST = (tls.NOT_PERMITTED, tls.INVALID_AUTHORITY, tls.INVALID_AUTHORITY_KIND)
_LOST = "Listener has a conflict with another listener attached to the same Gateway"


@query
def gateway_class_status(db: Engine, key: Key) -> GatewayClassStatus | None:
    """The status of a GatewayClass."""
    found: GatewayClass | None = db.input(key)
    if found is None:
        return None
    if class_traits(db, key.name) is None:
        return GatewayClassStatus(conditions=pending(ACCEPTED))
    return GatewayClassStatus(conditions=(holds(ACCEPTED, "Handled by Istio controller"),))


# -- Gateway ----------------------------------------------------------------------------------------------------------


@query
def gateway_status(db: Engine, key: Key) -> GatewayStatus | None:
    """The status of a Gateway."""
    gateway: Gateway | None = db.input(key)
    if gateway is None:
        return None
    traits = gateway_traits(db, key)
    bound = addresses.gateway_bound(db, key, traits) if traits is not None else None
    if traits is None or bound is None:
        return GatewayStatus(conditions=pending(ACCEPTED, PROGRAMMED))
    if traits.is_remote:
        return _remote_status(gateway)
    own = [] if bound.is_hopeless else _known(db, owned_listeners(db, key))
    every = [] if bound.is_hopeless else _known(db, gateway_listeners(db, key))
    reached = addresses.assign(db, key.namespace, bound.services, _ports(every))
    fault = bound.fault or parameters_fault(db, gateway)
    return GatewayStatus(
        addresses=tuple(_reported(gateway, traits, reached)),
        conditions=(
            _accepted(fault, own),
            _programmed(reached),
            *_insecure(gateway),
            judge(RESOLVED_REFS, _client_certificate_fault(db, gateway, key), _ALL_RESOLVED),
        ),
        listeners=tuple(_listener_status(db, one) for one in own),
        attached_listener_sets=len(admitted_sets(db, key)) if gateway.spec.allowed_listeners is not None else None,
    )


def _known(db: Engine, listeners: Iterable[ListenerId]) -> list[Facts]:
    found = (attempt(facts, db, listener) for listener in listeners)
    return [one for one in found if one is not None]


def _ports(listeners: Iterable[Facts]) -> tuple[int, ...]:
    return tuple(sorted({one.port for one in listeners if not one.conflict}))


def _remote_status(gateway: Gateway) -> GatewayStatus:
    return GatewayStatus(
        addresses=tuple(StatusAddress(type=a.type, value=a.value) for a in gateway.spec.addresses),
        conditions=(
            holds(ACCEPTED, "Resource accepted"),
            holds(PROGRAMMED, "This Gateway is remote; Istio will not program it"),
        ),
    )


def _accepted(fault: Fault | None, own: list[Facts]) -> Condition:
    """A fault of the Gateway itself goes before those of its listeners; it is accepted while one of these is valid."""
    if fault is not None or all(one.is_valid for one in own):
        return judge(ACCEPTED, fault, "Resource accepted")
    if any(one.is_valid for one in own):
        return holds(ACCEPTED, "One or more of the Gateway's listeners are invalid", reason=_LISTENERS_NOT_VALID)
    return fails(ACCEPTED, Fault(_LISTENERS_NOT_VALID, "None of the Gateway's listeners are valid"))


def _programmed(reached: Assignment) -> Condition:
    assigned = _joined(reached.internal)
    if not reached.services:
        return fails(PROGRAMMED, Fault("UnsupportedAddress", "Failed to assign to any requested addresses"))
    if not reached.warnings:
        to = f", assigned to service(s) {assigned}" if assigned else ""
        return holds(PROGRAMMED, f"Resource programmed{to}")
    warnings = "; ".join(reached.warnings)
    message = (
        f"Assigned to service(s) {assigned}, but failed to assign to all requested addresses: {warnings}"
        if assigned
        else f"Failed to assign to any requested addresses: {warnings}"
    )
    return fails(PROGRAMMED, Fault("AddressNotAssigned" if reached.is_usable else "AddressNotUsable", message))


def _joined(names: tuple[str, ...]) -> str:
    """The names as one would say them."""
    if len(names) < 3:
        return " and ".join(names)
    return f"{', '.join(names[:-1])}, and {names[-1]}"


def _insecure(gateway: Gateway) -> Iterator[Condition]:
    """That clients without a valid certificate are let in, wherever that was asked for."""
    frontend = gateway.spec.tls.frontend if gateway.spec.tls is not None else None
    if frontend is None:
        return
    modes = (
        settings.validation.mode
        for settings in (frontend.default, *(entry.tls for entry in frontend.per_port))
        if settings is not None and settings.validation is not None
    )
    if "AllowInsecureFallback" in modes:
        message = "Gateway is operating in AllowInsecureFallback mode for frontend validation"
        yield holds(INSECURE_FRONTEND, message, reason="ConfigurationChanged")


def _client_certificate_fault(db: Engine, gateway: Gateway, key: Key) -> Fault | None:
    """What is wrong with the certificate that the Gateway is to show to backends."""
    backend = gateway.spec.tls.backend if gateway.spec.tls is not None else None
    if backend is None or backend.client_certificate_ref is None:
        return None
    fault = tls.secret_fault(db, key, backend.client_certificate_ref)
    if fault is None or fault.reason == tls.NOT_PERMITTED:
        return fault
    return Fault("InvalidClientCertificateRef", fault.message)


def _reported(gateway: Gateway, traits: Traits, reached: Assignment) -> Iterator[StatusAddress]:
    """The addresses of load balancers; without any, those within the cluster that are not waiting for one."""
    wanted = gateway.metadata.annotations.get(_ADDRESS_TYPE, "" if traits.reports_ip else "Hostname")
    found: dict[str, None] = dict.fromkeys(reached.external)
    if not found:
        if wanted != "Hostname":
            found.update(dict.fromkeys(reached.internal_ips))
        if wanted != "IPAddress":
            hosts = (text.rpartition(":")[0] for text in reached.internal)
            found.update(dict.fromkeys(host for host in hosts if host not in reached.pending))
    return (StatusAddress(type=_address_type(value), value=value) for value in found)


def _address_type(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return "Hostname"
    return "IPAddress"


# -- ListenerSet ------------------------------------------------------------------------------------------------------


@query
def listener_set_status(db: Engine, key: Key) -> ListenerSetStatus | None:
    """The status of a ListenerSet."""
    if db.input(key) is None:
        return None
    admitted = admission(db, key)
    if admitted is None:
        return ListenerSetStatus(conditions=pending(ACCEPTED, PROGRAMMED))
    if admitted.fault is not None:
        conditions = (fails(ACCEPTED, admitted.fault), fails(PROGRAMMED, admitted.fault))
        return ListenerSetStatus(conditions=conditions)
    traits = gateway_traits(db, admitted.gateway)
    bound = addresses.gateway_bound(db, admitted.gateway, traits) if traits is not None else None
    if bound is None:
        return ListenerSetStatus(conditions=pending(ACCEPTED, PROGRAMMED))
    return _admitted_status(db, key, admitted.gateway, bound)


def _admitted_status(db: Engine, key: Key, gateway: Key, bound: Bound) -> ListenerSetStatus:
    own = [] if bound.is_hopeless else _known(db, owned_listeners(db, key))
    reached = addresses.assign(db, gateway.namespace, bound.services, _ports(own))
    accepted = judge(ACCEPTED, None, "Resource accepted")
    programmed = _programmed(reached)
    if not any(one.is_valid for one in own):
        none_valid = Fault(_LISTENERS_NOT_VALID, "None of the ListenerSet's listeners are valid")
        accepted, programmed = fails(ACCEPTED, none_valid), fails(PROGRAMMED, none_valid)
    if bound.fault is not None:
        accepted = fails(ACCEPTED, Fault(bound.fault.reason, f"Parent not accepted: {bound.fault.message}"))
    return ListenerSetStatus(
        conditions=(accepted, programmed), listeners=tuple(_listener_status(db, one) for one in own)
    )


# -- listeners of both ------------------------------------------------------------------------------------------------


def _listener_status(db: Engine, one: Facts) -> ListenerStatus:
    return ListenerStatus(
        name=one.name,
        supported_kinds=tuple(SupportedKind(group=GATEWAY_GROUP, kind=kind) for kind in one.kinds),
        attached_routes=len(attempt(listener_routes, db, one.id) or ()),
        conditions=tuple(_listener_conditions(one)),
    )


def _listener_conditions(one: Facts) -> Iterator[Condition]:
    bad_kinds = Fault("InvalidRouteKinds", "Invalid route kinds") if one.has_unknown_kinds else None
    if one.conflict:
        lost = Fault(one.conflict, _LOST)
        yield fails(ACCEPTED, lost)
        yield holds(CONFLICTED, _LOST, reason=one.conflict)
        yield fails(PROGRAMMED, lost)
        if bad_kinds is not None:
            yield fails(RESOLVED_REFS, bad_kinds)
        return
    untrusted = one.tls_fault is not None and one.tls_fault.reason in _UNREADABLE_TRUST
    refused = Fault("NoValidCACertificate", one.tls_fault.message) if untrusted and one.tls_fault else None
    yield judge(ACCEPTED, one.protocol_fault or refused, _OK)
    yield fails(CONFLICTED, Fault("NoConflicts", _OK))
    yield judge(PROGRAMMED, Fault("Invalid", "Bad TLS configuration") if one.tls_fault is not None else None, _OK)
    yield judge(RESOLVED_REFS, bad_kinds or one.tls_fault, _OK)
