"""DestinationRules: which rule applies to a host for a client, with the rules of one host merged.

In: DestinationRules, those that `convert` generates, and the mesh's defaults. Out: `MergedRule` for (client namespace,
host, service namespace), and policy resolution by subset and port.
Golden cases: networking/dr-lookup-and-merge, networking/dr-workload-selector,
networking/dr-port-and-subset-merge, networking/export-to.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from mizzen.api.meta import Key
from mizzen.api.networking.destination_rule import DestinationRule, Subset
from mizzen.api.networking.traffic_policy import TrafficPolicy
from mizzen.incremental import Engine, Index, query
from mizzen.model import mesh, names, objects, workloads
from mizzen.model.convert import policies
from mizzen.model.proxy import Labels
from mizzen.model.services import Audience, audience


def _group(key: tuple[str, ...], rule: DestinationRule) -> Iterable[tuple[str, str]]:
    host = rule.spec.host.lower()
    return ((key[1], "*" if host.startswith("*") else host),)


_by_host = Index("DestinationRule", "namespace and host", _group)
"""Wildcard hosts of a namespace stand together under `*`."""

_SHORT = ""


def _group_of(key: tuple[str, ...], rule: DestinationRule) -> Iterable[tuple[str, str]]:
    host = rule.spec.host.lower()
    groups = (
        ("*",) if host.startswith("*") else (names.group_of(host),) if "." in host else (names.group_of(host), _SHORT)
    )
    return ((key[1], group) for group in groups)


_by_group = Index("DestinationRule", "namespace and group of hosts", _group_of)
"""Wildcard hosts of a namespace stand together under `*`, those that are one label under the empty name."""


class MergedRule(msgspec.Struct, frozen=True, kw_only=True):
    """One or several DestinationRules of a host as one; the first named gives the configuration's origin."""

    namespace: str
    host: str
    keys: tuple[Key, ...]
    selector: Labels = ()
    export_to: tuple[str, ...] = ()
    traffic_policy: TrafficPolicy | None = None
    subsets: tuple[Subset, ...] = ()

    @property
    def config_path(self) -> str:
        """The origin as it stands in Envoy's metadata."""
        return f"/apis/networking.istio.io/v1/namespaces/{self.namespace}/destination-rule/{self.keys[0].name}"

    def subset(self, name: str) -> Subset | None:
        """The subset of that name."""
        return next((s for s in self.subsets if s.name == name), None)


def destination_rule(
    db: Engine, client_namespace: str, host: str, service_namespace: str, client_labels: Labels
) -> MergedRule | None:
    """The rule that a client applies to a host.

    The client's namespace is asked first (where it is the root, only for private rules), then the service's, then the
    root. A rule of the client's namespace ends the search even when its selector is not for this client.
    `client_labels` matter only to rules with a workload selector: pass `selector_labels`, so that clients share.
    """
    is_near = service_namespace in ("", client_namespace)
    if is_near or _may_cover(db, client_namespace, names.group_of(host)):
        own = _own_rules(db, client_namespace, host)
        if own:
            return _fitting(own, client_labels)
    for exported in _exported_rules(db, service_namespace, host):
        visible = [rule for rule, shown in exported if shown.includes(client_namespace)]
        if visible:
            return visible[-1]
    return None


@query
def _may_cover(db: Engine, namespace: str, group: str) -> bool:
    """Whether rules of a namespace may be for hosts of a group (`names.group_of`): for most they are not."""
    meant = [group, "*"]
    if group.startswith(f"{namespace}.svc.{mesh.domain(db)}#"):
        meant.append(_SHORT)
    generated = objects.in_namespace(db, "BackendTLSPolicy", namespace)
    return bool(generated) or any(db.lookup(_by_group, (namespace, each)) for each in meant)


@query
def _own_rules(db: Engine, namespace: str, host: str) -> tuple[MergedRule, ...]:
    """What clients of a namespace find in it; where it is the root, only private rules."""
    root = mesh.root_namespace(db)
    return _best(db, namespace, host, _private if namespace == root else _local(namespace))


@query
def _exported_rules(
    db: Engine, service_namespace: str, host: str
) -> tuple[tuple[tuple[MergedRule, Audience], ...], ...]:
    """What clients of other namespaces find: in the service's, then in the root; with those who see it."""
    root = mesh.root_namespace(db)
    found = (_best(db, namespace, host, _exported) for namespace in dict.fromkeys((service_namespace or root, root)))
    return tuple(tuple((rule, _audience(db, rule)) for rule in rules) for rules in found if rules)


