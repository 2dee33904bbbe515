"""Policy sets of the truth table: AuthorizationPolicies as plain data, drawn from a seed.

Every field in every form of value, positive and negative, lies in one deck of cards; rules take their fields from it in
turn, so that none is left to chance. Values stand near those that callers have: the same, cut, with stars, in another
case.
"""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
from truth_worlds import ACCOUNTS, FILTER, ISSUERS, LABELS, NAMESPACE, World

Document = dict[str, Any]

PATHS = ("/", "/api", "/api/v1/users", "/api/v2/users/7", "/static/app.js", "/Admin/panel", "/a/b/c", "/files/x.tar.gz")
HOSTS = ("shop.example", "api.shop.example", "api.shop.example:8080", "till.shop.svc.cluster.local", "other.test")
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
SNIS = ("till.shop.example", "api.shop.example", "other.test")
HEADERS = {"x-role": ("admin", "auditor", "admin,auditor"), "X-Team": ("red", "Red", "blue-2"), "x-empty": ("",)}
SOURCES = ("127.9.0.1", "127.9.1.7", "127.10.0.5", "127.0.0.1")
CLIENTS = ("203.0.113.7", "198.51.100.9", "2001:db8::7", *SOURCES)
PORTS = ("8080", "8081", "9000", "9001", "7000", "6000")

_TEXT = ("exact", "prefix", "suffix", "any", "both")
_ADDRESS = ("address", "range", "six", "wrong")
_TEXTS = {
    "hosts": HOSTS,
    "methods": METHODS,
    "paths": PATHS,
    "connection.sni": SNIS,
    "requestPrincipals": (*(f"{ISSUERS[0]}/{s}" for s in ("ann", "bob", "")), f"{ISSUERS[1]}/svc/robot"),
    "request.auth.principal": tuple(f"{ISSUERS[0]}/{s}" for s in ("ann", "bob")),
    "request.auth.audiences": ("shop", "api.shop", "other"),
    "request.auth.presenter": ("web-client", "cli"),
    "request.auth.claims[groups]": ("dev", "ops", "ops-team"),
    "request.auth.claims[team]": ("red", "blue"),
    "request.auth.claims[scope]": ("read", "write", "read write"),
    "request.auth.claims[permission]": ("pay", "refund"),
    "request.auth.claims[age]": ("42",),
    "request.auth.claims[vip]": ("true",),
    "request.auth.claims[realm][level]": ("gold", "silver"),
    "request.auth.claims[realm][roles]": ("admin", "user"),
    "request.auth.claims[https://shop.example/role]": ("admin",),
    **{f"request.headers[{name}]": values for name, values in HEADERS.items() if any(values)},
    "request.headers[x-empty]": ("full",),
    "request.headers[:authority]": HOSTS,
    "request.headers[Host]": HOSTS,
    "request.headers[:method]": METHODS,
    f"experimental.{FILTER}[zone]": ("east-1", "west-2"),
    f"experimental.{FILTER}[tiers]": ("[gold]", "[silver]", "gold"),
    f"experimental.{FILTER}[count]": ("3",),
}
_NAMESPACES = ("shop", "front", "ops")
_SERVICE_ACCOUNTS = ("web", "front/web", "shop/robot-2", "ops/robot", "front/robot")
_IN_SOURCE = (
    "principals", "requestPrincipals", "namespaces", "serviceAccounts", "trustDomains", "ipBlocks", "remoteIpBlocks",
)  # fmt: skip
_IN_OPERATION = ("hosts", "methods", "paths", "ports")
_FORMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TEXTS, _TEXT),
    "paths": (*_TEXT, "segment", "segments", "wrong"),
    **dict.fromkeys((f"experimental.{FILTER}[tiers]", "request.headers[x-empty]"), ("exact", "any")),
    **dict.fromkeys(("principals", "source.principal"), (*_TEXT, "domain")),
    **dict.fromkeys(("namespaces", "source.namespace"), (*_TEXT, "middle")),
    **dict.fromkeys(("serviceAccounts", "source.serviceAccount"), ("exact",)),
    **dict.fromkeys(("trustDomains", "source.trustDomain"), ("exact", "prefix", "suffix", "any", "middle")),
    **dict.fromkeys(("ipBlocks", "source.ip"), _ADDRESS),
    **dict.fromkeys(("remoteIpBlocks", "remote.ip"), _ADDRESS),
    "destination.ip": _ADDRESS,
    **dict.fromkeys(("ports", "destination.port"), ("exact", "exact", "wrong")),
    "unknown.key": ("exact",),
}


