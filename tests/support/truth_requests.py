"""Requests of the truth table, drawn near the policies that they will meet.

A call is led step by step to match one rule, then in about every second case led away from it again in one respect. What
a call looks like to the evaluator is `seen_by_policies`; how it is made on the wire is `truth_calls`.
"""

import random
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from truth_policies import CLIENTS, HEADERS, HOSTS, METHODS, PATHS, SNIS, SOURCES, PolicySet, second_address
from truth_worlds import AUTO_PORTS, CLAIMS, HTTP_PORTS, METADATA, TCP_PORTS

from mizzen.api.decode import decode_object
from mizzen.api.policy import AuthorizationPolicy
from mizzen.diagnose.authorization import evaluation
from mizzen.diagnose.authorization.decision import Match, Miss
from mizzen.diagnose.authorization.request import Request

Protocol = Literal["http1", "http2", "tcp"]
Security = Literal["none", "mutual", "through"]
"""`through`: TLS of the application's own, which the sidecar passes on unread."""

_STEPS = 60


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request or connection as a caller makes it."""

    protocol: Protocol
    security: Security
    port: int
    address: str
    source: str
    identity: str = ""
    sni: str = ""
    method: str = "GET"
    host: str = "shop.example"
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    token: int = 0


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A policy set and a call to its workload."""

    policies: PolicySet
    call: Call


def seen_by_policies(call: Call) -> Request:
    """The call as an evaluator is told of it."""
    is_http = call.protocol != "tcp"
    request = Request(
        is_http=is_http,
        principal=call.identity if call.security == "mutual" else "",
        source_ip=call.source,
        destination_ip=call.address,
        port=call.port,
        sni=call.sni if call.security != "none" else "",
    )
    if not is_http:
        return request
    return msgspec.structs.replace(
        request, method=call.method, host=call.host, path=call.path, headers=call.headers,
        claims=CLAIMS[call.token], metadata=METADATA,
    )  # fmt: skip


def policies_of(policies: PolicySet) -> tuple[AuthorizationPolicy, ...]:
    """The objects of a set."""
    found = []
    for document in policies.documents:
        decoded = decode_object(document)
        assert isinstance(decoded.object, AuthorizationPolicy), decoded.problems
        found.append(decoded.object)
    return tuple(found)