def selector_labels(db: Engine, namespace: str, labels: Labels) -> Labels:
    """The labels of a client that DestinationRules of its namespace select by; the rest makes no difference."""
    named = _selected_names(db, namespace)
    return tuple(pair for pair in labels if pair[0] in named) if named else ()


@query
def _selected_names(db: Engine, namespace: str) -> frozenset[str]:
    found: set[str] = set()
    for key in objects.in_namespace(db, "DestinationRule", namespace):
        rule: DestinationRule = db.input(key)
        if rule.spec.workload_selector is not None:
            found.update(rule.spec.workload_selector.match_labels)
    return frozenset(found)


def _fitting(rules: Sequence[MergedRule], labels: Labels) -> MergedRule | None:
    """A rule that selects the client before one for everybody; of several for everybody, the last."""
    selecting = [r for r in rules if r.selector and workloads.selects(r.selector, labels)]
    if selecting:
        return selecting[0]
    everybody = [r for r in rules if not r.selector]
    return everybody[-1] if everybody else None


def _best(db: Engine, namespace: str, host: str, considered: Callable[[MergedRule], bool]) -> tuple[MergedRule, ...]:
    """The considered rules of the namespace's most specific host that covers `host`."""
    for candidate in _matching_hosts(db, namespace, host):
        merged = tuple(r for r in merged_rules(db, namespace, candidate) if considered(r))
        if merged:
            return merged
    return ()


def _private(rule: MergedRule) -> bool:
    return bool(rule.selector) or set(rule.export_to) == {"."}


def _exported(rule: MergedRule) -> bool:
    return not _private(rule)


def _local(client: str) -> Callable[[MergedRule], bool]:
    """Whether the namespace's own clients see a rule in the first step: not where it is exported elsewhere only."""
    seen = {"*", ".", client}
    return lambda rule: bool(rule.selector) or not rule.export_to or bool(seen & set(rule.export_to))


def _audience(db: Engine, rule: MergedRule) -> Audience:
    default = tuple(mesh.mesh_config(db).default_destination_rule_export_to)
    return audience(rule.export_to, default, rule.namespace)


def _matching_hosts(db: Engine, namespace: str, host: str) -> tuple[str, ...]:
    """The hosts of rules in a namespace that cover `host`, most specific first."""
    domain = mesh.domain(db)
    found: list[str] = []
    short = host.removesuffix(f".{namespace}.svc.{domain}")
    if any(db.lookup(_by_host, (namespace, written)) for written in {host, short} if written) or (
        policies.backend_rule(db, namespace, host) is not None
    ):
        found.append(host)
    wild = {h for key in db.lookup(_by_host, (namespace, "*")) if names.matches(h := _rule_host(db, key), host)}
    found.extend(sorted(wild, key=names.specificity, reverse=True))
    return tuple(dict.fromkeys(found))


def _rule_host(db: Engine, key: tuple[str, ...]) -> str:
    rule: DestinationRule = db.input(key)
    return names.resolve_host(rule.spec.host.lower(), key[1], mesh.domain(db))


@query
def merged_rules(db: Engine, namespace: str, host: str) -> tuple[MergedRule, ...]:
    """The rules of one namespace and host, merged as the reference does: those with a selector first, then by age."""
    domain = mesh.domain(db)
    if host.startswith("*"):
        keys = [k for k in db.lookup(_by_host, (namespace, "*")) if _rule_host(db, k) == host]
    else:
        short = host.removesuffix(f".{namespace}.svc.{domain}")
        keys = [k for written in dict.fromkeys((host, short)) for k in db.lookup(_by_host, (namespace, written))]
        keys = [k for k in keys if _rule_host(db, k) == host]
    rules: list[DestinationRule] = sorted(
        (db.input(k) for k in keys), key=lambda r: (r.spec.workload_selector is None, r.metadata.age_order)
    )
    merged: list[MergedRule] = []
    for rule in rules:
        _merge_into(merged, _single(rule, host))
    generated = policies.backend_rule(db, namespace, host)
    return tuple(merged) if generated is None else _with_generated(merged, _single(generated, host))


def _with_generated(merged: list[MergedRule], generated: MergedRule) -> tuple[MergedRule, ...]:
    """Every rule with what a generated one adds to it, and as of its origin; it alone for those who see no other."""
    filled = tuple(
        msgspec.structs.replace(
            rule,
            keys=generated.keys + rule.keys,
            traffic_policy=policies.filled_policy(rule.traffic_policy, generated.traffic_policy),
        )
        for rule in merged
    )
    is_covered = any(_exported(rule) for rule in merged)
    return filled if is_covered else (generated, *filled)


