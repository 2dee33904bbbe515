"""Policy sets of the truth table: AuthorizationPolicies as plain data, drawn from a seed.

Compositions are what users write: several policies, rules of several fields, selectors, dry runs. Drills hold one card
each rule, and a guard, the caller's address or port, that keeps the rules from hiding each other; together they hold
the whole deck for one action.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from truth_cards import FORMS, PORTS, Card, Values, deck
from truth_worlds import LABELS, NAMESPACE, World

Document = dict[str, Any]

_CELLS = 10
_ACTIONS = (
    ("ALLOW",), ("DENY",), ("CUSTOM",), ("ALLOW", "DENY"), ("CUSTOM", "ALLOW"), ("AUDIT", "ALLOW"), ("ALLOW", "ALLOW"),
    ("CUSTOM", "DENY"), ("AUDIT", "DENY"), ("CUSTOM", "CUSTOM"), ("DENY", "ALLOW", "AUDIT"),
)  # fmt: skip


class PolicySet(msgspec.Struct, frozen=True, kw_only=True):
    """The policies of one workload in one world; `address` is where it listens."""

    number: int
    world: World
    documents: tuple[Document, ...]
    address: str
    cards: tuple[Card, ...] = ()
    """Of a drill: what each rule of its policy is about."""


def _object(name: str, namespace: str, spec: Document) -> Document:
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


class Dealer:
    """Draws policy sets from one stream of chance."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._cards: dict[str, list[Card]] = {}
        self._actions = itertools.cycle(_ACTIONS)

    def policy_set(self, number: int, world: World) -> PolicySet:
        address = address_of(number)
        self._chosen = Values(self._rng, world, address)
        actions = next(self._actions)
        policies = [self._policy(f"p{i}", action, world) for i, action in enumerate(actions)]
        return PolicySet(number=number, world=world, documents=tuple(policies), address=address)

    # -- policies -----------------------------------------------------------------------------------------------------

    def _policy(self, name: str, action: str, world: World) -> Document:
        rng = self._rng
        namespace = rng.choices((NAMESPACE, world.root_namespace, "elsewhere"), (75, 20, 5))[0]
        spec: Document = {"action": action, "rules": [self._rule(action) for _ in range(self._few())]}
        if rng.random() < 0.03 and action == "ALLOW":
            spec["rules"] = []
        if action == "CUSTOM":
            provider = rng.choices(("yes-http", "no-http", "yes-grpc", "no-grpc", "absent"), (3, 3, 3, 3, 2))[0]
            spec["provider"] = {"name": provider}
        chance = rng.random()
        if chance < 0.25:
            spec["selector"] = {"matchLabels": dict(rng.sample(sorted(LABELS.items()), rng.choice((1, 2))))}
        elif chance < 0.3:
            spec["selector"] = {"matchLabels": {**LABELS, "app": "other"}}
        elif chance < 0.32:
            spec["targetRefs"] = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "till"}]
        found = _object(name, namespace, spec)
        if rng.random() < 0.25:
            word = rng.choice(("true", "true", "1", "false", "yes"))
            found["metadata"]["annotations"] = {"istio.io/dry-run": word}
        return found

    def _few(self) -> int:
        return self._rng.choices((1, 2, 3), (60, 30, 10))[0]

    def _rule(self, action: str) -> Document:
        rng = self._rng
        if rng.random() < 0.03:
            return {}
        parts = rng.choices(
            (("from",), ("to",), ("when",), ("from", "to"), ("from", "when"), ("to", "when"), ("from", "to", "when")),
            (20, 20, 24, 14, 9, 9, 4),
        )[0]
        rule: Document = {}
        for part in parts:
            number = rng.choices((1, 2), (80, 20))[0]
            if part == "when":
                rule["when"] = [self._condition(action) for _ in range(number)]
            else:
                inner = "source" if part == "from" else "operation"
                rule[part] = [{inner: self._alternative(f"{action} {part}")} for _ in range(number)]
        return rule

    def _alternative(self, place: str) -> Document:
        found: Document = {}
        for _ in range(self._rng.choices((1, 2), (75, 25))[0]):
            card = self._draw(place)
            found[_name(card)] = self._values(card)
        return found

    def _condition(self, action: str) -> Document:
        card = self._draw(f"{action} when")
        return {"key": card.field, _name(card): self._values(card)}

    def _draw(self, place: str) -> Card:
        """The next card of those for a place; wrong values are rare."""
        cards = self._cards.setdefault(place, [])
        if not cards:
            cards.extend(card for card in deck() if card.place == place.split()[1])
            self._rng.shuffle(cards)
        card = cards.pop()
        return self._draw(place) if card.is_wrong and self._rng.random() < 0.6 else card

    def _values(self, card: Card) -> list[str]:
        number = self._rng.choices((1, 2, 3), (75, 18, 7))[0]
        others = [self._rng.choice(FORMS[card.field]) for _ in range(number - 1)]
        forms = (card.form, *(form for form in others if form != "wrong"))
        return list(dict.fromkeys(self._chosen.value(card.field, form) for form in forms))


def _name(card: Card) -> str:
    """The name of the card's list of values in a policy."""
    field = "values" if card.place == "when" else card.field
    return f"not{field[0].upper()}{field[1:]}" if card.excluded else field


def address_of(number: int) -> str:
    """Where the workload of a set listens."""
    return f"127.20.{number // 250}.{number % 250 + 1}"


# -- drills -----------------------------------------------------------------------------------------------------------


def drills(rng: random.Random, start: int, action: str, worlds: Sequence[World]) -> Iterator[PolicySet]:
    """Sets that hold every card once, under one action; numbered from `start`, the worlds in turn."""
    by_address = [card for card in deck() if card.field in ("ipBlocks", "source.ip")]
    others = [card for card in deck() if card not in by_address]
    rng.shuffle(by_address)
    rng.shuffle(others)
    parts = (*_parts(by_address, len(PORTS)), *_parts(others, _CELLS))
    for number, (cards, world) in enumerate(zip(parts, itertools.cycle(worlds), strict=False), start):
        address = address_of(number)
        values = Values(rng, world, address)
        rules = [_drill(card, values.value(card.field, card.form), i) for i, card in enumerate(cards)]
        document = _object("drill", NAMESPACE, {"action": action, "rules": rules})
        yield PolicySet(number=number, world=world, documents=(document,), address=address, cards=tuple(cards))


def _parts(cards: Sequence[Card], size: int) -> Iterable[Sequence[Card]]:
    return (cards[i : i + size] for i in range(0, len(cards), size))


def _drill(card: Card, value: str, cell: int) -> Document:
    if card.field in ("ipBlocks", "source.ip"):
        guard = {"key": "destination.port", "values": [PORTS[cell]]}
    else:
        guard = {"key": "source.ip", "values": [f"127.11.0.{cell + 1}"]}
    if card.place == "when":
        return {"when": [{"key": card.field, _name(card): [value]}, guard]}
    inner = "source" if card.place == "from" else "operation"
    return {card.place: [{inner: {_name(card): [value]}}], "when": [guard]}


# -- a whole corpus ---------------------------------------------------------------------------------------------------


def corpus(seed: int, compositions: int, worlds: Sequence[World]) -> list[PolicySet]:
    """The drills of ALLOW and of DENY, and so many compositions."""
    rng = random.Random(seed)
    found: list[PolicySet] = []
    for action in ("ALLOW", "DENY"):
        found.extend(drills(rng, len(found), action, worlds))
    dealer = Dealer(rng)
    found.extend(dealer.policy_set(len(found) + i, worlds[i % len(worlds)]) for i in range(compositions))
    return found
