"""What policies of the truth table may say: every field in every form of value, and values near what callers have.

A card is a field in one form, positive or negative. Values are the same as a caller's, cut, with stars, in another case,
or of a kind that nothing can be held against.
"""

import random

import msgspec
from truth_worlds import ACCOUNTS, FILTER, ISSUERS, World

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
IN_SOURCE = (
    "principals", "requestPrincipals", "namespaces", "serviceAccounts", "trustDomains", "ipBlocks", "remoteIpBlocks",
)  # fmt: skip
IN_OPERATION = ("hosts", "methods", "paths", "ports")
FORMS: dict[str, tuple[str, ...]] = {
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
    **dict.fromkeys(("ports", "destination.port"), ("exact", "wrong")),
    "unknown.key": ("exact",),
}


class Card(msgspec.Struct, frozen=True):
    """A field in one form; `excluded` for the list of values that must not match."""

    field: str
    form: str
    excluded: bool

    @property
    def place(self) -> str:
        """The part of a rule that holds the field."""
        return "from" if self.field in IN_SOURCE else "to" if self.field in IN_OPERATION else "when"

    @property
    def is_wrong(self) -> bool:
        """Whether no request can be held against it."""
        return self.form == "wrong" or self.field == "unknown.key"


def deck() -> list[Card]:
    """All cards."""
    return [
        Card(field, form, excluded) for field, forms in FORMS.items() for form in forms for excluded in (False, True)
    ]


def second_address(address: str) -> str:
    """Where the same workload listens as well."""
    return address.replace("127.20.", "127.30.", 1)


class Values:
    """Draws values for cards, for policies of one workload in one world."""

    def __init__(self, rng: random.Random, world: World, address: str) -> None:
        self._rng = rng
        self._world = world
        self._address = address

    def value(self, field: str, form: str) -> str:
        """One value of that form."""
        base = self._rng.choice(self._bases(field))
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

    def _bases(self, field: str) -> tuple[str, ...]:
        domains = (*self._world.domains, "cluster.local", "foreign.example")
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
            "destination.ip": (self._address, second_address(self._address), "10.1.1.1"),
            "ports": PORTS,
            "destination.port": PORTS,
            "unknown.key": ("x",),
        }
        if field in ("principals", "source.principal"):
            return tuple(f"{domain}/{account}" for domain in domains for account in ACCOUNTS)
        return _TEXTS.get(field) or named[field]
