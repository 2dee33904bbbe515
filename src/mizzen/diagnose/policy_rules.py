"""Rules of AuthorizationPolicies, as RBAC filters and their response code details name them.

In: text with `ns[NAMESPACE]-policy[NAME]-rule[NUMBER]` in it. Out: its parts.
"""

import re
from typing import NamedTuple

_RULE = re.compile(r"ns\[(?P<namespace>[^\]]*)\]-policy\[(?P<name>[^\]]*)\]-rule\[(?P<rule>\d+)\]")


class PolicyRule(NamedTuple):
    """One rule of an AuthorizationPolicy."""

    namespace: str
    name: str
    rule: int


def parse_rule(text: str) -> PolicyRule | None:
    """The first rule that the text names; None for `none` and for rules of other makers."""
    found = _RULE.search(text)
    return PolicyRule(found["namespace"], found["name"], int(found["rule"])) if found is not None else None
