"""From a `CaptureConfig` to the ordered rules of one address family.

The order is Istio's and carries meaning: exclusions come before the loopback rules, the proxy's own traffic returns
before anything is redirected, and what is included comes last. Each function below adds one part; `build_rules` is the
table of contents. Output: a `RuleSet`; spelling and loading are elsewhere.
"""

from ipaddress import ip_network

from mizzen.capture.config import EVERYTHING, CaptureConfig, Mode
from mizzen.capture.rule import (
    ACCEPT,
    DROP,
    LOOPBACK_IN,
    LOOPBACK_OUT,
    RETURN,
    TCP,
    UDP,
    Action,
    Family,
    Field,
    Match,
    Rule,
    RuleSet,
    Verb,
    arriving_on,
    from_address,
    from_port,
    jump,
    leaving_on,
    marked,
    redirect,
    set_mark,
    set_zone,
    to_address,
    to_port,
    to_ports,
)

INBOUND = "ISTIO_INBOUND"
OUTPUT = "ISTIO_OUTPUT"
OUTPUT_DNS = "ISTIO_OUTPUT_DNS"
REDIRECT_OUT = "ISTIO_REDIRECT"
REDIRECT_IN = "ISTIO_IN_REDIRECT"
DIVERT = "ISTIO_DIVERT"
TPROXY = "ISTIO_TPROXY"
DROP_INVALID = "ISTIO_DROP"

CHAINS = frozenset({INBOUND, OUTPUT, OUTPUT_DNS, REDIRECT_OUT, REDIRECT_IN, DIVERT, TPROXY, DROP_INVALID})
"""Every chain that capture may own, in whatever table."""

DNS = 53
ZONE_PROXY, ZONE_APP = 1, 2
"""Conntrack zones of DNS: the proxy's queries and those of the application must not be taken for one flow."""


def build_rules(config: CaptureConfig, family: Family) -> RuleSet:
    """All rules of `family`; an empty set in mode NONE."""
    if config.mode is Mode.NONE:
        return RuleSet(family)
    scope = _Scope(config, family)
    rules: list[Rule] = [
        *scope.excluded_interfaces(),
        *scope.dropped_invalid(),
        *scope.virtual_interfaces_return(),
        *scope.redirections(),
        *scope.inbound(),
        *scope.outbound(),
        *scope.virtual_interfaces_capture(),
        *scope.transparent_marks(),
        *scope.dns_zones(),
    ]
    return RuleSet(family, scope.chains(rules), tuple(rules))


