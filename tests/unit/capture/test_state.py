"""What is loaded against what is wanted, on a small stand-in for the kernel's tables."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mizzen.capture.config import CaptureConfig, Mode
from mizzen.capture.render import render_restore
from mizzen.capture.rule import Family, RuleSet
from mizzen.capture.rules import CHAINS, build_rules
from mizzen.capture.state import Snapshot, compare, expected, parse_save, replacement

BUILT_IN = ("PREROUTING", "OUTPUT")
FOREIGN = "-s 10.9.9.9/32 -j ACCEPT"


class Tables:
    """Holds rules as iptables does and refuses what iptables would refuse."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, list[str]]] = {
            table: {chain: [] for chain in BUILT_IN} for table in ("nat", "mangle", "raw")
        }

    def restore(self, text: str) -> None:
        chains: dict[str, list[str]] = {}
        for line in text.splitlines():
            if line.startswith("*"):
                chains = self.tables[line[1:]]
            elif line.startswith(":"):
                chains[line[1:].split()[0]] = []
            elif line != "COMMIT":
                self._command(chains, line.split(" "))

    def _command(self, chains: dict[str, list[str]], words: Sequence[str]) -> None:
        verb, chain, rest = words[0], words[1], words[2:]
        if verb == "-A":
            chains[chain].append(" ".join(rest))
        elif verb == "-I":
            chains[chain].insert(int(rest[0]) - 1, " ".join(rest[1:]))
        elif verb == "-D":
            chains[chain].remove(" ".join(rest))
        elif verb == "-X":
            assert not chains[chain], "only an empty chain can be deleted"
            assert not any(f"-j {chain}" in rule for rules in chains.values() for rule in rules), "chain in use"
            del chains[chain]
        else:
            raise AssertionError(words)

    def save(self) -> Snapshot:
        lines = []
        for table, chains in self.tables.items():
            lines += [f"*{table}", *(f":{chain} - [0:0]" for chain in chains)]
            lines += [f"-A {chain} {rule}" for chain, rules in chains.items() for rule in rules]
            lines.append("COMMIT")
        return parse_save("\n".join(lines))


ports = st.lists(st.integers(1, 65535), max_size=3, unique=True).map(tuple)
configs = st.builds(
    CaptureConfig,
    mode=st.sampled_from(list(Mode)),
    include_inbound_ports=st.one_of(st.just("*"), ports),
    exclude_inbound_ports=ports,
    include_outbound_ranges=st.sampled_from(["*", (), ("10.0.0.0/8", "11.0.0.0/8")]),
    exclude_outbound_ranges=st.sampled_from([(), ("10.1.0.0/16",)]),
    exclude_outbound_ports=ports,
    include_outbound_ports=ports,
    virtual_interfaces=st.sampled_from([(), ("eth1", "eth2")]),
    exclude_interfaces=st.sampled_from([(), ("eth3",)]),
    redirect_dns=st.booleans(),
    dns_servers=st.sampled_from([(), ("10.96.0.10",)]),
    drop_invalid=st.booleans(),
)


@given(config=configs)
def test_loading_gives_what_is_expected_and_then_nothing_is_left_to_do(config: CaptureConfig) -> None:
    rules = build_rules(config, Family.V4)
    kernel = Tables()
    kernel.restore(render_restore(rules))
    assert compare(rules, kernel.save()) == ()
    again = Tables()
    again.restore(replacement(rules, again.save()))
    assert again.tables == kernel.tables


@given(before=configs, after=configs)
def test_a_changed_config_replaces_the_old_rules_and_spares_foreign_ones(
    before: CaptureConfig, after: CaptureConfig
) -> None:
    kernel = Tables()
    kernel.tables["nat"]["OUTPUT"].append(FOREIGN)
    kernel.restore(render_restore(build_rules(before, Family.V4)))
    rules = build_rules(after, Family.V4)
    kernel.restore(replacement(rules, kernel.save()))
    assert compare(rules, kernel.save()) == ()
    assert FOREIGN in kernel.tables["nat"]["OUTPUT"]
    owned = {(table, chain) for table, chains in kernel.tables.items() for chain in chains if chain in CHAINS}
    assert owned == set(rules.chains)


@given(config=configs)
def test_cleaning_leaves_only_what_was_there(config: CaptureConfig) -> None:
    kernel = Tables()
    kernel.tables["nat"]["OUTPUT"].append(FOREIGN)
    rules = build_rules(config, Family.V4)
    kernel.restore(render_restore(rules))
    kernel.restore(replacement(RuleSet(Family.V4), kernel.save(), remnants=rules))
    assert kernel.tables["nat"] == {"PREROUTING": [], "OUTPUT": [FOREIGN]}
    assert kernel.tables["mangle"] == kernel.tables["raw"] == {"PREROUTING": [], "OUTPUT": []}


def test_nothing_to_clean_gives_no_text() -> None:
    rules = build_rules(CaptureConfig(), Family.V4)
    assert replacement(RuleSet(Family.V4), Tables().save(), remnants=rules) == ""


def test_differences_name_table_chain_and_rule() -> None:
    rules = build_rules(CaptureConfig(), Family.V4)
    kernel = Tables()
    kernel.restore(render_restore(rules))
    kernel.tables["nat"]["ISTIO_REDIRECT"] = ["-p tcp -j REDIRECT --to-ports 1"]
    (difference,) = compare(rules, kernel.save())
    assert str(difference) == (
        "nat ISTIO_REDIRECT: missing '-p tcp -j REDIRECT --to-ports 15001', "
        "unexpected '-p tcp -j REDIRECT --to-ports 1'"
    )


def test_the_right_rules_in_the_wrong_order_are_a_difference() -> None:
    rules = build_rules(CaptureConfig(exclude_inbound_ports=(1, 2)), Family.V4)
    kernel = Tables()
    kernel.restore(render_restore(rules))
    kernel.tables["nat"]["ISTIO_INBOUND"].reverse()
    (difference,) = compare(rules, kernel.save())
    assert str(difference) == "nat ISTIO_INBOUND: rules in another order or number"


def test_a_missing_chain_is_a_difference_even_if_it_would_be_empty() -> None:
    rules = RuleSet(Family.V4, (("nat", "ISTIO_INBOUND"),), ())
    (difference,) = compare(rules, Tables().save())
    assert str(difference) == "nat ISTIO_INBOUND: no such chain"


def test_counters_comments_and_policies_are_not_read() -> None:
    text = "# by hand\n*nat\n:OUTPUT ACCEPT [12:34]\n:ISTIO_OUTPUT - [0:0]\n-A OUTPUT -j ISTIO_OUTPUT\nCOMMIT\n"
    assert parse_save(text).tables == {"nat": {"OUTPUT": ("-j ISTIO_OUTPUT",), "ISTIO_OUTPUT": ()}}


def test_prepended_rules_are_expected_in_reverse() -> None:
    rules = build_rules(
        CaptureConfig(virtual_interfaces=("eth1",), include_inbound_ports=(), include_outbound_ranges="*"), Family.V4
    )
    assert expected(rules).chain("nat", "PREROUTING") == ("-i eth1 -j ISTIO_REDIRECT", "-i eth1 -j RETURN")
