"""BackendTLSPolicy: TLS towards backends, as DestinationRules generated beside those that users write.

In: BackendTLSPolicies, their targets, the ConfigMaps with trusted roots. Out: for a policy what it asks for and what is
wrong with it; for a target which policy counts (the oldest, for each port that it names); for a host the
DestinationRule. A policy whose roots cannot be read asks for roots that never come: its traffic fails, not opens.
Golden case: gateway-api/backend-tls.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from mizzen.api.gateway_api.policies import BackendTLSPolicy, BackendTLSPolicyValidation
from mizzen.api.gateway_api.references import LocalPolicyTargetReference
from mizzen.api.kube.services import Service as KubeService
from mizzen.api.meta import Key, ObjectMeta
from mizzen.api.networking.destination import PortSelector
from mizzen.api.networking.destination_rule import DestinationRule, DestinationRuleSpec
from mizzen.api.networking.service_entry import ServiceEntry
from mizzen.api.networking.traffic_policy import ClientTLSSettings, PortTrafficPolicy, TrafficPolicy
from mizzen.incremental import Engine, Index, attempt, query
from mizzen.model import objects
from mizzen.model.convert import certificates, names
from mizzen.model.convert.faults import Fault
from mizzen.model.convert.gateways.objects import PARENTS
from mizzen.model.services import services_of_host

IGNORED = "istio.io/ignore-policy-attachment"
_SYSTEM = "System"
_INVALID_CREDENTIAL = "invalid://"
_TARGETS = {("", "Service"): "Service", ("networking.istio.io", "ServiceEntry"): "ServiceEntry"}


def target_key(reference: LocalPolicyTargetReference, namespace: str) -> Key | None:
    """The object that a policy of this namespace targets; None where it is of no kind that policies apply to."""
    kind = _TARGETS.get((reference.group, reference.kind))
    return Key(kind, namespace, reference.name) if kind is not None else None


def _target_keys(key: tuple[str, ...], policy: BackendTLSPolicy) -> Iterable[Key]:
    found = (target_key(reference, key[1]) for reference in policy.spec.target_refs)
    return [target for target in found if target is not None]


_by_target = Index("BackendTLSPolicy", "target", _target_keys)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy asks for, whatever its targets."""

    created: float
    sections: tuple[tuple[Key, str], ...]
    """The targets, each with the name of a port or nothing."""
    tls: ClientTLSSettings
    is_ignored: bool = False
    note: str = ""
    """A remark on what was accepted."""
    fault: Fault | None = None
    """Why the policy as a whole is not accepted."""
    reference_fault: Fault | None = None
    """What is wrong with its reference to trusted roots."""


@query
def wanted(db: Engine, key: Key) -> Wanted | None:
    """What a policy asks for."""
    policy: BackendTLSPolicy | None = db.input(key)
    if policy is None:
        return None
    validation = policy.spec.validation or BackendTLSPolicyValidation()
    roots = _roots(db, validation, key.namespace)
    sections = ((target_key(r, key.namespace), r.section_name) for r in policy.spec.target_refs)
    return Wanted(
        created=policy.metadata.age_order[0],
        sections=tuple((target, section) for target, section in sections if target is not None),
        tls=ClientTLSSettings(
            mode="SIMPLE",
            sni=validation.hostname,
            subject_alt_names=tuple(
                name.hostname if name.type == "Hostname" else name.uri for name in validation.subject_alt_names
            ),
            credential_name=roots.credential,
        ),
        is_ignored=policy.metadata.annotations.get(IGNORED) == "true",
        note=roots.note,
        fault=roots.fault,
        reference_fault=roots.reference_fault,
    )


class _Roots(NamedTuple):
    credential: str = ""
    note: str = ""
    fault: Fault | None = None
    reference_fault: Fault | None = None


