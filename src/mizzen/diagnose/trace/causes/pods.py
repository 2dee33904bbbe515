"""Why a cluster has no endpoints, and why nothing listens where one leads.

In: the parts of a cluster's name, or a pod and a port. Out: the Service, rule or pod at fault: a selector that matches
nothing, subset labels that no pod has, pods that are not ready, a targetPort that nobody declares.
"""

from collections.abc import Mapping

from mizzen.api.kube.services import Service
from mizzen.api.meta import Key
from mizzen.diagnose.trace import names
from mizzen.diagnose.trace.causes.found import Case, Found, selects
from mizzen.diagnose.trace.world import Workload
from mizzen.model import destination_rules, services
from mizzen.model import names as forms

_SHOWN = 4
_OUTBOUND = "cluster outbound|"


def no_hosts(case: Case, key: forms.SubsetKey, client: Workload) -> Found:
    """A cluster without a host that may be chosen."""
    known = services.services_of_host(case.db, key.host)
    if not known:
        return Found(cause=case.origin("route"), reason=case.answer.reason)
    source = known[0].id.source
    if key.subset:
        found = _empty_subset(case, key, client, known[0])
        if found is not None:
            return found
    if source.kind != "Service":
        return _entry(case, source, known[0])
    return _service(case, source, key.port)


def _empty_subset(case: Case, key: forms.SubsetKey, client: Workload, known: services.Service) -> Found | None:
    labels = destination_rules.selector_labels(case.db, client.namespace, tuple(sorted(client.labels.items())))
    rule = destination_rules.destination_rule(case.db, client.namespace, key.host, known.namespace, labels)
    subset = rule.subset(key.subset) if rule is not None else None
    if rule is None or subset is None:
        return None
    selector = dict(known.selector)
    own = [p for p in case.world.pods if p.namespace == known.namespace]
    behind = [p for p in own if selector and selects(selector, p.labels)]
    fitting = [p for p in behind if selects(subset.labels, p.labels)]
    if fitting or not behind:
        return None
    wanted = _labels(subset.labels)
    have = "; ".join(dict.fromkeys(_labels({k: p.labels.get(k, "") for k in subset.labels}) for p in behind[:_SHOWN]))
    reason = f"subset {key.subset} wants pods with {wanted}, and those of {key.host} have {have}"
    return case.blame(rule.keys[0], reason, f"correct the labels of subset {key.subset}, or label the pods {wanted}")


def _entry(case: Case, source: Key, known: services.Service) -> Found:
    where = case.world.cause(source)
    if known.selector:
        reason = f"{where} selects workloads with {_labels(dict(known.selector))}, and there are none"
        return case.blame(source, reason, "correct its workloadSelector, or label the workloads")
    return case.blame(source, f"{where} has no endpoint", "list endpoints, or choose another resolution")


def _service(case: Case, source: Key, port: int) -> Found:
    service: Service | None = case.db.input(source)
    where = case.world.cause(source)
    if service is None:
        return Found(reason=case.answer.reason)
    selector = service.spec.selector
    if not selector:
        unready_slice = _unready_slice(case, source)
        if unready_slice is not None:
            reason = f"none of the endpoints in {case.world.cause(unready_slice)} is ready"
            return case.blame(unready_slice, reason, "find out why its endpoints are not ready")
        reason = f"{where} has no selector, and no EndpointSlice of it has a ready endpoint"
        return case.blame(source, reason, "add a selector, or an EndpointSlice with endpoints")
    own = [p for p in case.world.pods if p.namespace == source.namespace]
    chosen = [p for p in own if selects(selector, p.labels)]
    if not chosen:
        return _unselected(case, source, selector)
    unready = [p for p in chosen if not p.ready]
    if len(unready) == len(chosen):
        reason = f"none of the pods of {where} is ready: {', '.join(p.reference for p in unready[:_SHOWN])}"
        return case.blame(
            Key("Pod", unready[0].namespace, unready[0].name), reason, "find out why the pod is not ready"
        )
    number = next((p for p in service.spec.ports if p.port == port), None)
    if number is not None and isinstance(number.target_port, str):
        reason = f"{where} port {port} leads to the named port {number.target_port!r}, which its pods do not have"
        return case.blame(source, reason, "correct targetPort, or name the container's port")
    return case.blame(source, f"{where} has no ready endpoint on port {port}", "look at its EndpointSlices")


