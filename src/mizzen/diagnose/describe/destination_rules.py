"""DestinationRules: which subsets a pod belongs to, and which policies clients apply.

In: the rules of a host, and the labels of the pods. Out: lines, and subsets by whether a pod matches. With several
pods, a subset matches if one of them does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mizzen.api.meta import Key
from mizzen.api.networking.destination_rule import DestinationRule
from mizzen.api.networking.traffic_policy import PortTrafficPolicy, TrafficPolicy
from mizzen.diagnose.describe.text import INDENT, describe_source, indent, quote
from mizzen.incremental import Engine
from mizzen.model import destination_rules, mesh, names
from mizzen.model.convert import policies

Labels = Mapping[str, str]


class Subsets(NamedTuple):
    """The names of subsets of a host."""

    matching: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def find_rules(db: Engine, named: Key, host: str) -> tuple[DestinationRule, ...]:
    """The rule that a cluster of the host names and those merged with it; empty when it does not exist (any more)."""
    rule: DestinationRule | None = db.input(named)
    if rule is None:
        generated = policies.backend_rule(db, named.namespace, host)
        return (generated,) if generated is not None and generated.metadata.name == named.name else ()
    host = names.resolve_host(rule.spec.host.lower(), named.namespace, mesh.domain(db))
    merged = destination_rules.merged_rules(db, named.namespace, host)
    keys = next((found.keys for found in merged if found.keys[0] == named), (named,))
    found = (db.input(key) for key in dict.fromkeys((named, *keys)))
    return tuple(each for each in found if each is not None)


def split_subsets(rules: Iterable[DestinationRule], pods: Sequence[Labels]) -> Subsets:
    """The subsets of all the rules."""
    matching: list[str] = []
    others: list[str] = []
    for rule in rules:
        for subset in rule.spec.subsets:
            fits = any(subset.labels.items() <= labels.items() for labels in pods)
            (matching if fits else others).append(subset.name)
    return Subsets(tuple(matching), tuple(others))


def describe_rule(rule: DestinationRule, pods: Sequence[Labels], namespace: str) -> Iterator[str]:
    """The rule, its subsets and its policies."""
    yield f"{describe_source(rule.metadata, 'DestinationRule', namespace)} for {quote(rule.spec.host)}"
    yield from indent(_describe_subsets(split_subsets((rule,), pods)))
    policy = rule.spec.traffic_policy
    yield from indent(_describe_policy(policy) if policy is not None else ("No Traffic Policy",))


def _describe_subsets(subsets: Subsets) -> Iterator[str]:
    matching, others = ",".join(subsets.matching), ",".join(subsets.others)
    if not matching and not others:
        return
    if not matching:
        yield f"WARNING POD DOES NOT MATCH ANY SUBSETS.  (Non matching subsets {others})"
    yield f"Matching subsets: {matching}"
    if others:
        yield f"{INDENT}(Non-matching subsets {others})"


def _describe_policy(policy: TrafficPolicy) -> Iterator[str]:
    if policy.tls is not None:
        yield f"Traffic Policy TLS Mode: {policy.tls.mode}"
    if summary := _summarize(policy):
        yield f"Policies: {summary}"
    if policy.port_level_settings:
        yield "Port Level Settings:"
        for settings in policy.port_level_settings:
            # One blank more than its heading, as istioctl has it.
            yield f" {settings.port.number if settings.port else 0}:"
            if settings.tls is not None:
                yield f"{INDENT}TLS Mode: {settings.tls.mode}"
            if summary := _summarize(settings):
                yield f"{INDENT}Policies: {summary}"


def _summarize(policy: TrafficPolicy | PortTrafficPolicy) -> str:
    parts = (
        ("load balancer", policy.load_balancer),
        ("connection pool", policy.connection_pool),
        ("outlier detection", policy.outlier_detection),
    )
    return "/".join(name for name, value in parts if value is not None)
