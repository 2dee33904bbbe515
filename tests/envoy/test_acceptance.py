"""Real Envoys take everything: each recorded case, as each of its proxies, compiled for upstream Envoy and served.

The compiled resources come over delta ADS from the real server, secrets from the agent's server on a Unix socket, into
an Envoy that lives in a network in which it may bind every address. Nothing may be refused, left warming, or warned of.
"""

import asyncio
from collections import Counter

import acceptance_verdict
import golden
import pytest

pytestmark = pytest.mark.envoy

CASES = ["base", *golden.case_names()]
KINDS = {"cds": "clusters", "eds": "endpoints", "lds": "listeners", "rds": "routes", "ecds": "extensions"}
AT_ONCE = 2
"""Envoys that run side by side."""


class Tally:
    """What was sent over the whole run."""

    def __init__(self) -> None:
        self.cases = 0
        self.envoys = 0
        self.sent: Counter[str] = Counter()

    def __str__(self) -> str:
        sent = ", ".join(f"{number} {kind.upper()}" for kind, number in sorted(self.sent.items()))
        return f"{self.cases} cases, {self.envoys} Envoys, resources sent: {sent}"


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest):
    tally = Tally()
    yield tally
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\nacceptance: {tally}")


@pytest.mark.parametrize("name", CASES)
async def test_envoy_takes_all_that_a_case_compiles_to(name: str, tally: Tally) -> None:
    case = golden.load_case(name)
    places = asyncio.Semaphore(AT_ONCE)

    async def judge(proxy: str) -> list[str]:
        async with places:
            verdict = await acceptance_verdict.judge(golden.engine_of(case), case, proxy)
        tally.envoys += 1
        tally.sent.update(verdict.sent)
        want = golden.expected(case, proxy)
        absent = [f"no {kind} were sent" for short, kind in KINDS.items() if want[kind] and not verdict.sent.get(short)]
        return [f"{proxy}: {fault}" for fault in (*absent, *verdict.faults)]

    found = await asyncio.gather(*map(judge, case.look_from))
    tally.cases += 1
    assert not any(found), "\n".join(fault for faults in found for fault in faults)


def test_resources_of_every_type_were_among_them(tally: Tally) -> None:
    """The run above proves something only if there was something to take."""
    if tally.cases < len(CASES):
        pytest.skip("only a part of the cases was run")
    assert tally.envoys > len(CASES)
    assert all(tally.sent[kind] > 0 for kind in ("cds", "eds", "lds", "rds", "sds", "ecds")), str(tally)