def _unready_slice(case: Case, service: Key) -> Key | None:
    """An EndpointSlice of the Service with endpoints, though none that is ready."""
    held = (found.metadata for found in names.slices(case.world, service) if found.endpoints)
    return next((Key("EndpointSlice", found.namespace, found.name) for found in held), None)


def _unselected(case: Case, source: Key, selector: Mapping[str, str]) -> Found:
    where = case.world.cause(source)
    elsewhere = [p for p in case.world.pods if selects(selector, p.labels)]
    reason = f"{where} selects pods with {_labels(selector)}, and namespace {source.namespace} has none"
    if elsewhere:
        reason += f"; {elsewhere[0].reference} has these labels"
        return case.blame(source, reason, f"move the Service to namespace {elsewhere[0].namespace}")
    return case.blame(source, reason, "correct the selector, or label the pods")


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" if value else f"no {name}" for name, value in sorted(labels.items()))


# -- beside clusters -------------------------------------------------------------------------------------------------


def service_without_endpoints(case: Case) -> Found:
    """A Service's address without anybody behind it."""
    _, namespace, name, port = case.answer.about[:4]
    source = Key("Service", namespace, name)
    service: Service | None = case.db.input(source)
    if service is not None and not any(p.port == int(port) for p in service.spec.ports):
        ports = ", ".join(f"{p.port} ({p.name})" if p.name else str(p.port) for p in service.spec.ports)
        reason = f"{case.world.cause(source)} has no port {port}; it has {ports}"
        return case.blame(source, reason, f"call port {ports}, or add port {port}")
    return _service(case, source, int(port))


def headless_without_pods(case: Case) -> Found:
    """A headless Service whose name has no address."""
    first = case.first
    resolved = names.resolve(case.world, first, case.request.host) if first is not None else None
    if resolved is None or resolved.service is None:
        return Found(reason=case.answer.reason)
    return _service(case, resolved.service, case.request.port)


def nothing_listens(case: Case) -> Found:
    """A port at which the program most likely does not listen: whoever sends there is at fault."""
    _, reference, port = case.answer.about[:3]
    pod = case.pod(reference)
    if pod is None:
        return Found(reason=case.answer.reason)
    by_entry = _by_entry(case, reference, port)
    if by_entry is not None:
        return by_entry
    for key, service in names.services(case.world):
        if key.namespace != pod.namespace or not selects(service.spec.selector, pod.labels):
            continue
        if not service.spec.selector or not _is_called(case, key):
            continue
        for target in service.spec.ports:
            leads_to = target.port if target.target_port in (None, "") else target.target_port
            if str(leads_to) == port:
                declared = ", ".join(str(p) for p in sorted(set(pod.ports)))
                where = case.world.cause(key)
                reason = f"{where} sends port {target.port} to {port}, and {reference} declares {declared or 'none'}"
                return case.blame(key, reason, "correct targetPort, or have the program listen there")
    return case.blame(Key("Pod", pod.namespace, pod.name), case.answer.reason, "have the program listen there")


def _by_entry(case: Case, reference: str, port: str) -> Found | None:
    """A ServiceEntry that sends there."""
    title = next((step.title for step in reversed(case.steps) if step.title.startswith(_OUTBOUND)), "")
    key = forms.parse_subset_key(title.removeprefix("cluster ")) if title else None
    known = services.services_of_host(case.db, key.host) if key is not None else ()
    source = known[0].id.source if known else None
    if source is None or source.kind != "ServiceEntry":
        return None
    reason = f"{case.world.cause(source)} sends to port {port} of {reference}, which does not declare it"
    return case.blame(source, reason, "correct the ports of the ServiceEntry, or have the program listen there")


def _is_called(case: Case, key: Key) -> bool:
    """Whether the way led over this Service."""
    host = forms.service_host(key.name, key.namespace, case.world.domain)
    return any(host in step.title for step in case.steps) or case.request.host.partition(".")[0] == key.name
