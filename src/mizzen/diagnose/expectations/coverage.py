"""Which routes and policy rules the tests reach, and which none does.

In: a world made of objects, and what the tests saw. Out: `Coverage`. A route is one match of one rule of a
VirtualService (delegates merged in) or one rule of an HTTPRoute or GRPCRoute, wherever it is served; it is reached by a
request that it takes, even if a filter then ends it. A policy's rule is reached when it decides. Rules that decide
nothing (AUDIT, dry runs) do not count.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from mizzen import protos
from mizzen.api.meta import Key
from mizzen.compile.routes import matches
from mizzen.diagnose.authorization import evaluation
from mizzen.diagnose.expectations.seen import Seen
from mizzen.diagnose.policy_rules import parse_rule
from mizzen.diagnose.trace.verdict import Cause, Visit
from mizzen.diagnose.trace.world import World
from mizzen.model import objects
from mizzen.model.virtual_services import virtual_service, virtual_service_ref

_GATEWAY_API = ("HTTPRoute", "GRPCRoute")

Kind = Literal["route", "rule"]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A route or a rule of a policy."""

    kind: Kind
    object: Cause
    path: str
    """Where it stands in its object."""
    title: str = ""
    """Its name, where it has one."""

    def __str__(self) -> str:
        return f"{self.object} {self.path}" + (f" {self.title}" if self.title else "")


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """All that could be reached, and what was."""

    items: tuple[Item, ...]
    reached: frozenset[Item]

    def of(self, kind: Kind) -> "Coverage":
        """Of routes alone, or of rules."""
        return Coverage(items=tuple(item for item in self.items if item.kind == kind), reached=self.reached)

    @property
    def missed(self) -> tuple[Item, ...]:
        """What no test reaches."""
        return tuple(item for item in self.items if item not in self.reached)

    @property
    def percentage(self) -> float:
        """Of what could be reached; 100 where there is nothing."""
        return 100.0 * (len(self.items) - len(self.missed)) / len(self.items) if self.items else 100.0


def merge(each: Iterable[Coverage]) -> Coverage:
    """That of several files, whose manifests may be the same."""
    items: dict[Item, None] = {}
    reached: set[Item] = set()
    for one in each:
        items.update(dict.fromkeys(one.items))
        reached |= one.reached
    return Coverage(items=tuple(items), reached=frozenset(reached))


def measure(world: World, seen: Iterable[Seen]) -> Coverage:
    """The coverage of one world's objects."""
    virtual = dict(_routes_of_virtual_services(world))
    known = {(_key(item), item.path): item for item in (*_gateway_api(world), *_rules(world))}
    reached: set[Item] = set()
    for each in seen:
        for visit in each.trace.visits:
            found = _rule(visit, known) if visit.kind == "rule" else _route(world, visit, virtual, known)
            reached |= {found} if found is not None else set()
    routes = (item for candidates in virtual.values() for item, _, _ in candidates)
    return Coverage(items=(*routes, *known.values()), reached=frozenset(reached))


def _key(item: Item) -> tuple[str, str, str]:
    return (item.object.kind, item.object.namespace, item.object.name)


# -- routes -----------------------------------------------------------------------------------------------------------

Candidates = list[tuple[Item, str, tuple[Any, ...]]]
"""The routes of a VirtualService with their names and the matches that they compile to."""


def _routes_of_virtual_services(world: World) -> Iterator[tuple[tuple[str, str, str], Candidates]]:
    assert world.db is not None
    for key in objects.of_kind(world.db, "VirtualService"):
        virtual, ref = virtual_service(world.db, key), virtual_service_ref(world.db, key)
        if virtual is not None and ref is not None and virtual.spec.hosts:
            cause = world.cause(key)
            yield (cause.kind, cause.namespace, cause.name), list(_candidates(cause, virtual))


def _candidates(cause: Cause, virtual: Any) -> Iterator[tuple[Item, str, tuple[Any, ...]]]:
    for nth, rule in enumerate(virtual.spec.http):
        for position, match in enumerate(rule.match or (None,)):
            name = rule.name if match is None or not match.name else f"{rule.name}.{match.name}"
            path = f"http[{nth}]" + (f".match[{position}]" if match is not None else "")
            item = Item(kind="route", object=cause, path=path, title=name)
            yield item, name, tuple(_compiled(match, whole) for whole in (False, True))


def _compiled(match: Any, gateway_semantics: bool) -> Any:
    """What the match is for Envoy, as JSON."""
    built = matches.build_match(match, "envoy", gateway_semantics=gateway_semantics)
    return protos.to_json(protos.package("envoy.config.route.v3").RouteMatch(**built))


def _route(
    world: World, visit: Visit, virtual: Mapping[tuple[str, str, str], Candidates], known: Mapping[Any, Item]
) -> Item | None:
    if visit.kind != "route":
        return None
    origin = world.origin(visit.resource)
    if origin is None:
        return None
    key = (origin.kind, origin.namespace, origin.name)
    if origin.kind in _GATEWAY_API:
        return _rule_of_route(world.object(Key(*key)), visit.name, key, known)
    match = visit.resource.get("match")
    for item, name, forms in virtual.get(key, ()):
        if name == visit.name and match in forms:
            return item
    return None


def _rule_of_route(route: Any, name: str, key: tuple[str, str, str], known: Mapping[Any, Item]) -> Item | None:
    """The rule behind one of Envoy's routes, which has the rule's name or ends with its number."""
    if route is None:
        return None
    own = [nth for nth, rule in enumerate(route.spec.rules) if rule.name and rule.name == name]
    number = str(own[0]) if own else name.rpartition(".")[2]
    return known.get((key, f"rules[{number}]"))


def _gateway_api(world: World) -> Iterator[Item]:
    assert world.db is not None
    for kind in _GATEWAY_API:
        for key in objects.of_kind(world.db, kind):
            for nth in range(len(world.db.input(key).spec.rules)):
                yield Item(kind="route", object=world.cause(key), path=f"rules[{nth}]")


# -- policies ---------------------------------------------------------------------------------------------------------


def _rules(world: World) -> Iterator[Item]:
    assert world.db is not None
    for key in objects.of_kind(world.db, "AuthorizationPolicy"):
        policy: Any = world.db.input(key)
        if policy.spec.action == "AUDIT" or evaluation.is_dry_run(policy):
            continue
        for nth in range(len(policy.spec.rules)):
            yield Item(kind="rule", object=world.cause(key), path=f"rules[{nth}]")


def _rule(visit: Visit, known: Mapping[Any, Item]) -> Item | None:
    parsed = parse_rule(visit.name)
    return known.get((("AuthorizationPolicy", parsed[0], parsed[1]), f"rules[{parsed[2]}]")) if parsed else None
