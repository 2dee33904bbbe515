"""Faults: what is wrong with a reference, a listener or a rule, by the reason that a condition will carry.

A fault is a value that conversion returns beside what it could still make; `status` turns it into conditions.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    """One fault: a stable reason and a sentence for people."""

    reason: str
    message: str


def join(first: Fault | None, second: Fault | None) -> Fault | None:
    """Both as one: the first one's reason, with both sentences."""
    if first is None or second is None:
        return first or second
    return Fault(first.reason, f"{first.message}; {second.message}")
