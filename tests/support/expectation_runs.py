"""Tables of tests asked of real Envoys, and what came back in the words of an expectation.

The table's world is made as `mizzen test` makes it. Each request is sent as its source would send it; what the echo
server was asked, what the caller got and what the access logs say becomes a `Seen`, which the product's own checks hold
against the same expectations.
"""

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import aiohttp
import expectation_envoys
import msgspec
from eventually import eventually
from expectation_envoys import ID, Bench, here
from yarl import URL

from mizzen.cli.test import Table
from mizzen.diagnose.expectations import asking, checks, running, seen
from mizzen.diagnose.expectations.tables import Case, Expect
from mizzen.diagnose.trace import names, request, verdict
from mizzen.diagnose.trace.world import Workload, World

_MANY, _ROUNDS = 60, 10
"""Requests that show a split, and how often so many more are sent for what is still to be seen."""
_AT_ONCE = 12
_SEEN_FOR_CERTAIN = 0.2
_OUTCOMES = {"via_upstream": "delivered", "fault_filter_abort": "aborted"}


class Caller:
    """Sends the requests of one source through one bench."""

    def __init__(self, bench: Bench, session: aiohttp.ClientSession) -> None:
        self._bench, self._session = bench, session
        self._count = 0
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def differences(self, case: Case, asked: request.Request) -> list[str]:
        """Where real Envoys answer otherwise than the table expects."""
        assert case.expect is not None
        if case.expect.shares is not None or case.expect.certain is False:
            return await self._choice(case.expect, asked)
        found = checks.check(_real(case.expect), await self._ask(asked))
        return [f"{case.title}: {each.field}: expected {each.expected}, is {each.actual}" for each in found]

    async def _choice(self, expect: Expect, asked: request.Request) -> list[str]:
        """Where something is left open, by many requests: they go nowhere else than expected, and wherever a share is
        not small; what is expected for certain is seen each time, and the likeliest of several outcomes among them."""
        plain = msgspec.structs.replace(_real(expect), shares=None, host=None, request=None, response=None)
        wanted, total = expect.shares or {}, 0
        due = {name for name, weight in wanted.items() if weight / sum(wanted.values()) >= _SEEN_FOR_CERTAIN}
        due = set() if expect.certain is False else due
        reached: set[str] = set()
        wrong: list[tuple[checks.Mismatch, ...]] = []
        for _ in range(_ROUNDS):
            answers = await asyncio.gather(*(self._ask(asked) for _ in range(_MANY)))
            total += len(answers)
            wrong += [differing for answer in answers if (differing := checks.check(plain, answer))]
            reached |= {str(answer.target) for answer in answers if wanted and answer.target is not None}
            if due <= reached and (expect.certain is not False or 0 < len(wrong) < total):
                break
        found: list[str] = []
        if wrong and (expect.certain is not False or len(wrong) == total):
            found = [f"{asked.path}: {each.field}: expected {each.expected}, is {each.actual}" for each in wrong[0]]
        if expect.certain is False and not wrong:
            found.append(f"{asked.path}: all {total} came to the same, and another outcome was foretold")
        found += [f"{asked.path}: nobody expects {name}" for name in reached - wanted.keys()]
        return found + [f"{asked.path}: nothing reaches {name}" for name in due - reached]

    async def _ask(self, asked: request.Request) -> seen.Seen:
        async with self._turns:
            return await self._exchange(asked)

    async def _exchange(self, asked: request.Request) -> seen.Seen:
        self._count += 1
        number = f"{self._bench.client.name}-{self._count}"
        message = asked.message()
        url = URL(f"http://{self._where(asked)}{asked.path}", encoded=True)
        headers = [*message.headers, ("Host", asked.authority), (ID, number)]
        async with self._session.request(asked.method, url, headers=headers, allow_redirects=False) as answer:
            echoed = await answer.json() if answer.content_type == "application/json" else {}
            status, told = answer.status, {name.lower(): value for name, value in answer.headers.items()}
        lines = await eventually(lambda: self._complete(number, echoed))
        return _seen(asked, status, told, echoed, lines)

    def _complete(self, number: str, echoed: dict[str, Any]) -> list[dict[str, Any]]:
        """The lines of all proxies on the way; empty while one is missing."""
        lines = self._bench.entries(number)
        ends = [line for line in lines if line["details"] != "via_upstream"]
        sides = {line["side"] for line in lines}
        pod = self._bench.world.find(echoed["who"]) if echoed else None
        arrived = pod is not None and self._bench.client.reference in sides and (not pod.proxy or len(lines) > 1)
        own = any(line["side"] == self._bench.client.reference for line in lines)
        return lines if arrived or (own and ends) else []

    def _where(self, asked: request.Request) -> str:
        world, client = self._bench.world, self._bench.client
        if client.proxy == "router":
            return f"{here(client.addresses[0])}:{_target_port(world, client, asked.port)}"
        resolved = names.resolve(world, client, asked.host)
        return f"{here(resolved.addresses[0])}:{asked.port}"