class Caller:
    """Draws the calls to one policy set."""

    def __init__(self, rng: random.Random, policies: PolicySet) -> None:
        self._rng = rng
        self._set = policies
        self._objects = policies_of(policies)
        self._values = _values_by_field(policies.documents)

    def calls(self, number: int) -> list[Call]:
        return [self._call() for _ in range(number)]

    def _call(self) -> Call:
        rng = self._rng
        call = self._arbitrary()
        rules = self._held(call)
        if rules and rng.random() < 0.93:
            call = self._lead_to(rng.randrange(len(rules)), call)
            for _ in range(rng.choices((0, 1, 2), (45, 45, 10))[0]):
                call = self._change(call)
        return call

    def _held(self, call: Call) -> Sequence[Match | Miss]:
        return evaluation.hold_rules(self._objects, self._set.world.workload, seen_by_policies(call))

    def _lead_to(self, rule: int, call: Call) -> Call:
        """Changes that do not lead away from matching that rule, until it matches or patience ends."""
        failing = self._failing(rule, call)
        for _ in range(_STEPS):
            if not failing:
                break
            changed = self._change(call)
            now = self._failing(rule, changed)
            if now <= failing:
                call, failing = changed, now
        return call

    def _failing(self, rule: int, call: Call) -> int:
        held = self._held(call)
        found = held[rule] if rule < len(held) else None
        return 0 if isinstance(found, Match) else (len(found.failed) or 99) if found is not None else 99

    # -- attributes ---------------------------------------------------------------------------------------------------

    def _arbitrary(self) -> Call:
        call = Call(protocol="http1", security="none", port=8080, address=self._set.address, source=SOURCES[0])
        for change in (self._way, self._source, self._name, self._sni, self._method, self._host, self._path):
            call = change(call)
        return self._token(self._header(self._header(call)))

    def _change(self, call: Call) -> Call:
        changes = (
            self._way, self._source, self._name, self._sni, self._method, self._host, self._path, self._header,
            self._header, self._token, self._destination, self._forwarded,
        )  # fmt: skip
        return self._rng.choice(changes)(call)

    def _way(self, call: Call) -> Call:
        rng = self._rng
        protocol: Protocol = rng.choices(("http1", "http2", "tcp"), (62, 16, 22))[0]
        ports = (*TCP_PORTS, *AUTO_PORTS) if protocol == "tcp" else (*HTTP_PORTS, *HTTP_PORTS, *AUTO_PORTS)
        security: Security = rng.choices(("none", "mutual", "through"), (35, 60, 10 if protocol == "tcp" else 0))[0]
        return msgspec.structs.replace(call, protocol=protocol, port=rng.choice(ports), security=security)

    def _source(self, call: Call) -> Call:
        return msgspec.structs.replace(call, source=self._rng.choice(SOURCES))

    def _destination(self, call: Call) -> Call:
        address = self._rng.choice((self._set.address, second_address(self._set.address)))
        return msgspec.structs.replace(call, address=address)

    def _name(self, call: Call) -> Call:
        return msgspec.structs.replace(call, identity=self._rng.choice(self._set.world.identities))

    def _sni(self, call: Call) -> Call:
        sni = self._text(("", *SNIS, SNIS[0].title()), ("connection.sni",))
        is_name = all(label and label.strip("-") == label for label in sni.split(".")) and "*" not in sni
        return msgspec.structs.replace(call, sni=sni) if is_name or not sni else call

    def _method(self, call: Call) -> Call:
        return msgspec.structs.replace(call, method=self._rng.choice(METHODS))

    def _host(self, call: Call) -> Call:
        fields = ("hosts", "notHosts", "request.headers[:authority]", "request.headers[Host]")
        host = self._text((*HOSTS, HOSTS[0].upper()), fields)
        return msgspec.structs.replace(call, host=host) if host else call

    def _path(self, call: Call) -> Call:
        path = self._text(PATHS, ("paths", "notPaths")).replace("{**}", self._rng.choice(("", "x", "x/y")))
        path = path.replace("{*}", self._rng.choice(("v1", "v9.x")))
        path = path if path.startswith("/") else f"/{path}"
        if self._rng.random() < 0.3:
            path = self._disguise(path)
        return call if " " in path or not path.startswith("/") else msgspec.structs.replace(call, path=path)

    def _disguise(self, path: str) -> str:
        """The path written in another way, which may or may not mean the same."""
        rng = self._rng
        place = rng.randrange(len(path) + 1)
        slash = path.index("/", rng.randrange(max(path.rindex("/"), 0) + 1))
        before, after = path[:slash], path[slash + 1 :]
        return rng.choice(
            (
                f"{path}?a=/api", f"{path}/", f"{before}//{after}", f"{before}/./{after}", f"{before}/x/../{after}",
                f"{before}/%2e/{after}", f"{before}/x/%2E./{after}", f"{before}%2F{after}", f"{before}%5c{after}",
                f"{before}\\{after}", f"/..{path}", f"{path};x=1", path.swapcase(), f"{path}%20", f"{path}%c3%a9",
                f"{path[:place]}%{ord(path[place - 1]):02x}{path[place:]}", f"{path}/..", f"{path}%", f"{path}%2500",
                f"{path[:place]}%00{path[place:]}", f"{path}#a", f"{path}^|", f"{path}%7E%41%3b", f"{path}/.",
            )
        )  # fmt: skip

    def _header(self, call: Call) -> Call:
        name = self._rng.choice(sorted(HEADERS))
        kept = [header for header in call.headers if header[0] != name]
        if self._rng.random() < 0.75:
            value = self._text(HEADERS[name], (f"request.headers[{name}]",)).strip()
            kept += [(name, part) for part in value.split(",")] if value.isprintable() else []
        return msgspec.structs.replace(call, headers=tuple(kept))

    def _forwarded(self, call: Call) -> Call:
        rng = self._rng
        kept = [header for header in call.headers if header[0] != "x-forwarded-for"]
        client = rng.choice(CLIENTS)
        chain = rng.choice((client, f"192.0.2.1, {client}", f"{client}, 192.0.2.1", "nobody", ""))
        return msgspec.structs.replace(call, headers=(*kept, *([("x-forwarded-for", chain)] if chain else [])))

    def _token(self, call: Call) -> Call:
        return msgspec.structs.replace(call, token=self._rng.randrange(len(CLAIMS)))

    def _text(self, usual: Sequence[str], fields: Sequence[str]) -> str:
        """One of the usual texts, or one that stands near a value of the set's policies."""
        rng = self._rng
        written = [value for field in fields for value in self._values.get(field, ())]
        if not written or rng.random() < 0.3:
            return rng.choice(usual)
        value = rng.choice(written)
        if value == "*":
            return rng.choice(usual)
        if value.startswith("*"):
            value = rng.choice(("", "x", *(text[:3] for text in usual))) + value[1:]
        elif value.endswith("*"):
            value = value[:-1] + rng.choice(("", "x", *(text[-3:] for text in usual)))
        return value.swapcase() if rng.random() < 0.08 else value


def _values_by_field(documents: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for document in documents:
        for rule in document["spec"]["rules"]:
            parts = [part.get("source") or part["operation"] for part in (*rule.get("from", ()), *rule.get("to", ()))]
            parts += [{c["key"]: c.get("values") or c["notValues"]} for c in rule.get("when", ())]
            for part in parts:
                for field, values in part.items():
                    found.setdefault(field, []).extend(values)
    return found


def pairs(seed: int, sets: Sequence[PolicySet], per_set: int) -> list[Pair]:
    """That many calls to each set."""
    rng = random.Random(seed)
    return [Pair(policies=one, call=call) for one in sets for call in Caller(rng, one).calls(per_set)]