class _Scope:
    """One config seen from one family; every method returns the rules of one part, in order."""

    def __init__(self, config: CaptureConfig, family: Family) -> None:
        self._config = config
        self._family = family
        self._loopback = config.loopback_v4 if family is Family.V4 else family.loopback
        self._owners = _owners(config)
        self._tproxy = config.mode is Mode.TPROXY and config.include_inbound_ports != ()
        self._resolvers = tuple(str(net) for net in map(ip_network, config.dns_servers) if _is(family, net.version))

    # -- chains -------------------------------------------------------------------------------------------------

    def chains(self, rules: list[Rule]) -> tuple[tuple[str, str], ...]:
        """Chains in the order of first need; the four of plain capture always exist."""
        wanted = dict.fromkeys(("nat", chain) for chain in (INBOUND, REDIRECT_OUT, REDIRECT_IN, OUTPUT))
        wanted |= dict.fromkeys((rule.table, rule.chain) for rule in rules if rule.chain in CHAINS)
        return tuple(wanted)

    # -- first of all -------------------------------------------------------------------------------------------

    def excluded_interfaces(self) -> list[Rule]:
        """What crosses these interfaces is seen by nobody."""
        tables = ("nat", "mangle") if self._tproxy else ("nat",)
        rules = []
        for table in tables:
            for name in self._config.exclude_interfaces:
                rules.append(Rule(table, "PREROUTING", (arriving_on(name),), RETURN))
                rules.append(Rule(table, "OUTPUT", (leaving_on(name),), RETURN))
        return rules

    def dropped_invalid(self) -> list[Rule]:
        """Packets of no known connection would be answered by a reset of a connection that the proxy holds."""
        if not self._config.drop_invalid:
            return []
        invalid = Match(Field.CONNECTION_STATE, "INVALID")
        return [
            Rule("mangle", DROP_INVALID, (), DROP),
            Rule("mangle", "PREROUTING", (invalid,), jump(DROP_INVALID)),
        ]

    def virtual_interfaces_return(self) -> list[Rule]:
        """What a virtual machine sends is never inbound; stands behind `virtual_interfaces_capture`."""
        return [
            Rule("nat", "PREROUTING", (arriving_on(name),), RETURN, prepended=True)
            for name in self._config.virtual_interfaces
        ]

    def redirections(self) -> list[Rule]:
        """The two ends of every captured connection, and the tunnel port that is never one."""
        return [
            Rule("nat", INBOUND, (TCP, to_port(self._config.tunnel_port)), RETURN),
            Rule("nat", REDIRECT_OUT, (TCP,), redirect(self._config.outbound_port)),
            Rule("nat", REDIRECT_IN, (TCP,), redirect(self._config.inbound_port)),
        ]

    # -- inbound ------------------------------------------------------------------------------------------------

    def inbound(self) -> list[Rule]:
        """What arrives at the pod, by either mode; nothing if no port is included."""
        if self._config.include_inbound_ports == ():
            return []
        if self._tproxy:
            return self._inbound_transparent()
        rules = [Rule("nat", "PREROUTING", (TCP,), jump(INBOUND))]
        rules += self._excluded_inbound("nat")
        rules += [Rule("nat", INBOUND, match, jump(REDIRECT_IN)) for match in self._inbound_matches()]
        return rules

    def _inbound_matches(self) -> list[tuple[Match, ...]]:
        ports = self._config.include_inbound_ports
        return [(TCP,)] if ports == EVERYTHING else [(TCP, to_port(port)) for port in ports if isinstance(port, int)]

    def _excluded_inbound(self, table: str) -> list[Rule]:
        if self._config.include_inbound_ports != EVERYTHING:
            return []
        return [Rule(table, INBOUND, (TCP, to_port(p)), RETURN) for p in self._config.exclude_inbound_ports]

    def _inbound_transparent(self) -> list[Rule]:
        mark = self._config.tproxy_mark
        capture = Action(Verb.TPROXY, port=self._config.inbound_port, mark=mark)
        established = Match(Field.CONNECTION_STATE, "RELATED,ESTABLISHED")
        rules = [
            Rule("mangle", DIVERT, (), set_mark(mark)),
            Rule("mangle", DIVERT, (), ACCEPT),
            Rule("mangle", TPROXY, (~to_address(self._loopback), TCP), capture),
            Rule("mangle", "PREROUTING", (TCP,), jump(INBOUND)),
            # What the proxy sends as if it were the client comes back over lo and must reach the application.
            Rule("mangle", INBOUND, (TCP, marked(mark)), RETURN),
            Rule("mangle", INBOUND, (from_address(self._family.passthrough), LOOPBACK_IN, TCP), RETURN),
            Rule("mangle", INBOUND, (LOOPBACK_IN, TCP, ~marked(mark + 1)), RETURN),
        ]
        rules += self._excluded_inbound("mangle")
        for match in self._inbound_matches():
            rules.append(Rule("mangle", INBOUND, (*match, established), jump(DIVERT)))
            rules.append(Rule("mangle", INBOUND, match, jump(TPROXY)))
        return rules

    def transparent_marks(self) -> list[Rule]:
        """Carries the mark of a connection over to its packets in both directions."""
        if not self._tproxy:
            return []
        mark = self._config.tproxy_mark
        rules = [
            Rule("mangle", "PREROUTING", (TCP, marked(mark)), Action(Verb.SAVE_MARK)),
            Rule("mangle", "OUTPUT", (LOOPBACK_OUT, TCP, marked(mark)), RETURN),
        ]
        for owner in self._owners:
            matches = (~to_address(self._loopback), LOOPBACK_OUT, TCP, owner)
            rules.append(Rule("mangle", "OUTPUT", matches, set_mark(mark + 1)))
        connection = Match(Field.CONNECTION_MARK, mark)
        rules.append(Rule("mangle", "OUTPUT", (TCP, connection), Action(Verb.RESTORE_MARK)))
        return rules

    # -- outbound -----------------------------------------------------------------------------------------------

    def outbound(self) -> list[Rule]:
        """What leaves the pod: exclusions, the proxy's own, DNS, then what is included."""
        rules = [Rule("nat", "OUTPUT", (), jump(OUTPUT))]
        for port in self._config.exclude_outbound_ports:
            rules += [Rule("nat", OUTPUT, (protocol, to_port(port)), RETURN) for protocol in (TCP, UDP)]
        rules.append(Rule("nat", OUTPUT, (from_address(self._family.passthrough), LOOPBACK_OUT), RETURN))
        for owner in self._owners:
            rules += self._own_traffic(owner)
        rules += self._owner_groups()
        rules += self._dns_redirect()
        rules.append(Rule("nat", OUTPUT, (to_address(self._loopback),), RETURN))
        rules += [Rule("nat", OUTPUT, match, RETURN) for match in self._ranges(self._config.exclude_outbound_ranges)]
        rules += self._included_outbound()
        return rules

    def _own_traffic(self, owner: Match) -> list[Rule]:
        """The trio per owner: a call to oneself is inbound; others' loopback and the proxy itself pass."""
        config, lo = self._config, LOOPBACK_OUT
        free = ~to_port(config.tunnel_port)
        if config.redirect_dns and owner.field is not Field.GID:
            free = ~to_ports(DNS, config.tunnel_port)
        rules = [Rule("nat", OUTPUT, (~to_address(self._loopback), lo, TCP, free, owner), jump(REDIRECT_IN))]
        if not self._loopback_included():
            not_dns = (TCP, ~to_port(DNS)) if config.redirect_dns else ()
            rules.append(Rule("nat", OUTPUT, (lo, *not_dns, ~owner), RETURN))
        rules.append(Rule("nat", OUTPUT, (owner,), RETURN))
        return rules

    def _loopback_included(self) -> bool:
        ranges = self._config.include_outbound_ranges
        return ranges != EVERYTHING and any(ip_network(r, strict=False).is_loopback for r in ranges)

    def _owner_groups(self) -> list[Rule]:
        included, excluded = self._config.include_owner_groups, self._config.exclude_owner_groups
        if included != EVERYTHING:
            others = tuple(~Match(Field.GID, group) for group in included)
            return [Rule("nat", OUTPUT, others, RETURN)]
        return [Rule("nat", OUTPUT, (Match(Field.GID, group),), RETURN) for group in excluded]

    def _included_outbound(self) -> list[Rule]:
        ports = [(TCP, to_port(port)) for port in self._config.include_outbound_ports]
        matches = [*ports, *self._ranges(self._config.include_outbound_ranges)]
        return [Rule("nat", OUTPUT, match, jump(REDIRECT_OUT)) for match in matches]

    def virtual_interfaces_capture(self) -> list[Rule]:
        """What a virtual machine sends is outbound, though it arrives from outside."""
        ranges = self._ranges(self._config.include_outbound_ranges)
        return [
            Rule("nat", "PREROUTING", (*match, arriving_on(name)), jump(REDIRECT_OUT), prepended=True)
            for match in ranges
            for name in self._config.virtual_interfaces
        ]

    def _ranges(self, ranges: str | tuple[str, ...]) -> list[tuple[Match, ...]]:
        """A match per range of this family; a range that covers everything needs none."""
        if ranges == EVERYTHING:
            return [()]
        networks = [ip_network(text, strict=False) for text in ranges]
        mine = [network for network in networks if _is(self._family, network.version)]
        return [(to_address(str(network)),) if network.prefixlen else () for network in mine]

    # -- DNS ----------------------------------------------------------------------------------------------------

    def _dns_destinations(self) -> list[tuple[Match, ...]]:
        return [()] if self._config.capture_all_dns else [(to_address(net),) for net in self._resolvers]

    def _dns_redirect(self) -> list[Rule]:
        if not self._config.redirect_dns:
            return []
        to_proxy = redirect(self._config.dns_port)
        destinations = self._dns_destinations()
        rules = [Rule("nat", OUTPUT, (), jump(OUTPUT_DNS))]
        rules += [Rule("nat", OUTPUT_DNS, (*match, TCP, to_port(DNS)), to_proxy) for match in destinations]
        rules += [Rule("nat", OUTPUT_DNS, (UDP, to_port(DNS), owner), RETURN) for owner in self._owners]
        rules += [Rule("nat", OUTPUT_DNS, (*match, UDP, to_port(DNS)), to_proxy) for match in destinations]
        return rules

    def dns_zones(self) -> list[Rule]:
        """Keeps a query of the application apart from the proxy's query of the same addresses and ports."""
        if not self._config.redirect_dns:
            return []
        rules = [Rule("raw", "OUTPUT", (), jump(OUTPUT_DNS))]
        for owner in self._owners:
            rules.append(Rule("raw", OUTPUT_DNS, (UDP, to_port(DNS), owner), set_zone(ZONE_PROXY)))
            answer = (UDP, from_port(self._config.dns_port), owner)
            rules.append(Rule("raw", OUTPUT_DNS, answer, set_zone(ZONE_APP)))
        destinations = self._dns_destinations()
        if destinations:
            rules.append(Rule("raw", "PREROUTING", (), jump(INBOUND)))
        for match in destinations:
            source = tuple(Match(Field.SOURCE, to.value) for to in match)
            rules.append(Rule("raw", OUTPUT_DNS, (*match, UDP, to_port(DNS)), set_zone(ZONE_APP)))
            rules.append(Rule("raw", INBOUND, (*source, UDP, from_port(DNS)), set_zone(ZONE_PROXY)))
        return rules


def _owners(config: CaptureConfig) -> tuple[Match, ...]:
    """How the proxy's own traffic is told: its users, then its groups, or its socket mark."""
    if config.proxy_socket_mark is not None:
        return (marked(config.proxy_socket_mark),)
    users = tuple(Match(Field.UID, uid) for uid in config.proxy_uids)
    return users + tuple(Match(Field.GID, gid) for gid in config.proxy_gids)


def _is(family: Family, version: int) -> bool:
    return (version == 4) is (family is Family.V4)