def _target_port(world: World, gateway: Workload, port: int) -> int:
    """The port of the gateway behind that of its Service."""
    for key, service in names.services(world):
        if service.spec.selector and service.spec.selector.items() <= gateway.labels.items():
            for target in names.behind(world, key, service, port) or ():
                return target.port
    return port


def _real(expect: Expect) -> Expect:
    """What the wire can tell: no rule that allows, and of a cluster that is not there no name."""
    missing = expect.flag == "NC"
    return msgspec.structs.replace(
        expect,
        certain=None,
        destination=None if missing else expect.destination,
        subset=None if missing else expect.subset,
        policy=expect.policy if expect.outcome == "denied" else None,
    )


def _seen(
    asked: request.Request, status: int, told: dict[str, str], echoed: dict[str, Any], lines: list[dict[str, Any]]
) -> seen.Seen:
    last = next((line for line in lines if line["details"] != "via_upstream"), lines[0])
    details = last["details"] or ""
    target = next((found for line in lines if (found := seen.target_of(line["cluster"] or "")) is not None), None)
    arrived = asked.message()
    if echoed:
        own = tuple((name, value) for name, value in echoed["headers"].items() if name not in ("host", ID))
        arrived = msgspec.structs.replace(arrived, path=echoed["path"], authority=echoed["host"], headers=own)
    trace = verdict.Trace(
        steps=(),
        outcome=_outcome(details, status, told),
        status=status,
        flag=last["flags"],
        details=details,
        certain=True,
        link="policy" if details.startswith("rbac_") else "",
        policy=details.partition("[")[2].removesuffix("]") if details.startswith("rbac_") else "",
    )
    return seen.Seen(
        trace=trace,
        target=target,
        workloads=(echoed["who"],) if echoed else (),
        message=arrived if echoed else None,
        sent=asked.message(),
        response=told,
        location=told.get("location", ""),
        policy=seen.policy_of(trace),
    )


def _outcome(details: str, status: int, told: dict[str, str]) -> Any:
    if details == "direct_response":
        return "redirected" if "location" in told else "responded"
    if details.startswith(("rbac_", "jwt_")):
        return "denied"
    return _OUTCOMES.get(details, "failed")


@contextlib.asynccontextmanager
async def calling(world: World, client: Workload, folder: pathlib.Path) -> AsyncIterator[Caller]:
    """A caller beside the client's proxy, or outside of a gateway."""
    own = here(client.addresses[0]) if client.proxy == "sidecar" else "127.0.0.1"
    async with contextlib.AsyncExitStack() as stack:
        bench = await stack.enter_async_context(expectation_envoys.running(world, client, folder))
        connector = aiohttp.TCPConnector(local_addr=(own, 0), force_close=True)
        unsaid = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
        session = aiohttp.ClientSession(connector=connector, skip_auto_headers=unsaid)
        yield Caller(bench, await stack.enter_async_context(session))


def _gateway(world: World) -> Workload:
    """The gateway of the table: the one that listens."""
    return next(pod for pod in world.gateways() if world.holdings(pod).listeners)


class Compared(NamedTuple):
    """One table, by `mizzen test` and by real Envoys."""

    asked: int
    """How many tests it has."""
    failing: list[str]
    """Those that do not hold for `mizzen test`."""
    differences: list[str]
    """Where real Envoys differ from the table."""


async def compare(file: pathlib.Path, folder: pathlib.Path) -> Compared:
    """Hold the table against both."""
    table = Table(str(file))
    world = table.world({})
    failing = [result.case.title for result in running.run(table.suite, world, {}) if not result.holds]
    by_client: dict[str, list[Case]] = {}
    for case in table.suite.tests:
        source = case.source or table.suite.defaults.source
        by_client.setdefault(source, []).append(case)
    differences: list[str] = []
    for number, (source, cases) in enumerate(by_client.items()):
        client = _gateway(world) if source == "outside" else world.find(source)
        own = folder / f"{file.stem}-{number}"
        own.mkdir()
        async with calling(world, client, own) as caller:
            for case in cases:
                asked = asking.build_request(case, table.suite.defaults)
                differences += await caller.differences(case, asked)
    return Compared(len(table.suite.tests), failing, differences)
