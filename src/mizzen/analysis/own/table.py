"""The table of Mizzen's own rules."""

from collections.abc import Callable
from typing import NamedTuple

from mizzen.analysis.findings import Finding
from mizzen.api.meta import Key
from mizzen.incremental import Engine


class OwnRule(NamedTuple):
    """A rule under a name, with what it asks of which kinds."""

    name: str
    description: str
    checks: tuple[tuple[str, Callable[[Engine, Key], tuple[Finding, ...]]], ...]


OWN_RULES: tuple[OwnRule, ...] = ()
