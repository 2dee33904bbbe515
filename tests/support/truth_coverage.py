"""Which cards decided: of every drill it is known which field its answer turned on.

Chance leaves a few cards out; `complete` adds calls until each has decided one.
"""

import random
from collections.abc import Iterator, Sequence

import msgspec
import truth_requests
from truth_cards import Card
from truth_policies import PolicySet
from truth_requests import Caller, Pair

from mizzen.diagnose.authorization import evaluation
from mizzen.diagnose.authorization.decision import Check, Match

_TRIES = 40


class Deciding(msgspec.Struct, frozen=True):
    """A card under an action, and whether it decided by matching or by not matching."""

    action: str
    card: Card
    matched: bool


def deciding(pair: Pair) -> Iterator[Deciding]:
    """The cards of a drill whose other outcome would have been another answer.

    It decides as the only rule that matches, or as the one field for which no rule does.
    """
    if not pair.policies.cards:
        return
    policies = truth_requests.policies_of(pair.policies)
    request = truth_requests.seen_by_policies(pair.call)
    held = evaluation.hold_rules(policies, pair.policies.world.workload, request)
    matches = [one for one in held if isinstance(one, Match)]
    for one in matches if len(matches) == 1 else [] if matches else held:
        card = pair.policies.cards[one.rule.index]
        if isinstance(one, Match) or [_field(check) for check in one.failed] == [card.field]:
            yield Deciding(one.action, card, bool(matches))


def _field(check: Check) -> str:
    """The field's name without its place, and without its `not`."""
    place, _, key = check.field.partition(" ")
    name = place.rpartition(".")[2].removeprefix("not")
    return key or name[:1].lower() + name[1:]


def complete(seed: int, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs, and further calls for cards of their drills that decided none of them."""
    rng = random.Random(seed)
    decided = {(pair.policies.number, one.card) for pair in pairs for one in deciding(pair)}
    drills = {pair.policies.number: pair.policies for pair in pairs if pair.policies.cards}
    missing = [
        (policies, i, card)
        for policies in drills.values()
        for i, card in enumerate(policies.cards)
        if (policies.number, card) not in decided
    ]
    return [*pairs, *(pair for one in missing for pair in _search(rng, *one))]


def _search(rng: random.Random, policies: PolicySet, index: int, card: Card) -> Iterator[Pair]:
    """The first call found that the card decides."""
    caller = Caller(rng, policies)
    for _ in range(_TRIES):
        pair = Pair(policies=policies, call=caller.call_to(index))
        if any(one.card == card for one in deciding(pair)):
            yield pair
            return
