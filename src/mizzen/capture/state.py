"""What is loaded against what is wanted.

Input: a `RuleSet` and the output of `iptables-save`. Output: the differences, for a person, or the restore text that
turns one into the other. In our own chains every rule is ours. In the built-in chains a rule is ours if it jumps to
one of our chains or is spelled like one we want; all others belong to somebody else and stay where they are.
"""

from collections.abc import Mapping

import msgspec

from mizzen.capture import render
from mizzen.capture.rule import RuleSet
from mizzen.capture.rules import CHAINS

Chains = Mapping[str, tuple[str, ...]]


class Snapshot(msgspec.Struct, frozen=True):
    """The rules of every table and chain, as `iptables-save` spells them."""

    tables: Mapping[str, Chains]

    def chain(self, table: str, chain: str) -> tuple[str, ...]:
        """The rules of a chain; empty also for one that is not there."""
        return self.tables.get(table, {}).get(chain, ())

    def owned_chains(self, table: str) -> tuple[str, ...]:
        """The chains of a table that only capture can have made."""
        return tuple(chain for chain in self.tables.get(table, {}) if chain in CHAINS)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One chain that is not as wanted; with nothing missing or unexpected, its rules stand in another order."""

    table: str
    chain: str
    exists: bool
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = [f"missing {rule!r}" for rule in self.missing] + [f"unexpected {rule!r}" for rule in self.unexpected]
        other = "rules in another order or number" if self.exists else "no such chain"
        return f"{self.table} {self.chain}: {', '.join(what) or other}"


def parse_save(text: str) -> Snapshot:
    """Reads `iptables-save`; comments, counters and policies are dropped."""
    tables: dict[str, dict[str, tuple[str, ...]]] = {}
    chains: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line.startswith("*"):
            chains = tables.setdefault(line[1:].strip(), {})
        elif line.startswith(":"):
            chains.setdefault(line[1:].split()[0], ())
        elif line.startswith("-A "):
            _, chain, rule = line.rstrip().split(" ", 2)
            chains[chain] = (*chains.get(chain, ()), rule)
    return Snapshot(tables)


def expected(rules: RuleSet) -> Snapshot:
    """What `iptables-save` shows once `rules` are loaded into an empty namespace."""
    tables: dict[str, dict[str, tuple[str, ...]]] = {}
    for table, chain in rules.chains:
        tables.setdefault(table, {})[chain] = ()
    for rule in rules.rules:
        chains = tables.setdefault(rule.table, {})
        text = render.render_rule(rule, rules.family)
        before = chains.get(rule.chain, ())
        chains[rule.chain] = (text, *before) if rule.prepended else (*before, text)
    return Snapshot(tables)


def compare(rules: RuleSet, snapshot: Snapshot) -> tuple[Difference, ...]:
    """Every chain in which what is loaded differs from what is wanted; empty when nothing needs doing."""
    wanted = expected(rules)
    places = [
        (table, chain) for source in (wanted, snapshot) for table, chains in source.tables.items() for chain in chains
    ]
    found = (_compare_chain(wanted, snapshot, table, chain) for table, chain in dict.fromkeys(places))
    return tuple(difference for difference in found if difference is not None)


def _compare_chain(wanted: Snapshot, snapshot: Snapshot, table: str, chain: str) -> Difference | None:
    want, have = wanted.chain(table, chain), _ours(snapshot, wanted, table, chain)
    exists = chain in snapshot.tables.get(table, {})
    owed = chain in CHAINS and exists != (chain in wanted.tables.get(table, {}))
    if want == have and not owed:
        return None
    missing = tuple(rule for rule in want if rule not in have)
    unexpected = tuple(rule for rule in have if rule not in want)
    return Difference(table=table, chain=chain, exists=exists, missing=missing, unexpected=unexpected)


def replacement(rules: RuleSet, snapshot: Snapshot, *, remnants: RuleSet | None = None) -> str:
    """Restore text that takes away what is ours in `snapshot` and loads `rules`, one transaction a table.

    No packet meets a half-made table: the kernel swaps each table at its COMMIT. `remnants` names rules that may be
    there besides `rules` (for a clean-up, `rules` is empty and the config that was applied gives the remnants).
    """
    known = expected(remnants or rules)
    texts = []
    for table in dict.fromkeys([*rules.tables, *snapshot.tables]):
        stale, kept = snapshot.owned_chains(table), rules.chains_of(table)
        commands = [
            f"-D {chain} {rule}"
            for chain in snapshot.tables.get(table, {})
            if chain not in CHAINS
            for rule in _ours(snapshot, known, table, chain)
        ]
        commands += [f"-X {chain}" for chain in stale if chain not in kept]
        commands += [render.render_command(rule, rules.family) for rule in rules.rules_of(table)]
        if commands or kept:
            texts.append(render.render_table(table, chains=dict.fromkeys((*stale, *kept)), commands=commands))
    return "".join(texts)


def _ours(snapshot: Snapshot, wanted: Snapshot, table: str, chain: str) -> tuple[str, ...]:
    loaded = snapshot.chain(table, chain)
    if chain in CHAINS:
        return loaded
    asked = wanted.chain(table, chain)
    return tuple(rule for rule in loaded if rule in asked or _target(rule) in CHAINS)


def _target(rule: str) -> str:
    """The word after the last -j or -g; options of a target never have the name of a chain of ours."""
    words = rule.split()
    return next((words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-j", "-g")), "")
