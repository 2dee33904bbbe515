"""The same rules for nftables: what `nft -f` reads.

In: the rule sets of one or both families. Out: text that makes up to three `inet` tables, each emptied first, so that
loading it replaces whatever was there in one transaction. Rules that name no address stand once for both families;
where the families differ, IPv4's come first. Each rule counts its packets.
"""

from collections.abc import Sequence

from mizzen.capture.rule import Action, Family, Field, Match, Rule, RuleSet, Verb

_TABLES = {"mangle": "istio-proxy-mangle", "nat": "istio-proxy-nat", "raw": "istio-proxy-raw"}
_HOOKS = {
    ("nat", "PREROUTING"): "type nat hook prerouting priority -100;",
    ("nat", "OUTPUT"): "type nat hook output priority -100;",
    ("mangle", "PREROUTING"): "type filter hook prerouting priority -150;",
    ("mangle", "OUTPUT"): "type route hook output priority -150;",
    ("raw", "PREROUTING"): "type filter hook prerouting priority -300;",
    ("raw", "OUTPUT"): "type filter hook output priority -300;",
}
_FIELDS = {
    Field.IN_INTERFACE: "iifname",
    Field.OUT_INTERFACE: "oifname",
    Field.UID: "meta skuid",
    Field.GID: "meta skgid",
    Field.MARK: "meta mark",
    Field.CONNECTION_MARK: "ct mark",
    Field.CONNECTION_STATE: "ct state",
}
_PORTS = {Field.SOURCE_PORT: "sport", Field.DESTINATION_PORT: "dport", Field.DESTINATION_PORTS: "dport"}
_ADDRESSES = {Field.SOURCE: "saddr", Field.DESTINATION: "daddr"}


def render_nft(rule_sets: Sequence[RuleSet]) -> str:
    """One transaction that loads the rules of all the families given."""
    chains = _merge_families(rule_sets)
    lines = []
    for table in dict.fromkeys(table for table, _ in chains):
        lines += [f"add table inet {_TABLES[table]}", f"flush table inet {_TABLES[table]}"]
        mine = [chain for owner, chain in chains if owner == table]
        lines += [_declare(table, chain) for chain in mine]
        lines += [
            f"add rule inet {_TABLES[table]} {_name(chain)} {rule}" for chain in mine for rule in chains[table, chain]
        ]
    return "".join(f"{line}\n" for line in lines)


def render_removal() -> str:
    """One transaction that takes all three tables away, whether they are there or not."""
    return "".join(f"add table inet {table}\ndelete table inet {table}\n" for table in _TABLES.values())


def _merge_families(rule_sets: Sequence[RuleSet]) -> dict[tuple[str, str], list[str]]:
    """The statements of every chain, in the order in which they are to stand."""
    chains: dict[tuple[str, str], list[str]] = {}
    for rules in rule_sets:
        for place, statements in _statements(rules).items():
            chains[place] = _interleave(chains.get(place, []), statements)
    return chains


def _statements(rules: RuleSet) -> dict[tuple[str, str], list[str]]:
    chains: dict[tuple[str, str], list[str]] = {place: [] for place in rules.chains}
    for rule in rules.rules:
        statements = chains.setdefault((rule.table, rule.chain), [])
        statements.insert(0 if rule.prepended else len(statements), _render_rule(rule, rules.family))
    return chains


def _interleave(first: list[str], second: list[str]) -> list[str]:
    """Both lists in their own order, what they share once; what only one has comes before the next shared one."""
    merged: list[str] = []
    rest = list(second)
    for statement in first:
        if statement in rest:
            shared = rest.index(statement)
            merged += rest[:shared]
            rest = rest[shared + 1 :]
        merged.append(statement)
    return merged + rest


def _declare(table: str, chain: str) -> str:
    hook = _HOOKS.get((table, chain))
    return f"add chain inet {_TABLES[table]} {_name(chain)}" + (f" {{ {hook} }}" if hook else "")


def _name(chain: str) -> str:
    return chain.lower().replace("_", "-")


def _render_rule(rule: Rule, family: Family) -> str:
    ports = any(match.field in _PORTS for match in rule.matches)
    words = [
        _render_match(match, rule.matches, family)
        for match in rule.matches
        if not (ports and match.field is Field.PROTOCOL)
    ]
    return " ".join([*words, "counter", _render_action(rule.action, family)])


def _render_match(match: Match, siblings: tuple[Match, ...], family: Family) -> str:
    sign = "!= " if match.negated else ""
    if match.field is Field.PROTOCOL:
        return f"meta l4proto {sign}{match.value}"
    if match.field in _ADDRESSES:
        return f"{'ip' if family is Family.V4 else 'ip6'} {_ADDRESSES[match.field]} {sign}{match.value}"
    if match.field in _PORTS:
        protocol = next(sibling.value for sibling in siblings if sibling.field is Field.PROTOCOL)
        return f"{protocol} {_PORTS[match.field]} {sign}{_value(match)}"
    return f"{_FIELDS[match.field]} {sign}{_value(match)}"


def _value(match: Match) -> str:
    if isinstance(match.value, tuple):
        return f"{{ {', '.join(map(str, match.value))} }}"
    if match.field in (Field.IN_INTERFACE, Field.OUT_INTERFACE):
        return f'"{match.value}"'
    return str(match.value).lower()


def _render_action(action: Action, family: Family) -> str:
    match action.verb:
        case Verb.JUMP:
            return f"jump {_name(action.chain)}"
        case Verb.REDIRECT:
            return f"redirect to :{action.port}"
        case Verb.TPROXY:
            address = "ip" if family is Family.V4 else "ip6"
            return f"meta mark set {action.mark} tproxy {address} to :{action.port} accept"
        case Verb.SET_MARK:
            return f"meta mark set {action.mark}"
        case Verb.SAVE_MARK:
            return "ct mark set meta mark"
        case Verb.RESTORE_MARK:
            return "meta mark set ct mark"
        case Verb.SET_ZONE:
            return f"ct zone set {action.zone}"
    return action.verb.value