class Card(msgspec.Struct, frozen=True):
    """A field in one form; `excluded` for the list of values that must not match."""

    field: str
    form: str
    excluded: bool


class PolicySet(msgspec.Struct, frozen=True, kw_only=True):
    """The policies of one workload in one world; `address` is where it listens."""

    number: int
    world: World
    documents: tuple[Document, ...]
    address: str


def deck() -> list[Card]:
    """All cards; common forms more often."""
    return [
        Card(field, form, excluded) for field, forms in _FORMS.items() for form in forms for excluded in (False, True)
    ]


class Dealer:
    """Draws policy sets from one stream of chance."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._cards: dict[str, list[Card]] = {}

    def policy_set(self, number: int, world: World) -> PolicySet:
        address = f"127.20.{number // 250}.{number % 250 + 1}"
        actions = self._rng.choices(
            (("ALLOW",), ("DENY",), ("ALLOW", "DENY"), ("ALLOW", "ALLOW"), ("CUSTOM",), ("CUSTOM", "ALLOW")),
            (30, 22, 20, 10, 8, 8),
        )[0]
        if self._rng.random() < 0.25:
            actions = (*actions, self._rng.choice(("AUDIT", "ALLOW", "DENY", "CUSTOM")))
        policies = [self._policy(f"p{i}", action, world, address) for i, action in enumerate(actions)]
        return PolicySet(number=number, world=world, documents=tuple(policies), address=address)

    # -- policies -----------------------------------------------------------------------------------------------------

    def _policy(self, name: str, action: str, world: World, address: str) -> Document:
        rng = self._rng
        namespace = rng.choices((NAMESPACE, world.root_namespace, "elsewhere"), (75, 20, 5))[0]
        spec: Document = {"action": action, "rules": [self._rule(action, world, address) for _ in range(self._few())]}
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
        metadata: Document = {"name": name, "namespace": namespace}
        if rng.random() < 0.12:
            metadata["annotations"] = {"istio.io/dry-run": rng.choice(("true", "true", "1", "false", "yes"))}
        return {
            "apiVersion": "security.istio.io/v1",
            "kind": "AuthorizationPolicy",
            "metadata": metadata,
            "spec": spec,
        }

    def _few(self) -> int:
        return self._rng.choices((1, 2, 3), (60, 30, 10))[0]

    def _rule(self, action: str, world: World, address: str) -> Document:
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
                rule["when"] = [self._condition(action, world, address) for _ in range(number)]
            else:
                inner = "source" if part == "from" else "operation"
                rule[part] = [{inner: self._alternative(f"{action} {part}", world, address)} for _ in range(number)]
        return rule

    def _alternative(self, place: str, world: World, address: str) -> Document:
        found: Document = {}
        for _ in range(self._rng.choices((1, 2), (75, 25))[0]):
            card = self._draw(place)
            name = f"not{card.field[0].upper()}{card.field[1:]}" if card.excluded else card.field
            found[name] = self._values(card, world, address)
        return found

    def _condition(self, action: str, world: World, address: str) -> Document:
        card = self._draw(f"{action} when")
        return {"key": card.field, "notValues" if card.excluded else "values": self._values(card, world, address)}

    def _draw(self, place: str) -> Card:
        """The next card of those for a place; wrong values are rare."""
        cards = self._cards.setdefault(place, [])
        if not cards:
            fields = {"from": _IN_SOURCE, "to": _IN_OPERATION}.get(place.split()[1])
            cards.extend(
                c for c in deck() if (c.field in fields if fields else c.field not in (*_IN_SOURCE, *_IN_OPERATION))
            )
            self._rng.shuffle(cards)
        card = cards.pop()
        is_wrong = card.form == "wrong" or card.field == "unknown.key"
        return self._draw(place) if is_wrong and self._rng.random() < 0.6 else card

    # -- values -------------------------------------------------------------------------------------------------------

    def _values(self, card: Card, world: World, address: str) -> list[str]:
        number = self._rng.choices((1, 2, 3), (75, 18, 7))[0]
        others = [self._rng.choice(_FORMS[card.field]) for _ in range(number - 1)]
        forms = (card.form, *(form for form in others if form != "wrong"))
        return list(dict.fromkeys(self._value(card.field, form, world, address) for form in forms))

    def _value(self, field: str, form: str, world: World, address: str) -> str:
        base = self._rng.choice(self._bases(field, world, address))
        match form:
            case "prefix":
                return f"{base[: self._cut(base)]}*"
            case "suffix":
                return f"*{base[self._cut(base) :]}"
            case "any":
                return "*"
            case "both":
                return f"*{base[self._cut(base) :]}*"
            case "middle":
                return f"{base[:1]}*{base[-1:]}"
            case "domain":
                return self._rng.choice(
                    (f"*{base[3:]}", f"{base[:2]}*/{base.partition('/')[2]}", f"*/{base.partition('/')[2]}")
                )
            case "segment" | "segments" | "address" | "range" | "six" | "wrong":
                return self._special(field, form, base)
        return base if self._rng.random() < 0.9 else base.swapcase()

    def _cut(self, base: str) -> int:
        return self._rng.randrange(1, max(len(base), 2))

    def _special(self, field: str, form: str, base: str) -> str:
        rng = self._rng
        if field == "paths":
            good = (
                ("/api/{*}/users", "/{*}/b/{*}", "/api/{*}/users/{*}")
                if form == "segment"
                else ("/api/{**}", "/{**}/users", "/{*}/{**}", "/a/{**}/c")
            )
            bad = (
                "/a{*}",
                "/{**}/{*}",
                "/a//{*}",
                "/x y/{*}",
                "api/{*}",
                "//api/{**}",
                "/api/{*}//",
                "/" + "a" * 255 + "/{*}",
            )
            return rng.choice(bad if form == "wrong" else good)
        if form == "wrong":
            return rng.choice(
                ("65536", "http", "-1")
                if "ort" in field
                else ("10.0.0.0/33", "localhost", "10.0.0", "10.0.0.0/255.0.0.0")
            )
        if form == "six":
            return rng.choice(("2001:db8::/32", "2001:db8::7", "::/0", "2001:db8:1::/48"))
        if form == "address":
            return base
        return f"{base}/{rng.choice((8, 16, 24, 31, 0))}" if ":" not in base else f"{base}/{rng.choice((16, 64, 120))}"

    def _bases(self, field: str, world: World, address: str) -> tuple[str, ...]:
        domains = (*world.domains, "cluster.local", "foreign.example")
        named = {
            "namespaces": _NAMESPACES,
            "source.namespace": _NAMESPACES,
            "serviceAccounts": _SERVICE_ACCOUNTS,
            "source.serviceAccount": _SERVICE_ACCOUNTS,
            "trustDomains": domains,
            "source.trustDomain": domains,
            "ipBlocks": SOURCES,
            "source.ip": SOURCES,
            "remoteIpBlocks": CLIENTS,
            "remote.ip": CLIENTS,
            "destination.ip": (address, second_address(address), "10.1.1.1"),
            "ports": PORTS,
            "destination.port": PORTS,
            "unknown.key": ("x",),
        }
        if field in ("principals", "source.principal"):
            return tuple(f"{domain}/{account}" for domain in domains for account in ACCOUNTS)
        return _TEXTS.get(field) or named[field]


def second_address(address: str) -> str:
    """Where the same workload listens as well."""
    return address.replace("127.20.", "127.30.", 1)


def sets(seed: int, number: int, worlds: tuple[World, ...]) -> Iterator[PolicySet]:
    """So many policy sets, the worlds in turn."""
    dealer = Dealer(random.Random(seed))
    for i in range(number):
        yield dealer.policy_set(i, worlds[i % len(worlds)])
