"""Spells rules as `iptables-save` prints them, and whole rule sets as `iptables-restore` reads them.

Because both directions share one spelling, what is wanted and what is loaded compare as text (`state`), without a
parser of iptables' options. Addresses must come normalised, as `rules` makes them.
"""

from collections.abc import Callable, Iterable

from mizzen.capture.rule import Action, Family, Field, Match, Rule, RuleSet, Verb

_BASICS = {
    Field.SOURCE: "-s",
    Field.DESTINATION: "-d",
    Field.IN_INTERFACE: "-i",
    Field.OUT_INTERFACE: "-o",
    Field.PROTOCOL: "-p",
}
_EXTENSIONS = {
    Field.SOURCE_PORT: "--sport",
    Field.DESTINATION_PORT: "--dport",
    Field.DESTINATION_PORTS: "--dports",
    Field.UID: "--uid-owner",
    Field.GID: "--gid-owner",
    Field.MARK: "--mark",
    Field.CONNECTION_MARK: "--mark",
    Field.CONNECTION_STATE: "--ctstate",
}
_MODULES = {
    Field.DESTINATION_PORTS: "multiport",
    Field.UID: "owner",
    Field.GID: "owner",
    Field.MARK: "mark",
    Field.CONNECTION_MARK: "connmark",
    Field.CONNECTION_STATE: "conntrack",
}
_ALL_BITS = "0xffffffff"


def render_rule(rule: Rule, family: Family) -> str:
    """One rule as iptables-save prints it, without its `-A CHAIN`."""
    words = [word for match in _in_saved_order(rule.matches) for word in _match_words(match, rule.matches)]
    return " ".join([*words, "-j", *_ACTIONS[rule.action.verb](rule.action, family)])


def render_restore(rules: RuleSet) -> str:
    """Input of `iptables-restore --noflush` for a namespace without any of these rules."""
    return "".join(
        render_table(
            table,
            chains=rules.chains_of(table),
            commands=[render_command(rule, rules.family) for rule in rules.rules_of(table)],
        )
        for table in rules.tables
    )


def render_table(table: str, *, chains: Iterable[str], commands: Iterable[str]) -> str:
    """One table's transaction: `chains` are created, or emptied where they exist, before the commands run."""
    lines = [f"*{table}", *(f":{chain} - [0:0]" for chain in chains), *commands, "COMMIT"]
    return "\n".join(lines) + "\n"


def render_command(rule: Rule, family: Family) -> str:
    """The command that puts a rule into its chain."""
    place = f"-I {rule.chain} 1" if rule.prepended else f"-A {rule.chain}"
    return f"{place} {render_rule(rule, family)}"


def _in_saved_order(matches: tuple[Match, ...]) -> list[Match]:
    order = list(_BASICS)
    basics = sorted((m for m in matches if m.field in _BASICS), key=lambda m: order.index(m.field))
    return basics + [m for m in matches if m.field not in _BASICS]


def _match_words(match: Match, siblings: tuple[Match, ...]) -> list[str]:
    negation = ["!"] if match.negated else []
    if match.field in _BASICS:
        return [*negation, _BASICS[match.field], str(match.value)]
    module = _MODULES.get(match.field) or _protocol(siblings)
    return ["-m", module, *negation, _EXTENSIONS[match.field], _value(match)]


def _protocol(matches: tuple[Match, ...]) -> str:
    """A single port is matched by the module of its protocol, which must be in the same rule."""
    return next(str(match.value) for match in matches if match.field is Field.PROTOCOL)


def _value(match: Match) -> str:
    if isinstance(match.value, tuple):
        return ",".join(map(str, match.value))
    if match.field in (Field.MARK, Field.CONNECTION_MARK):
        return hex(int(match.value))
    return str(match.value)


def _tproxy(action: Action, family: Family) -> list[str]:
    address = "0.0.0.0" if family is Family.V4 else "::"
    mark = f"{hex(action.mark)}/{_ALL_BITS}"
    return ["TPROXY", "--on-port", str(action.port), "--on-ip", address, "--tproxy-mark", mark]


_ACTIONS: dict[Verb, Callable[[Action, Family], list[str]]] = {
    Verb.RETURN: lambda _action, _family: ["RETURN"],
    Verb.ACCEPT: lambda _action, _family: ["ACCEPT"],
    Verb.DROP: lambda _action, _family: ["DROP"],
    Verb.JUMP: lambda action, _family: [action.chain],
    Verb.REDIRECT: lambda action, _family: ["REDIRECT", "--to-ports", str(action.port)],
    Verb.TPROXY: _tproxy,
    Verb.SET_MARK: lambda action, _family: ["MARK", "--set-xmark", f"{hex(action.mark)}/{_ALL_BITS}"],
    Verb.SAVE_MARK: lambda _action, _family: [
        "CONNMARK", "--save-mark", "--nfmask", _ALL_BITS, "--ctmask", _ALL_BITS,
    ],
    Verb.RESTORE_MARK: lambda _action, _family: [
        "CONNMARK", "--restore-mark", "--nfmask", _ALL_BITS, "--ctmask", _ALL_BITS,
    ],
    Verb.SET_ZONE: lambda action, _family: ["CT", "--zone", str(action.zone)],
}  # fmt: skip
