"""Requests of the truth table, drawn near the policies that they will meet.

A call is led step by step to match one rule, then in about every second case led away from it again in one respect. What
a call looks like to the evaluator is `seen_by_policies`; how it is made on the wire is `truth_calls`.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec
from truth_cards import CLIENTS, HEADERS, HOSTS, METHODS, PATHS, SNIS, SOURCES, second_address
from truth_policies import PolicySet
from truth_worlds import AUTO_PORTS, CLAIMS, HTTP_PORTS, METADATA, TCP_PORTS

from mizzen.api.decode import decode_object
from mizzen.api.policy import AuthorizationPolicy
from mizzen.diagnose.authorization import evaluation
from mizzen.diagnose.authorization.decision import Check, Match
from mizzen.diagnose.authorization.request import Request

Change = Callable[["Call"], "Call"]
Protocol = Literal["http1", "http2", "tcp"]
Security = Literal["none", "mutual", "through"]
"""`through`: TLS of the application's own, which the sidecar passes on unread."""

_STEPS = 120


_NO_RULE = Check(field="paths", values=(), holds=False)
"""What fails of a request whose path is refused before any rule."""


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
        self._rules = [
            msgspec.structs.replace(policy, spec=msgspec.structs.replace(policy.spec, rules=(rule,)))
            for policy in policies_of(policies)
            if policies.world.workload.is_selected_by(policy)
            for rule in policy.spec.rules
        ]
        self._values = _values_by_field(policies.documents)

    def calls(self, number: int) -> list[Call]:
        """Calls that are led to the rules in turn; every second time round, away again by one field."""
        turns = (divmod(i, len(self._rules) or 1) for i in range(number))
        return [self._call(self._rules[i] if self._rules else None, away=bool(turn % 2)) for turn, i in turns]

    def call_to(self, rule: int) -> Call:
        """A call that is led to the rule of that place among all, as far as it can be."""
        return self._lead_to(self._rules[rule], self._arbitrary())

    def _call(self, rule: AuthorizationPolicy | None, *, away: bool) -> Call:
        call = self._arbitrary()
        if rule is None or self._rng.random() < 0.03:
            return call
        call = self._lead_to(rule, call)
        call = self._lead_from(rule, call) if away else call
        return self._change(call) if self._rng.random() < 0.05 else call

    def _lead_from(self, rule: AuthorizationPolicy, call: Call) -> Call:
        """A call that misses the rule by one field, most often the last; any other change if there is no such call."""
        checks = self._checks(rule, call)
        changed = call
        for _ in range(_STEPS // 2 if checks else 0):
            check = checks[0] if self._rng.random() < 0.7 else self._rng.choice(checks)
            changed = self._change(call, check)
            if len(self._checks(rule, changed, failing=True)) == 1:
                break
        return changed

    def _lead_to(self, rule: AuthorizationPolicy, call: Call) -> Call:
        """Changes that do not lead away from matching that rule, until it matches or patience ends."""
        failing = self._checks(rule, call, failing=True)
        for _ in range(_STEPS):
            if not failing:
                break
            changed = self._change(call, self._rng.choice(failing) if self._rng.random() < 0.8 else None)
            now = self._checks(rule, changed, failing=True)
            if len(now) <= len(failing):
                call, failing = changed, now
        return call

    def _checks(self, rule: AuthorizationPolicy, call: Call, *, failing: bool = False) -> Sequence[Check]:
        held = evaluation.hold_rules((rule,), self._set.world.workload, seen_by_policies(call))
        if not held:
            return [_NO_RULE] if failing else []
        found = held[0]
        if isinstance(found, Match):
            return () if failing else found.checks
        return found.failed if failing else (*found.failed, *found.held)

    # -- attributes ---------------------------------------------------------------------------------------------------

    def _arbitrary(self) -> Call:
        call = Call(protocol="http1", security="none", port=8080, address=self._set.address, source=SOURCES[0])
        for change in (self._way, self._source, self._name, self._sni, self._method, self._host, self._path):
            call = change(call)
        return self._token(self._header(self._header(call)))

    def _change(self, call: Call, check: Check | None = None) -> Call:
        """Another call in one respect, if a check is given in one that matters to it."""
        ways = [change for pattern, change in self._changes() if check is None or re.search(pattern, check.field)]
        if check is not None and check.problem:
            ways = [self._way]
        return self._rng.choice(ways)(call)

    def _changes(self) -> tuple[tuple[str, Change], ...]:
        return (
            (r"rincipals|amespace|rviceAccount|rustDomain|source.principal|sni|[pP]orts?$|metadata|experim", self._way),
            (r"\.p?P?rincipals|not?P?rincipals|amespace|rviceAccount|rustDomain|source.principal", self._name),
            (r"ource.ip|pBlocks|emote.ip|emoteIp", self._source),
            (r"emote.ip|emoteIp", self._forwarded),
            (r"destination.ip", self._destination),
            (r"sni", self._sni),
            (r"osts|:authority|Host", self._host),
            (r"ethods|:method", self._method),
            (r"aths", self._path),
            (r"\[[xX]", self._header),
            (r"equestPrincipals|request.auth", self._token),
        )

    def _way(self, call: Call) -> Call:
        rng = self._rng
        protocol: Protocol = rng.choices(("http1", "http2", "tcp"), (62, 16, 22))[0]
        ports = (*TCP_PORTS, *AUTO_PORTS) if protocol == "tcp" else (*HTTP_PORTS, *HTTP_PORTS, *AUTO_PORTS)
        written = {value for field in ("ports", "destination.port") for value in self._values.get(field, ())}
        if rng.random() < 0.5:
            ports = tuple(port for port in ports if str(port) in written) or ports
        security: Security = rng.choices(("none", "mutual", "through"), (35, 60, 10 if protocol == "tcp" else 0))[0]
        return msgspec.structs.replace(call, protocol=protocol, port=rng.choice(ports), security=security)

    def _source(self, call: Call) -> Call:
        written = self._written(("ipBlocks", "notIpBlocks", "source.ip"), "127.")
        return msgspec.structs.replace(call, source=self._rng.choice((*SOURCES, *written, *written)))

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
        written = self._written(("remoteIpBlocks", "notRemoteIpBlocks", "remote.ip"), "")
        client = rng.choice((*CLIENTS, *written))
        chain = rng.choice((client, f"192.0.2.1, {client}", f"{client}, 192.0.2.1", "nobody", ""))
        return msgspec.structs.replace(call, headers=(*kept, *([("x-forwarded-for", chain)] if chain else [])))

    def _token(self, call: Call) -> Call:
        return msgspec.structs.replace(call, token=self._rng.randrange(len(CLAIMS)))

    def _written(self, fields: Sequence[str], start: str) -> list[str]:
        """Bare addresses in the set's policies."""
        found = (value for field in fields for value in self._values.get(field, ()))
        return [value for value in found if value.startswith(start) and re.fullmatch(r"[0-9.]+\.\d+|[0-9a-f:]+", value)]

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


def pairs(seed: int, sets: Sequence[PolicySet], per_rule: int, per_composition: int) -> list[Pair]:
    """The calls to each set: so many for each rule of a drill, and for each composition."""
    rng = random.Random(seed)
    numbers = ((one, per_rule * len(one.cards) or per_composition) for one in sets)
    return [Pair(policies=one, call=call) for one, number in numbers for call in Caller(rng, one).calls(number)]