def _single(rule: DestinationRule, host: str) -> MergedRule:
    selector = rule.spec.workload_selector
    return MergedRule(
        namespace=rule.metadata.namespace,
        host=host,
        keys=(Key("DestinationRule", rule.metadata.namespace, rule.metadata.name),),
        selector=workloads.freeze(selector.match_labels) if selector is not None else (),
        export_to=(".",) if selector is not None else tuple(rule.spec.export_to),
        traffic_policy=rule.spec.traffic_policy,
        subsets=tuple(rule.spec.subsets),
    )


def _merge_into(merged: list[MergedRule], new: MergedRule) -> None:
    """Fold a younger rule into each earlier one it may extend: its audience is the same or wider.

    It stays a rule of its own as well, unless an earlier one of exactly its audience took it in.
    """
    absorbed = False
    for i, earlier in enumerate(merged):
        if new.selector and new.selector != earlier.selector:
            continue
        if not set(new.export_to) >= set(earlier.export_to) or (not new.export_to and earlier.export_to):
            continue
        known = {s.name for s in earlier.subsets}
        merged[i] = msgspec.structs.replace(
            earlier,
            keys=earlier.keys + new.keys,
            traffic_policy=earlier.traffic_policy or new.traffic_policy,
            subsets=earlier.subsets + tuple(s for s in new.subsets if s.name not in known),
        )
        absorbed = absorbed or set(new.export_to) == set(earlier.export_to)
    if not absorbed:
        merged.append(new)


class RuleId(NamedTuple):
    """Names a merged DestinationRule in arguments."""

    namespace: str
    host: str
    keys: tuple[Key, ...]


def rule_id(rule: MergedRule | None) -> RuleId | None:
    """The identity of a merged rule."""
    return RuleId(rule.namespace, rule.host, rule.keys) if rule is not None else None


def find_rule(db: Engine, rule: RuleId | None) -> MergedRule | None:
    """The rule of that identity."""
    if rule is None:
        return None
    return next((r for r in merged_rules(db, rule.namespace, rule.host) if r.keys == rule.keys), None)


# -- what a rule says for one port and subset ---------------------------------------------------------------------


def port_policy(policy: TrafficPolicy | None, port: int) -> TrafficPolicy | None:
    """The policy of one port: port-level settings replace load balancer, pool, outlier detection and TLS wholesale."""
    if policy is None:
        return None
    for level in policy.port_level_settings:
        if level.port is not None and level.port.number == port:
            return TrafficPolicy(
                load_balancer=level.load_balancer,
                connection_pool=level.connection_pool,
                outlier_detection=level.outlier_detection,
                tls=level.tls,
            )
    return policy


def subset_policy(parent: TrafficPolicy | None, subset: Subset, port: int) -> TrafficPolicy | None:
    """The policy of a subset on one port: each block it sets replaces its parent's (already resolved for the port)."""
    own = subset.traffic_policy
    if own is None:
        return parent
    base = parent if parent is not None else TrafficPolicy()
    merged = msgspec.structs.replace(
        base,
        load_balancer=own.load_balancer or base.load_balancer,
        connection_pool=own.connection_pool or base.connection_pool,
        outlier_detection=own.outlier_detection or base.outlier_detection,
        tls=own.tls or base.tls,
        tunnel=own.tunnel or base.tunnel,
        proxy_protocol=own.proxy_protocol or base.proxy_protocol,
        retry_budget=own.retry_budget or base.retry_budget,
        port_level_settings=(),
    )
    for level in own.port_level_settings:
        if level.port is not None and level.port.number == port:
            return msgspec.structs.replace(
                merged,
                load_balancer=level.load_balancer,
                connection_pool=level.connection_pool,
                outlier_detection=level.outlier_detection,
                tls=level.tls,
            )
    return merged


def effective_policy(rule: MergedRule | None, port: int, subset_name: str) -> TrafficPolicy:
    """What a rule says for one port and subset; an empty policy where there is no rule."""
    if rule is None:
        return TrafficPolicy()
    policy = port_policy(rule.traffic_policy, port)
    subset = rule.subset(subset_name) if subset_name else None
    if subset is not None:
        policy = subset_policy(policy, subset, port)
    return policy or TrafficPolicy()
