"""Credentials: which private keys of its namespace a proxy may have.

In: the proxy, with the service account that its connection has proved, and what is known of pods. Out: whether it may
have any Secret of its namespace, or the few that rules name for it. Trusted roots are no secret; they are not asked
about here. A namespace alone would let every workload in it read the certificates of its gateway by saying that it is
one, so the pod has to be known to be one: by its own account and labels, not by what the node says.
"""

from collections.abc import Iterator

import msgspec

from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.api.networking.traffic_policy import TrafficPolicy
from mizzen.incremental import Engine, query
from mizzen.model import destination_rules, gateways, objects, workloads
from mizzen.model.proxy import Labels, Proxy
from mizzen.model.workloads import Workload


@query
def may_have_keys(db: Engine, proxy: Proxy) -> bool:
    """Whether the proxy is a gateway that may have the Secrets of its namespace.

    Where the namespace's pods are known, it must be one of them, run under the account that was proved, and be selected
    by a Gateway. Where none is, what the node says is all there is.
    """
    if proxy.kind != "router":
        return False
    own = _own_workload(db, proxy)
    if own is None:
        return not objects.in_namespace(db, "Pod", proxy.namespace)
    if not _is(own, proxy):
        return False
    known = msgspec.structs.replace(gateways.gateway_workload(db, proxy), labels=own.labels)
    return bool(gateways.selected_gateways(db, known))


@query
def keys_by_rule(db: Engine, proxy: Proxy) -> frozenset[str]:
    """The credentials that DestinationRules of its namespace name for this very workload.

    Only rules with a workload selector do; others are for gateways, as in Istio.
    """
    own = _own_workload(db, proxy)
    if own is not None and not _is(own, proxy):
        return frozenset()
    labels = own.labels if own is not None else workloads.proxy_workload(db, proxy).labels
    return _named_for(db, proxy.namespace, destination_rules.selector_labels(db, proxy.namespace, labels))


@query
def _named_for(db: Engine, namespace: str, labels: Labels) -> frozenset[str]:
    found: set[str] = set()
    for key in objects.in_namespace(db, "DestinationRule", namespace):
        rule: DestinationRule = db.input(key)
        selector = rule.spec.workload_selector
        if selector is not None and workloads.selects(workloads.freeze(selector.match_labels), labels):
            found.update(_named(rule.spec.traffic_policy))
            for subset in rule.spec.subsets:
                found.update(_named(subset.traffic_policy))
    return frozenset(found)


def _named(policy: TrafficPolicy | None) -> Iterator[str]:
    if policy is None:
        return
    for settings in (policy.tls, *(port.tls for port in policy.port_level_settings)):
        if settings is not None and settings.credential_name:
            yield settings.credential_name


def _is(own: Workload, proxy: Proxy) -> bool:
    """Whether the workload is of the proxy's namespace, and runs under the account that was proved."""
    return (own.namespace, own.service_account) == (proxy.namespace, proxy.service_account)


def _own_workload(db: Engine, proxy: Proxy) -> Workload | None:
    """The pod or WorkloadEntry that the proxy is, by its address or else by its name."""
    at_address: Workload | None = workloads.workload_at(db, proxy.namespace, proxy.ip_addresses)
    if at_address is not None:
        return at_address
    named: Workload | None = workloads.pod_workload(db, proxy.namespace, proxy.name)
    return named
