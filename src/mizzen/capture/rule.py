"""The vocabulary of a rule: matches, one action, a place.

Values only. A rule knows nothing of its spelling (`render`), and little enough is expressible that any packet filter
with connection tracking could hold it.
"""

from enum import StrEnum

import msgspec


class Family(StrEnum):
    """One address family with the addresses that the rules name."""

    V4 = "ipv4"
    V6 = "ipv6"

    @property
    def loopback(self) -> str:
        """The address by which an application calls itself without the proxy."""
        return "127.0.0.1/32" if self is Family.V4 else "::1/128"

    @property
    def passthrough(self) -> str:
        """The source from which the proxy calls its own application; such connections are never captured again."""
        return "127.0.0.6/32" if self is Family.V4 else "::6/128"


class Field(StrEnum):
    """What a match looks at."""

    SOURCE = "source"
    DESTINATION = "destination"
    IN_INTERFACE = "in-interface"
    OUT_INTERFACE = "out-interface"
    PROTOCOL = "protocol"
    SOURCE_PORT = "source-port"
    DESTINATION_PORT = "destination-port"
    DESTINATION_PORTS = "destination-ports"
    UID = "uid"
    GID = "gid"
    MARK = "mark"
    CONNECTION_MARK = "connection-mark"
    CONNECTION_STATE = "connection-state"


class Match(msgspec.Struct, frozen=True):
    """One condition; a rule applies when all of its matches hold."""

    field: Field
    value: str | int | tuple[int, ...]
    negated: bool = False

    def __invert__(self) -> "Match":
        return Match(self.field, self.value, not self.negated)


class Verb(StrEnum):
    """What happens to a packet that matches."""

    RETURN = "return"
    ACCEPT = "accept"
    DROP = "drop"
    JUMP = "jump"
    REDIRECT = "redirect"
    TPROXY = "tproxy"
    SET_MARK = "set-mark"
    SAVE_MARK = "save-mark"
    RESTORE_MARK = "restore-mark"
    SET_ZONE = "set-zone"


class Action(msgspec.Struct, frozen=True):
    """A verb with its object: the chain, port, mark or zone."""

    verb: Verb
    chain: str = ""
    port: int = 0
    mark: int = 0
    zone: int = 0


class Rule(msgspec.Struct, frozen=True):
    """One rule in its chain; `prepended` puts it before all that the chain holds by then."""

    table: str
    chain: str
    matches: tuple[Match, ...]
    action: Action
    prepended: bool = False


class RuleSet(msgspec.Struct, frozen=True):
    """All rules of one family in order of emission, with the chains they need in order of creation."""

    family: Family
    chains: tuple[tuple[str, str], ...] = ()
    rules: tuple[Rule, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables in the order of first use."""
        return tuple(dict.fromkeys([table for table, _ in self.chains] + [rule.table for rule in self.rules]))

    def chains_of(self, table: str) -> tuple[str, ...]:
        """The chains to create in a table."""
        return tuple(chain for owner, chain in self.chains if owner == table)

    def rules_of(self, table: str) -> tuple[Rule, ...]:
        """The rules of a table, of all its chains, in order."""
        return tuple(rule for rule in self.rules if rule.table == table)


TCP = Match(Field.PROTOCOL, "tcp")
UDP = Match(Field.PROTOCOL, "udp")
LOOPBACK_OUT = Match(Field.OUT_INTERFACE, "lo")
LOOPBACK_IN = Match(Field.IN_INTERFACE, "lo")

RETURN = Action(Verb.RETURN)
ACCEPT = Action(Verb.ACCEPT)
DROP = Action(Verb.DROP)


# What rules are made of, so that a rule reads as a sentence.


def from_address(network: str) -> Match:
    return Match(Field.SOURCE, network)


def to_address(network: str) -> Match:
    return Match(Field.DESTINATION, network)


def to_port(port: int) -> Match:
    return Match(Field.DESTINATION_PORT, port)


def from_port(port: int) -> Match:
    return Match(Field.SOURCE_PORT, port)


def to_ports(*ports: int) -> Match:
    return Match(Field.DESTINATION_PORTS, ports)


def arriving_on(interface: str) -> Match:
    return Match(Field.IN_INTERFACE, interface)


def leaving_on(interface: str) -> Match:
    return Match(Field.OUT_INTERFACE, interface)


def marked(mark: int) -> Match:
    return Match(Field.MARK, mark)


def jump(chain: str) -> Action:
    return Action(Verb.JUMP, chain=chain)


def redirect(port: int) -> Action:
    return Action(Verb.REDIRECT, port=port)


def set_mark(mark: int) -> Action:
    return Action(Verb.SET_MARK, mark=mark)


def set_zone(zone: int) -> Action:
    return Action(Verb.SET_ZONE, zone=zone)
