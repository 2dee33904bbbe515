"""Why a host, one of its ports, or a subset is not there for a client.

In: a cluster's name or a host, and the client. Out: the object that hides it or lacks it: a Sidecar's egress hosts, an
exportTo, a Service without the port, a rule without the subset, a VirtualService that names what does not exist.
"""

import difflib

from mizzen.api.meta import Key
from mizzen.diagnose.trace import names
from mizzen.diagnose.trace.causes import pods
from mizzen.diagnose.trace.causes.found import Case, Found
from mizzen.diagnose.trace.world import Workload
from mizzen.model import destination_rules, mesh, objects, scope, services, virtual_services
from mizzen.model import names as forms

_REGISTRY = "add a ServiceEntry for the host, or set outboundTrafficPolicy to ALLOW_ANY"


def missing_cluster_or_hosts(case: Case) -> Found:
    """By the cluster that a route or a chain names: it is missing, it has no hosts, or it lets nothing through."""
    _, name, side = case.answer.about[:3]
    client = case.pod(side)
    if name in (forms.BLACK_HOLE, forms.PASSTHROUGH):
        return unknown_host(case)
    key = forms.parse_subset_key(name)
    if key is None or client is None:
        return Found(cause=case.origin("route", "cluster"), reason=case.answer.reason)
    if case.answer.flag == "UO":
        fix = "raise the limits of connectionPool"
        return Found(cause=case.origin("cluster", side=side), reason=case.answer.reason, fix=fix)
    if case.answer.link == "cluster":
        return _missing(case, key, client)
    return pods.no_hosts(case, key, client)


def _missing(case: Case, key: forms.SubsetKey, client: Workload) -> Found:
    route = case.origin("route", "filter_chain")
    known = scope.scoped_service(case.db, case.scope_of(client), key.host)
    if known is None:
        found = explain_host(case, client, key.host, key.port)
        return (
            found
            if found.cause is not None or route is None
            else Found(
                cause=route,
                reason=f"{route} sends to {key.host}, which {client.reference} does not know",
                fix="name a host that exists, or create the Service or ServiceEntry",
            )
        )
    if known.port(key.port) is None:
        ports = ", ".join(str(p.number) for p in known.ports)
        reason = f"{key.host} has no port {key.port}; it has {ports}"
        return Found(cause=route or case.world.cause(known.id.source), reason=reason, fix=f"send to port {ports}")
    return _missing_subset(case, key, client, known)


def _missing_subset(case: Case, key: forms.SubsetKey, client: Workload, known: services.Service) -> Found:
    labels = destination_rules.selector_labels(case.db, client.namespace, tuple(sorted(client.labels.items())))
    rule = destination_rules.destination_rule(case.db, client.namespace, key.host, known.namespace, labels)
    route = case.origin("route", "filter_chain")
    hidden = _hidden_rule(case, key, client, known)
    if hidden is not None:
        return hidden
    if rule is None:
        reason = f"no DestinationRule of {key.host} applies to {client.reference}, so there is no subset {key.subset}"
    else:
        subsets = ", ".join(s.name for s in rule.subsets) or "none"
        where = case.world.cause(rule.keys[0])
        reason = f"{where} has no subset {key.subset}; it has {subsets}"
    fix = f"add subset {key.subset} to a DestinationRule of {key.host}, or route to a subset that exists"
    return Found(cause=route or (case.world.cause(rule.keys[0]) if rule else None), reason=reason, fix=fix)


def _hidden_rule(case: Case, key: forms.SubsetKey, client: Workload, known: services.Service) -> Found | None:
    """A rule with the subset that the client does not go by."""
    for written in objects.of_kind(case.db, "DestinationRule"):
        for rule in destination_rules.merged_rules(case.db, written[1], key.host):
            if rule.subset(key.subset) is None:
                continue
            where = case.world.cause(rule.keys[0])
            looked_at = (client.namespace, known.namespace, mesh.root_namespace(case.db))
            if rule.namespace not in looked_at:
                reason = f"{where} defines subset {key.subset}, and stands where {client.reference} does not look"
                return case.blame(rule.keys[0], reason, f"move the DestinationRule to namespace {known.namespace}")
            default = tuple(mesh.mesh_config(case.db).default_destination_rule_export_to)
            if not services.audience(rule.export_to, default, rule.namespace).includes(client.namespace):
                reason = f"{where} defines subset {key.subset}, and {client.reference} does not see it"
                return case.blame(rule.keys[0], reason, f"add {client.namespace} to its exportTo")
    return None


