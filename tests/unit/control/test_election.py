"""Who leads and when, in virtual time: never two at once, whatever a network or a process does."""

import asyncio
import contextlib
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import virtual_loop
from virtual_loop import now

from mizzen.control.election import Election, lease_name, make_identity
from mizzen.settings import Leadership
from mizzen.sources.kube.client import Refused, Unreachable

LATENCY = 0.05
TIMING = Leadership()
NAMESPACE = "istio-system"


class Server:
    """Leases as an API server keeps them: whoever writes with an old resource version is refused."""

    def __init__(self) -> None:
        self.leases: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.writes = 0

    def call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        name = body["metadata"]["name"] if method == "POST" else path.rpartition("/")[2]
        held = self.leases.get(name)
        if method == "POST":
            if held is not None:
                raise Refused(409, "it exists")
            return self._store(name, {"metadata": {"name": name}, "spec": body["spec"]})
        if held is None:
            raise Refused(404, "not found")
        if method == "GET":
            return held
        assert method == "PATCH"
        if body["metadata"]["resourceVersion"] != held["metadata"]["resourceVersion"]:
            raise Refused(409, "the object has been modified")
        return self._store(name, {"metadata": held["metadata"], "spec": held["spec"] | body["spec"]})

    def _store(self, name: str, lease: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.writes += 1
        lease["metadata"] = lease["metadata"] | {"resourceVersion": str(self.version)}
        self.leases[name] = lease
        return lease

    @property
    def spec(self) -> dict[str, Any]:
        (lease,) = self.leases.values()
        return lease["spec"]


class Wire:
    """The way of one replica to the server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.broken = ""
        """`silent`: nothing arrives; `deaf`: requests arrive, answers are lost."""

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,  # noqa: ARG002
        content_type: str = "application/json",  # noqa: ARG002
    ) -> bytes:
        await asyncio.sleep(LATENCY * random.uniform(0.5, 1.5))
        if self.broken == "refused":
            raise Unreachable("connection refused")
        if self.broken != "silent":
            answer = json.dumps(self._server.call(method, path, json.loads(json.dumps(body))))
        if self.broken:
            await asyncio.Event().wait()
        await asyncio.sleep(LATENCY * random.uniform(0.5, 1.5))
        return answer.encode()


class Replica:
    """One candidate at work."""

    def __init__(self, mesh: "Replicas", name: str) -> None:
        self.name, self._mesh = name, mesh
        self.ahead = 0.0
        """Seconds by which its time of day is."""
        self.wire = Wire(mesh.server)
        self.election = Election(
            self.wire, NAMESPACE, "lock", make_identity(name), clock=now, calendar=lambda: 1.7e9 + now() + self.ahead
        )
        self.failure: Exception | None = None
        self.task = asyncio.ensure_future(self.election.run(self._lead))

    async def _lead(self) -> None:
        with self._mesh.term(self.name):
            if self.failure is not None:
                raise self.failure
            while True:
                assert self.election.leads
                await asyncio.sleep(0.25)

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    async def kill(self) -> None:
        """End without another word to the server."""
        self.wire.broken = "silent"
        await self.stop()


class Replicas:
    """Several, of which at most one may lead at any time."""

    def __init__(self, count: int = 3) -> None:
        self.server = Server()
        self.leader = ""
        self.terms: list[tuple[str, float]] = []
        self.ended = 0.0
        self.all = [Replica(self, f"istiod-{number}") for number in range(count)]

    @contextlib.contextmanager
    def term(self, name: str) -> Iterator[None]:
        assert not self.leader, f"{name} leads beside {self.leader}"
        self.leader = name
        self.terms.append((name, now()))
        try:
            yield
        finally:
            self.leader, self.ended = "", now()

    def one(self, name: str) -> Replica:
        return next(one for one in self.all if one.name == name)

    async def until_led(self, *, by_another_than: str = "") -> Replica:
        while self.leader in ("", by_another_than):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        return self.one(self.leader)

    async def stop(self) -> None:
        for one in self.all:
            assert not one.task.done(), one.task.exception()
            await one.stop()


def play(scenario: Any, count: int = 3) -> None:
    async def run() -> None:
        replicas = Replicas(count)
        async with asyncio.timeout(3600):
            await scenario(replicas)
        await replicas.stop()

    virtual_loop.run(run())


def test_one_of_them_leads_and_stays():
    async def scenario(replicas: Replicas) -> None:
        await replicas.until_led()
        await asyncio.sleep(600)
        assert len(replicas.terms) == 1
        assert replicas.server.spec["leaseTransitions"] == 0
        # One renewal each retry period, and nothing written by those who wait.
        assert replicas.server.writes == pytest.approx(600 / TIMING.retry, rel=0.2)

    play(scenario)


def test_a_leader_that_stops_hands_over_without_a_wait():
    async def scenario(replicas: Replicas) -> None:
        first = await replicas.until_led()
        await asyncio.sleep(30)
        await first.stop()
        assert replicas.server.spec["holderIdentity"] == ""
        stopped = now()
        replicas.all.remove(first)
        await replicas.until_led()
        assert now() - stopped < TIMING.retry * 2.2 + 1
        assert replicas.server.spec["leaseTransitions"] == 1

    play(scenario)


async def succeed_in_time(replicas: Replicas, leader: Replica) -> None:
    """Kill the leader: another one leads after its lease and not before."""
    killed = now()
    await leader.kill()
    replicas.all.remove(leader)
    await replicas.until_led()
    assert TIMING.lease - TIMING.retry < now() - killed < TIMING.lease + TIMING.retry * 2.2 + 1


def test_a_killed_leader_is_succeeded_after_its_lease_and_not_before():
    async def scenario(replicas: Replicas) -> None:
        first = await replicas.until_led()
        await asyncio.sleep(30)
        await succeed_in_time(replicas, first)

    play(scenario)


@pytest.mark.parametrize("broken", ["silent", "deaf", "refused"])
def test_a_leader_that_cannot_renew_has_ended_before_another_begins(broken):
    async def scenario(replicas: Replicas) -> None:
        first = await replicas.until_led()
        await asyncio.sleep(30)
        first.wire.broken = broken
        cut = now()
        await replicas.until_led(by_another_than=first.name)
        assert replicas.terms[-1][1] - replicas.ended >= TIMING.lease - TIMING.renew_deadline - 0.2
        if broken != "deaf":  # Whose renewals still arrive.
            assert replicas.ended - cut <= TIMING.renew_deadline + 0.1
        first.wire.broken = ""
        await asyncio.sleep(60)
        assert len(replicas.terms) == 2, "who comes back waits like all others"

    play(scenario)


def test_an_outage_that_is_shorter_than_the_deadline_changes_nothing():
    async def scenario(replicas: Replicas) -> None:
        first = await replicas.until_led()
        for _ in range(10):
            for one in replicas.all:
                one.wire.broken = "silent"
            await asyncio.sleep(4)
            for one in replicas.all:
                one.wire.broken = ""
            await asyncio.sleep(10)
        assert (replicas.leader, len(replicas.terms)) == (first.name, 1)

    play(scenario)


def test_clocks_that_jump_neither_take_the_lease_nor_keep_it():
    async def scenario(replicas: Replicas) -> None:
        first = await replicas.until_led()
        for hours in (24, -48, 1000, 0):
            for one in replicas.all:
                one.ahead = hours * 3600.0 * random.uniform(-1, 1)
            await asyncio.sleep(60)
        assert (replicas.leader, len(replicas.terms)) == (first.name, 1)
        first.ahead = 1e8
        await asyncio.sleep(30)
        await succeed_in_time(replicas, first)

    play(scenario)


def test_a_lease_taken_by_force_ends_the_term_at_the_next_renewal():
    async def scenario(replicas: Replicas) -> None:
        first = await replicas.until_led()
        stolen = {**replicas.server.spec, "holderIdentity": "somebody"}
        replicas.server._store("lock", {"metadata": {}, "spec": stolen})
        await asyncio.sleep(TIMING.retry + 1)
        assert not first.election.leads
        assert not replicas.leader

    play(scenario)


def test_a_lease_that_is_deleted_is_made_again():
    async def scenario(replicas: Replicas) -> None:
        await replicas.until_led()
        replicas.server.leases.clear()
        await asyncio.sleep(30)
        assert replicas.leader
        assert replicas.server.spec["holderIdentity"].startswith(replicas.leader)

    play(scenario)


def test_a_leader_that_fails_gives_the_lease_away_and_the_process_goes_on():
    async def scenario(replicas: Replicas) -> None:
        for one in replicas.all[:2]:
            one.failure = ValueError("a fault of ours")
        await asyncio.sleep(120)
        assert replicas.leader == replicas.all[2].name
        await asyncio.sleep(60)
        assert replicas.leader == replicas.all[2].name

    play(scenario)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_two_never_lead_at_once_and_somebody_leads_again(seed):
    rng = random.Random(seed)

    async def scenario(replicas: Replicas) -> None:
        for _ in range(60):
            rng.choice(replicas.all).wire.broken = rng.choice(["", "", "silent", "deaf", "refused"])
            if rng.random() < 0.2:
                victim = rng.choice(replicas.all)
                await (victim.kill() if rng.random() < 0.5 else victim.stop())
                replicas.all.remove(victim)
                replicas.all.append(Replica(replicas, f"{victim.name}i"))
            await asyncio.sleep(rng.uniform(0, 20))
        for one in replicas.all:
            one.wire.broken = ""
        await asyncio.sleep(60)
        assert replicas.leader

    play(scenario, count=4)


def test_names_and_identities():
    assert lease_name("istio-gateway-status-leader", "canary") == "istio-gateway-status-leader-canary"
    assert lease_name("istio-gateway-status-leader", "") == "istio-gateway-status-leader-default"
    assert make_identity("istiod-0") != make_identity("istiod-0")


def test_a_deadline_after_the_lease_is_refused():
    with pytest.raises(ValueError, match="outlasts"):
        Leadership(lease=10, renew_deadline=10, retry=2)
