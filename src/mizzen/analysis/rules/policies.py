"""Policies: AuthorizationPolicies that select nobody or name unknown namespaces, and a control plane that fetches keys
from anywhere.

In: AuthorizationPolicies, pods, Namespaces, RequestAuthentications, istiod's Deployment. Out: IST0127, IST0101,
IST0175. A target reference does not count as a selector, as the reference has it.
"""

from collections.abc import Iterator

from mizzen.analysis import catalogue, membership, objects
from mizzen.analysis.findings import Finding, format_labels, full_name, report
from mizzen.api.kube.workloads import Deployment
from mizzen.api.meta import Key
from mizzen.api.policy import AuthorizationPolicy
from mizzen.incremental import Engine, query
from mizzen.model import mesh
from mizzen.model.proxy import Labels
from mizzen.model.workloads import freeze

_BLOCKED_CIDRS = "BLOCKED_CIDRS_IN_JWKS_URIS"
_MOST_NAMES = 5


@query
def check_authorization(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A policy without workloads, or about namespaces that do not exist."""
    policy: AuthorizationPolicy | None = db.input(key)
    if policy is None:
        return ()
    return (*_check_workloads(db, key, policy), *_check_namespaces(db, key, policy))


def _check_workloads(db: Engine, key: Key, policy: AuthorizationPolicy) -> Iterator[Finding]:
    selector = policy.spec.selector
    is_root = key.namespace == mesh.root_namespace(db)
    if not objects.has_pods(db) or (is_root and selector is None):
        return
    labels = freeze(selector.match_labels) if selector is not None else ()
    if not _has_workloads(db, "" if is_root else key.namespace, labels):
        path = "spec.selector" if selector is not None else ""
        yield report(catalogue.NO_MATCHING_WORKLOADS_FOUND, key, format_labels(labels), path=path)


@query
def _has_workloads(db: Engine, namespace: str, labels: Labels) -> bool:
    return any(
        membership.pod_is_meshed(db, pod) or membership.pod_is_ambient(db, pod)
        for pod in objects.matching_pods(db, namespace, labels)
    )


def _check_namespaces(db: Engine, key: Key, policy: AuthorizationPolicy) -> Iterator[Finding]:
    for i, rule in enumerate(policy.spec.rules):
        for j, each in enumerate(rule.from_):
            source = each.source
            if source is None:
                continue
            for field, written in (("namespaces", source.namespaces), ("notNamespaces", source.not_namespaces)):
                for k, pattern in enumerate(written):
                    if not _names_namespace(db, pattern):
                        path = f"spec.rules[{i}].from[{j}].source.{field}[{k}]"
                        yield report(catalogue.REFERENCED_RESOURCE_NOT_FOUND, key, "namespace", pattern, path=path)


def _names_namespace(db: Engine, pattern: str) -> bool:
    return pattern == "*" or any(_matches(pattern, name) for name in objects.namespaces(db))


def _matches(pattern: str, name: str) -> bool:
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name.lower() == pattern.lower()


@query
def check_key_fetching(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A Deployment of istiod that may be made to fetch keys from any address."""
    found: Deployment | None = db.input(key)
    if found is None or found.metadata.labels.get("app") != "istiod":
        return ()
    policies = [full_name(each) for each in objects.keys(db, "RequestAuthentication")]
    env = [variable for container in found.spec.template.spec.containers for variable in container.env]
    is_set = any(v.name == _BLOCKED_CIDRS and (v.value or v.value_from is not None) for v in env)
    if not policies or is_set:
        return ()
    names = ", ".join(policies[:_MOST_NAMES])
    if len(policies) > _MOST_NAMES:
        names += f", and {len(policies) - _MOST_NAMES} more"
    return (report(catalogue.JWKS_URI_FETCH_UNRESTRICTED, key, len(policies), names),)