def _roots(db: Engine, validation: BackendTLSPolicyValidation, namespace: str) -> _Roots:
    """The credential of trusted roots; none means those of the system."""
    known = validation.well_known_ca_certificates
    if known and known != _SYSTEM:
        return _Roots(fault=Fault("Invalid", f"Unknown wellKnownCACertificates: {known}"))
    if known or not validation.ca_certificate_refs:
        return _Roots()
    reference, *more = validation.ca_certificate_refs
    note = "; warning: only the first caCertificateRefs will be used" if more else ""
    if (reference.group, reference.kind) != ("", "ConfigMap"):
        message = f"unsupported reference kind: {reference.kind}"
        return _Roots(
            _INVALID_CREDENTIAL,
            fault=Fault("NoValidCACertificate", f"Certificate reference invalid: {message}"),
            reference_fault=Fault("InvalidKind", f"Certificate reference invalid: {message}"),
        )
    key = Key("ConfigMap", namespace, reference.name)
    bad = certificates.authority_fault(db, key)
    if bad is None:
        return _Roots(f"configmap://{namespace}/{reference.name}", note=note)
    what = "invalid" if db.input(key) is not None else "reference not found"
    return _Roots(
        _INVALID_CREDENTIAL,
        fault=Fault("NoValidCACertificate", f"Certificate reference invalid: {bad}"),
        reference_fault=Fault("InvalidCACertificateRef", f"Certificate {what}: {bad}"),
    )


@query
def target_fault(db: Engine, target: Key, section: str) -> str | None:
    """What is wrong with a target: that it does not exist, or has no such port."""
    found: KubeService | ServiceEntry | None = db.input(target)
    if found is None:
        return f"reference {target.namespace}/{target.name} (of kind {target.kind}) not found"
    if section and all(port.name != section for port in found.spec.ports):
        return f'sectionName "{section}" does not exist in {target.kind} {target.namespace}/{target.name}'
    return None


@query
def winners(db: Engine, target: Key) -> dict[str, Key]:
    """The policy that counts for a target, by the name of a port (empty: for the others)."""
    candidates = []
    for key in (Key(*key) for key in db.lookup(_by_target, target)):
        found = attempt(wanted, db, key)
        if found is not None and not found.is_ignored:
            sections = (section for named, section in found.sections if named == target)
            candidates += [((found.created, key.namespace, key.name), key, section) for section in sections]
    counting: dict[str, Key] = {}
    for _, key, section in sorted(candidates):
        if target_fault(db, target, section) is None:
            counting.setdefault(section, key)
    return counting


# -- DestinationRules -------------------------------------------------------------------------------------------------


def backend_rule(db: Engine, namespace: str, host: str) -> DestinationRule | None:
    """The generated rule of a service's host, in the service's own namespace; most namespaces hold no policy at all."""
    return _backend_rule(db, namespace, host) if objects.in_namespace(db, "BackendTLSPolicy", namespace) else None


@query
def _backend_rule(db: Engine, namespace: str, host: str) -> DestinationRule | None:
    for service in services_of_host(db, host):
        target = service.id.source
        counting = winners(db, target) if target.namespace == namespace else {}
        if not counting:
            continue
        name = (
            names.service_rule_name(target.name)
            if target.kind == "Service"
            else names.entry_rule_name(target.name, host)
        )
        numbers = {port.name: port.number for port in service.ports}
        levels = tuple(
            PortTrafficPolicy(port=PortSelector(number=numbers[section]), tls=_tls(db, key))
            for section, key in sorted(counting.items())
            if section in numbers
        )
        policy = TrafficPolicy(tls=_tls(db, counting[""]) if "" in counting else None, port_level_settings=levels)
        parents = dict.fromkeys(f"BackendTLSPolicy/{key.namespace}.{key.name}" for key in counting.values())
        meta = ObjectMeta(name=name, namespace=namespace, annotations={PARENTS: ",".join(parents)})
        return DestinationRule(metadata=meta, spec=DestinationRuleSpec(host=host, traffic_policy=policy))
    return None


def _tls(db: Engine, key: Key) -> ClientTLSSettings | None:
    found = wanted(db, key)
    return found.tls if found is not None else None


def filled_policy(written: TrafficPolicy | None, generated: TrafficPolicy | None) -> TrafficPolicy | None:
    """A user's policy with the TLS of a generated one wherever it has none of its own, port by port."""
    if written is None or generated is None:
        return written or generated
    own = {level.port.number: level for level in written.port_level_settings if level.port is not None}
    extra = {level.port.number: level for level in generated.port_level_settings if level.port is not None}
    tls = written.tls or generated.tls
    levels = []
    for number in sorted(own.keys() | extra.keys()):
        level = own.get(number) or PortTrafficPolicy(
            port=PortSelector(number=number),
            load_balancer=written.load_balancer,
            connection_pool=written.connection_pool,
            outlier_detection=written.outlier_detection,
            tls=written.tls,
        )
        asked = extra[number].tls if number in extra else generated.tls
        levels.append(msgspec.structs.replace(level, tls=level.tls or asked))
    return msgspec.structs.replace(written, tls=tls, port_level_settings=tuple(levels))
