"""Policies that deny or allow everything by accident, and tokens that nobody has to show.

In: AuthorizationPolicies, RequestAuthentications, pods and services. Out: MZ0106, MZ0107, MZ0108. A policy whose name
says what it does (`deny-all`, `allow-nothing`) is taken to be meant.
"""

from collections.abc import Iterator

from mizzen.analysis import objects, own_codes
from mizzen.analysis.findings import Finding, full_name, report
from mizzen.api.meta import Key
from mizzen.api.policy import AuthorizationPolicy, Operation, RequestAuthentication, Rule, Source
from mizzen.incremental import Engine, query
from mizzen.model import mesh, policies, targets
from mizzen.model.proxy import Labels
from mizzen.model.workloads import freeze

_MEANT = ("all", "nothing", "none", "default", "everything", "any")
_REQUEST = ("request.",)


def _is_meant(key: Key) -> bool:
    return any(word in _MEANT for word in key.name.lower().replace("_", "-").replace(".", "-").split("-"))


@query
def check_policy(db: Engine, key: Key) -> tuple[Finding, ...]:
    """What a policy comes to."""
    found: AuthorizationPolicy | None = db.input(key)
    if found is None or _is_meant(key):
        return ()
    return tuple(_check_policy(db, key, found))


def _check_policy(db: Engine, key: Key, found: AuthorizationPolicy) -> Iterator[Finding]:
    open_rule = next((index for index, rule in enumerate(found.spec.rules) if _matches_all(rule)), None)
    path = f"spec.rules[{open_rule}]" if open_rule is not None else "spec.rules"
    if found.spec.action == "DENY" and open_rule is not None:
        yield report(own_codes.DENIES_ALL, key, f"rule {open_rule} matches every request", path=path)
    elif found.spec.action == "ALLOW" and open_rule is not None:
        others = _other_allowing(db, key)
        if len(found.spec.rules) > 1:
            text = f"rule {open_rule} matches every request, so its other rules restrict nothing"
            yield report(own_codes.ALLOWS_ALL, key, text, path=path)
        elif others:
            text = f"{', '.join(others)} restrict nothing beside it"
            yield report(own_codes.ALLOWS_ALL, key, text, path=path)
    elif found.spec.action == "ALLOW" and not found.spec.rules:
        yield report(own_codes.DENIES_ALL, key, "it allows, but has no rule", path="spec")
    elif found.spec.action == "ALLOW" and all(map(_needs_http, found.spec.rules)) and _is_tcp_only(db, key, found):
        text = "its rules ask for what only HTTP has, and the selected workloads have TCP ports only"
        yield report(own_codes.DENIES_ALL, key, text, path=path)


def _matches_all(rule: Rule) -> bool:
    """Whether no request fails a rule; an empty source or operation asks for nothing."""
    any_source = not rule.from_ or any(each.source in (None, Source()) for each in rule.from_)
    any_operation = not rule.to or any(_is_open(each.operation) for each in rule.to)
    return any_source and any_operation and not rule.when


def _is_open(operation: Operation | None) -> bool:
    return operation is None or operation in (Operation(), Operation(paths=("*",)), Operation(hosts=("*",)))


def _needs_http(rule: Rule) -> bool:
    """Whether a rule never matches a connection of TCP: each of its alternatives asks for something of HTTP."""
    sources = [each.source for each in rule.from_]
    operations = [each.operation for each in rule.to]
    by_source = bool(sources) and all(
        s is not None and (s.request_principals or s.not_request_principals) for s in sources
    )
    by_operation = bool(operations) and all(
        o is not None and (o.hosts or o.not_hosts or o.methods or o.not_methods or o.paths or o.not_paths)
        for o in operations
    )
    return by_source or by_operation or any(each.key.startswith(_REQUEST) for each in rule.when)


def _is_tcp_only(db: Engine, key: Key, found: AuthorizationPolicy) -> bool:
    if found.spec.target_refs or found.spec.target_ref is not None:
        return False
    selector = freeze(found.spec.selector.match_labels) if found.spec.selector is not None else ()
    if not selector or key.namespace == mesh.root_namespace(db):
        return False
    labels = {freeze(objects.pod_labels(db, pod)) for pod in objects.matching_pods(db, key.namespace, selector)}
    chosen = [s for each in sorted(labels) for s in targets.selecting_services(db, key.namespace, each)]
    ports = [port for service in chosen for port in service.ports]
    return bool(ports) and all(port.protocol.is_tcp for port in ports)


@query
def _other_allowing(db: Engine, key: Key) -> tuple[str, ...]:
    """Policies of the same workloads whose ALLOW means nothing beside an open one."""
    own: AuthorizationPolicy = db.input(key)
    found = []
    for other in objects.keys_in(db, "AuthorizationPolicy", key.namespace):
        policy: AuthorizationPolicy = db.input(other)
        is_rival = other != key and policy.spec.action == "ALLOW" and policy.spec.selector == own.spec.selector
        if is_rival and not any(map(_matches_all, policy.spec.rules)):
            found.append(full_name(other))
    return tuple(found)


# -- tokens ---------------------------------------------------------------------------------------------------------


@query
def check_tokens(db: Engine, key: Key) -> tuple[Finding, ...]:
    """A RequestAuthentication beside which no policy asks for a token."""
    found: RequestAuthentication | None = db.input(key)
    if found is None or not found.spec.jwt_rules or found.spec.target_ref is not None or found.spec.target_refs:
        return ()
    selector = freeze(found.spec.selector.match_labels) if found.spec.selector is not None else ()
    space = "" if key.namespace == mesh.root_namespace(db) else key.namespace
    open_pods = [
        pod
        for pod in objects.matching_pods(db, space, selector)
        if not _asks_for_token(db, pod.namespace, freeze(objects.pod_labels(db, pod)))
    ]
    if not open_pods:
        return ()
    more = f" and {len(open_pods) - 1} more" if len(open_pods) > 1 else ""
    return (report(own_codes.TOKENLESS_REQUEST_PASSES, key, f"{full_name(open_pods[0])}{more}", path="spec.jwtRules"),)


@query
def _asks_for_token(db: Engine, namespace: str, labels: Labels) -> bool:
    found = policies.authorization_policies(db, namespace, labels)
    return any(policy.spec.action == "CUSTOM" or any(map(_asks, policy.spec.rules)) for policy in found)


def _asks(rule: Rule) -> bool:
    sources = (each.source for each in rule.from_)
    by_source = any(s is not None and (s.request_principals or s.not_request_principals) for s in sources)
    return by_source or any(each.key.startswith("request.auth.") for each in rule.when)