# -- hosts that a client does not know -------------------------------------------------------------------------------


def unknown_host(case: Case) -> Found:
    """A call that met no known host, under a policy that lets only known hosts be called."""
    client = case.first
    if client is None:
        return Found(reason=case.answer.reason)
    host = full_name(case, client, case.request.host)
    found = explain_host(case, client, host, case.request.port)
    return found if found.cause is not None else _registry_only(case, client, host)


def hidden_from(case: Case, client: Workload) -> Found:
    """What hides the host of the request from a client that calls it nevertheless, by address."""
    return explain_host(case, client, full_name(case, client, case.request.host), case.request.port)


def full_name(case: Case, client: Workload | None, host: str) -> str:
    """A host that the client, or somebody outside, calls, as its Service or ServiceEntry has it."""
    resolved = names.resolve(case.world, client, host)
    at = names.service_at(case.world, resolved.addresses[0]) if resolved.addresses else None
    key = resolved.service or (at[0] if at is not None else None)
    if key is not None:
        return forms.service_host(key.name, key.namespace, case.world.domain)
    return host.lower()


def explain_host(case: Case, client: Workload, host: str, port: int) -> Found:
    """Why the client does not know the host on that port, if any object has it."""
    known = services.services_of_host(case.db, host)
    if not known:
        return Found()
    found = next((s for s in known if s.port(port) is not None), known[0])
    source = found.id.source
    seen = services.visible_service(case.db, host, client.namespace)
    if seen is None:
        reason = f"{case.world.cause(source)} is not exported to namespace {client.namespace}"
        return case.blame(source, reason, f"add {client.namespace} to its exportTo")
    own_scope = case.scope_of(client)
    if scope.scoped_service(case.db, own_scope, host) is None and own_scope.sidecar is not None:
        sidecar = case.world.cause(own_scope.sidecar)
        reason = f"{sidecar} does not list {host} among the hosts of its egress"
        return case.blame(own_scope.sidecar, reason, f'add "{found.namespace}/{host}" to spec.egress[].hosts')
    if seen.port(port) is None:
        ports = ", ".join(f"{p.number} ({p.name})" for p in seen.ports)
        reason = f"{case.world.cause(source)} has no port {port}; it has {ports}"
        return case.blame(source, reason, f"call port {ports}, or add port {port}")
    return Found()


def _registry_only(case: Case, client: Workload, host: str) -> Found:
    own_scope = case.scope_of(client)
    policy = scope.outbound_policy(case.db, own_scope)
    if policy.mode != "REGISTRY_ONLY":
        return Found(reason=case.answer.reason)
    sidecar = scope.sidecar(case.db, own_scope)
    reason = f"nobody knows {host}, and only known hosts may be called (REGISTRY_ONLY)"
    if own_scope.sidecar is not None and sidecar is not None and sidecar.spec.outbound_traffic_policy is not None:
        return case.blame(own_scope.sidecar, reason, _REGISTRY)
    config = Key("ConfigMap", mesh.root_namespace(case.db), "istio")
    return case.blame(config, reason, _REGISTRY)


def unknown_name(case: Case) -> Found:
    """A name that does not resolve: most often one of another namespace."""
    wanted = case.request.host.partition(".")[0]
    alike = [key for key, _ in names.services(case.world) if key.name == wanted]
    if alike:
        key = alike[0]
        reason = f"{case.request.host} does not exist; there is {case.world.cause(key)}"
        return case.blame(key, reason, f"call {key.name}.{key.namespace}")
    known = [key.name for key, _ in names.services(case.world)]
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return Found(reason=f"{case.request.host} does not exist{hint}", fix="create the Service, or correct the name")


def bound_virtual_services(case: Case, host: str) -> list[virtual_services.VirtualServiceRef]:
    """The VirtualServices that speak for a host, bound to whatever; those that name it itself first."""
    found = (virtual_services.virtual_service_ref(case.db, key) for key in objects.of_kind(case.db, "VirtualService"))
    refs = [r for r in found if r is not None and any(forms.matches(h, host) for h in r.hosts)]
    return sorted(refs, key=lambda r: (host not in r.hosts, r.age_order))
