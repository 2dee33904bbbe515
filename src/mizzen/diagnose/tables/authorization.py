"""`authz check`: the AuthorizationPolicies that a proxy enforces, by action.

In: the ListenersConfigDump section. Out: one row an action and policy with the number of its rules. RBAC filters of
requests and of connections count alike, in all filter chains but the default ones; so does istioctl.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json
from mizzen.diagnose.policy_rules import parse_rule
from mizzen.diagnose.table import Table

COLUMNS = ("ACTION", "AuthorizationPolicy", "RULES")

_ACTIONS = ("DENY", "ALLOW", "LOG", "CUSTOM")
_NUMBERED = {0: "ALLOW", 1: "DENY", 2: "LOG"}
_CUSTOM = "istio-ext-authz-"
_ANONYMOUS = "_anonymous_match_nothing_"


class _Rule(NamedTuple):
    action: str
    policy: str
    rule: int


def build_table(source: Dump) -> Table:
    """The table; nothing but its header where nothing is enforced."""
    rules: dict[tuple[str, str], set[int]] = {}
    for found in _find_rules(source):
        rules.setdefault((found.action, found.policy), set()).add(found.rule)
    ordered = sorted(rules, key=lambda key: (_ACTIONS.index(key[0]), key[1]))
    rows = tuple((action, policy, str(len(rules[action, policy]))) for action, policy in ordered)
    return Table(columns=COLUMNS, rows=rows, padding=3)


def _find_rules(source: Dump) -> Iterator[_Rule]:
    for entry in dump.items(source.section("Listeners"), "dynamic_listeners"):
        listener = dump.message(entry, "active_state", "listener")
        for chain in dump.items(listener, "filter_chains"):
            for config in _filters(chain):
                if str(config.get("@type", "")).endswith(".rbac.v3.RBAC"):
                    yield from _rules(config)


def _filters(chain: Json) -> Iterator[Json]:
    """The configurations of the chain's own filters and of those for requests."""
    for filter_ in dump.items(chain, "filters"):
        config = dump.message(filter_, "typed_config")
        yield config
        yield from (dump.message(each, "typed_config") for each in dump.items(config, "http_filters"))


def _rules(config: Json) -> Iterator[_Rule]:
    enforced = dump.field(config, "rules")
    if isinstance(enforced, Mapping):
        action = _action(enforced)
        policies = dump.message(enforced, "policies")
        if not policies:
            yield _Rule(action, _ANONYMOUS, 0)
        for name in policies:
            yield _parse(action, name)
    for name in dump.message(config, "shadow_rules", "policies"):
        if name.startswith(_CUSTOM):
            yield _parse("CUSTOM", name.removeprefix(_CUSTOM))


def _action(rules: Json) -> str:
    """Envoy leaves out the first value of an enum."""
    action = dump.field(rules, "action")
    return _NUMBERED.get(action, "ALLOW") if isinstance(action, int) else str(action or "ALLOW")


def _parse(action: str, name: str) -> _Rule:
    """A name that is not the control plane's stands for itself, as one rule."""
    parts = parse_rule(name)
    if parts is None:
        return _Rule(action, name, 0)
    return _Rule(action, f"{parts.name}.{parts.namespace}", parts.rule)
