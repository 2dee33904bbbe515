"""Envoys that were cut off at any moment hold, once they are back, what an Envoy holds that has just started.

Each is cut after another message of the control plane: before its clusters are at work, before it has listeners, routes
or secrets, in the middle of a push, or when it has everything. Meanwhile the mesh changes, and it may be another control
plane that they find. A last change shows whether any subscription was lost.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from eventually import eventually
from reconnect_bench import Bench, Process, Served, bench, traffic
from reconnect_cuts import NEVER
from reconnect_envoys import Envoy
from reconnect_mesh import AFTER, ALONE, BEFORE, GATEWAY, LATER, ON_DEMAND, SIDECAR, State

CHANGED = (
    r"^(cluster_manager\.cluster_|listener_manager\.(listener_(added|modified|removed|in_place)|total_.*_draining))"
)

KINDS = ["gateway", "sidecar"]
both_kinds = pytest.mark.parametrize("spec", [GATEWAY, SIDECAR], ids=KINDS)
control_planes = pytest.mark.parametrize("replaced", [False, True], ids=["same", "another"])

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(300)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="mizzen-cut-") as path:
        yield Path(path)


async def come_back(bed: Bench, envoys: Sequence[Envoy], state: State, *, replaced: bool) -> None:
    """Cut them off, change the mesh, and let them come back to what is there now."""
    for envoy in envoys:
        envoy.cut.cut()
    await (bed.control.replace(state) if replaced else bed.control.change(state))
    fresh = await bed.fresh()
    for envoy in envoys:
        envoy.cut.let()
    await bed.until_equal(envoys, fresh)


async def hear_more(bed: Bench, envoys: Sequence[Envoy]) -> None:
    """Whoever has lost a subscription does not hear of this change."""
    await bed.control.change(LATER)
    await bed.until_equal(envoys, await bed.fresh())


@control_planes
@pytest.mark.parametrize(
    "spec", [GATEWAY, SIDECAR, pytest.param(ON_DEMAND, marks=pytest.mark.slow)], ids=[*KINDS, "on-demand"]
)
async def test_one_that_was_cut_at_any_point_of_its_start_has_everything_when_it_is_back(folder, spec, replaced):
    async with bench(folder, spec, Served(folder)) as bed:
        envoys = await bed.start_cut_everywhere()
        assert len(envoys) >= (5 if spec is GATEWAY else 4), "clusters, endpoints, listeners, routes, secrets"
        assert sum(envoy.cut.is_cut for envoy in envoys) >= len(envoys) - 2
        await come_back(bed, envoys, AFTER, replaced=replaced)
        await hear_more(bed, envoys)


@control_planes
@pytest.mark.parametrize("spec", [GATEWAY, pytest.param(SIDECAR, marks=pytest.mark.slow)], ids=KINDS)
async def test_one_that_was_cut_at_any_point_of_a_push_has_everything_when_it_is_back(folder, spec, replaced):
    async with bench(folder, spec, Served(folder)) as bed:
        whole = await bed.start()
        await bed.until_whole(whole)
        before = whole.cut.passed
        await bed.control.change(AFTER)
        await bed.until_whole(whole)
        messages = whole.cut.passed - before
        assert messages > 4, "what comes, and what goes after that"
        await bed.control.change(BEFORE)
        envoys = [await bed.start() for _ in range(1, messages)]
        await bed.until_equal([whole, *envoys], await bed.fresh())
        for number, envoy in enumerate(envoys):
            envoy.cut.cut_in(number + 1)
        await bed.control.change(AFTER)
        await bed.until_cut_or_equal(envoys, await bed.fresh())
        assert sum(envoy.cut.is_cut for envoy in envoys) >= len(envoys) - 1
        await come_back(bed, [whole, *envoys], LATER, replaced=replaced)


async def test_one_that_comes_back_to_what_it_has_changes_nothing(folder):
    async with bench(folder, GATEWAY, Served(folder)) as bed:
        envoy = await bed.start()
        held = await bed.until_whole(envoy)
        before = await envoy.counters(CHANGED)
        assert before
        async with traffic(envoy):
            envoy.cut.cut()
            envoy.cut.let()
            await eventually(lambda: envoy.cut.passed >= 3)
            await bed.until_equal([envoy], held)
        assert envoy.cut.passed == 3, "what it names: endpoints, routes, secrets; neither clusters nor listeners"
        assert await envoy.counters(CHANGED) == before


@control_planes
async def test_requests_go_on_while_envoys_are_cut_off_and_brought_up_to_date(folder, replaced):
    async with bench(folder, GATEWAY, Served(folder)) as bed:
        envoys = [await bed.start()]
        await bed.until_whole(envoys[0])
        async with traffic(envoys[0]):
            await come_back(bed, envoys, AFTER, replaced=replaced)
            await hear_more(bed, envoys)


@control_planes
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
async def test_agents_bring_their_envoys_up_to_date_after_any_cut(folder, replaced, every):
    async with bench(folder, GATEWAY, Process(folder)) as bed:
        envoys = await bed.start_cut_everywhere(every)
        assert len(envoys) > 2
        async with traffic(envoys[0]):
            await come_back(bed, envoys, AFTER, replaced=replaced)
            await hear_more(bed, envoys)


@pytest.mark.slow
@control_planes
@both_kinds
@pytest.mark.parametrize("change", ALONE)
async def test_one_change_alone_is_told_after_a_cut_at_any_point(folder, spec, change, replaced):
    async with bench(folder, spec, Served(folder)) as bed:
        envoys = await bed.start_cut_everywhere()
        await come_back(bed, envoys, ALONE[change], replaced=replaced)
        await hear_more(bed, envoys)


@pytest.mark.slow
@control_planes
@both_kinds
@pytest.mark.parametrize("first", [1, 2, 3, 4, NEVER])
async def test_one_that_is_cut_again_while_it_comes_back_has_everything_in_the_end(folder, spec, first, replaced):
    async with bench(folder, spec, Served(folder)) as bed:
        envoys = [await bed.start(first) for _ in range(8)]
        await bed.until_cut_or_equal(envoys, await bed.fresh())
        for envoy in envoys:
            envoy.cut.cut()
        await bed.control.change(AFTER)
        fresh = await bed.fresh()
        for number, envoy in enumerate(envoys):
            envoy.cut.let(number + 1)
        await bed.until_cut_or_equal(envoys, fresh)
        await come_back(bed, envoys, LATER, replaced=replaced)
