"""When changes are committed, whom they wake, and that nobody is held up by a slow one. Time is virtual."""

import asyncio
import contextlib
from collections.abc import Iterator

import mesh_of_resources
import pytest
import virtual_loop
from virtual_loop import now

from mizzen.compile.resource import CLUSTER, ROUTE
from mizzen.incremental import Engine
from mizzen.model.proxy import Proxy
from mizzen.settings import Push as PushSettings
from mizzen.xds import metrics
from mizzen.xds.costs import Costs
from mizzen.xds.pace import Pace
from mizzen.xds.push import ENDPOINT_REASON, Debounce, Pusher, Throttle
from mizzen.xds.roots import Followed, Push, Roots


def proxy(namespace: str = "default") -> Proxy:
    return Proxy(id=f"sidecar~1.1.1.1~a.{namespace}~x", kind="sidecar", ip_addresses=(), name="a", namespace=namespace)


class Listening:
    """A follower that notes when it is pushed to."""

    def __init__(self, roots: Roots, namespace: str = "default", type_url: str = CLUSTER) -> None:
        self.due: set[str] = set()
        self.pushes: list[tuple[float, Push]] = []
        self.followed: Followed = roots.follow(self, proxy(namespace), type_url, None)
        self.followed.fetch()

    def reached(self, type_url: str) -> None:
        self.due.add(type_url)

    def stale(self) -> Iterator[Followed]:
        return iter((self.followed,) if self.followed.root.stale else ())

    @property
    def is_due(self) -> bool:
        return bool(self.due)

    def push(self, push: Push) -> None:
        self.pushes.append((round(now(), 3), push))
        self.due.clear()


class Setting:
    """A pusher over a small mesh, in virtual time."""

    def __init__(self, pace: Pace | None = None, **settings) -> None:
        self.engine = Engine()
        self.generator = mesh_of_resources.generator(self.engine, [(CLUSTER, "a", "1"), (CLUSTER, "ns/other/b", "1")])
        self.roots = Roots(self.generator)
        self.pusher = Pusher(self.generator, self.roots, PushSettings(**settings), pace or Pace(), clock=now)

    def feed(self, name: str, content: str | None, reason: str = "config") -> None:
        key = mesh_of_resources.key(CLUSTER, name)
        self.pusher.feed(key, mesh_of_resources.build(CLUSTER, name, content) if content else None, reason)

    @contextlib.asynccontextmanager
    async def running(self):
        self.pusher.open()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self.pusher.run())
            yield self
            task.cancel()


def in_virtual_time(test):
    """Run an asynchronous test on the virtual loop."""

    def run():
        virtual_loop.run(test())

    run.__name__ = test.__name__
    return run


# -- debounce ---------------------------------------------------------------------------------------------------------


def test_changes_are_due_after_quiet_and_never_later_than_the_longest_wait():
    debounce = Debounce(quiet=0.1, longest=1.0)
    assert debounce.wait(5.0) == 0.0
    debounce.add(5.0)
    assert debounce.wait(5.0) == pytest.approx(0.1)
    debounce.add(5.9)
    assert debounce.wait(5.95) == pytest.approx(0.05)
    debounce.add(5.99)
    assert debounce.wait(5.99) == pytest.approx(0.01)
    assert debounce.wait(6.5) == 0.0
    debounce.reset()
    assert debounce.first is None


@in_virtual_time
async def test_a_burst_is_one_push():
    async with Setting().running() as setting:
        listening = Listening(setting.roots)
        for content in "234":
            setting.feed("a", content)
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
    [(at, push)] = listening.pushes
    assert at == 0.2
    assert (push.since, push.reasons) == (0.0, frozenset({"config"}))


@in_virtual_time
async def test_changes_without_end_are_pushed_after_the_longest_wait():
    async with Setting(debounce_max=1.0).running() as setting:
        listening = Listening(setting.roots)
        for number in range(50):
            setting.feed("a", f"x{number}")
            await asyncio.sleep(0.05)
    assert [at for at, _ in listening.pushes] == [1.0, 2.0]


@in_virtual_time
async def test_endpoints_may_go_without_debouncing():
    async with Setting(debounce_endpoints=False).running() as setting:
        listening = Listening(setting.roots)
        setting.feed("a", "2", ENDPOINT_REASON)
        await asyncio.sleep(0.01)
        assert [at for at, _ in listening.pushes] == [0.0]
        setting.feed("a", "3")
        setting.feed("a", "4", ENDPOINT_REASON)
        await asyncio.sleep(0.05)
        assert len(listening.pushes) == 1
        await asyncio.sleep(0.1)
        assert len(listening.pushes) == 2


class Iterations:
    """A follower of several roots that notes in which iteration of the loop each is fetched."""

    def __init__(self, roots: Roots, names: str) -> None:
        self.count = 0
        self.fetched_in: list[int] = []
        self.followed = [roots.follow(self, proxy(), CLUSTER, frozenset({name})) for name in names]
        self.is_due = False
        for each in self.followed:
            each.fetch()

    def reached(self, _: str) -> None:
        self.fetched_in.append(self.count)

    def stale(self) -> Iterator[Followed]:
        asyncio.get_running_loop().call_soon(self._count)
        return (each for each in self.followed if each.root.stale)

    def push(self, _: Push) -> None:
        pass

    def _count(self) -> None:
        self.count += 1
        if len(self.fetched_in) < len(self.followed):
            asyncio.get_running_loop().call_soon(self._count)


@in_virtual_time
async def test_the_loop_goes_on_between_the_roots_of_a_proxy():
    async with Setting(Pace(slice_seconds=0.0)).running() as setting:
        iterations = Iterations(setting.roots, "abc")
        for name in "abc":
            setting.feed(name, "2")
        await asyncio.sleep(0.2)
    assert len(set(iterations.fetched_in)) == 3


# -- commit -----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_nothing_is_committed_before_its_time():
    async with Setting().running() as setting:
        setting.feed("c", "1")
        await asyncio.sleep(0.09)
        assert setting.engine.peek(mesh_of_resources.key(CLUSTER, "c")) is None
        await asyncio.sleep(0.02)
        assert setting.engine.peek(mesh_of_resources.key(CLUSTER, "c")) is not None
        setting.feed("c", None)
        await asyncio.sleep(0.11)
        assert setting.engine.peek(mesh_of_resources.key(CLUSTER, "c")) is None


@in_virtual_time
async def test_the_first_state_is_committed_at_once():
    setting = Setting()
    setting.feed("c", "1")
    assert not setting.pusher.ready
    setting.pusher.open()
    assert setting.pusher.ready
    assert setting.engine.peek(mesh_of_resources.key(CLUSTER, "c")) is not None


@in_virtual_time
async def test_only_those_whose_resources_changed_are_woken():
    async with Setting().running() as setting:
        here, there = Listening(setting.roots), Listening(setting.roots, "other")
        routes = Listening(setting.roots, type_url=ROUTE)
        setting.feed("ns/other/b", "2")
        await asyncio.sleep(1)
        assert (len(here.pushes), len(there.pushes), len(routes.pushes)) == (0, 1, 0)
        setting.feed("a", "1")
        await asyncio.sleep(1)
        assert (len(here.pushes), len(there.pushes)) == (0, 1), "an equal value is no change"


@in_virtual_time
async def test_a_value_that_a_newcomer_saw_first_still_reaches_the_others():
    async with Setting().running() as setting:
        first = Listening(setting.roots)
        setting.generator.apply({mesh_of_resources.key(CLUSTER, "a"): mesh_of_resources.build(CLUSTER, "a", "2")})
        Listening(setting.roots)
        assert first.due == {CLUSTER}


@in_virtual_time
async def test_a_class_that_cannot_be_compiled_keeps_its_last_good_resources():
    async with Setting().running() as setting:
        here, there = Listening(setting.roots), Listening(setting.roots, "other")
        good = there.followed.fetch()
        before = metrics.INTERNAL_ERRORS.value()
        setting.pusher.feed(mesh_of_resources.key(CLUSTER, "ns/other/b"), b"broken")
        setting.feed("a", "2")
        await asyncio.sleep(1)
        assert len(here.pushes) == 1
        assert there.pushes == []
        assert there.followed.fetch() is good
        assert metrics.INTERNAL_ERRORS.value() > before
        setting.feed("ns/other/b", "3")
        await asyncio.sleep(1)
        assert len(there.pushes) == 1


@in_virtual_time
async def test_what_departed_proxies_needed_is_forgotten():
    async with Setting().running() as setting:
        listening = Listening(setting.roots)
        assert len(setting.engine) > 0
        setting.roots.leave(listening, listening.followed)
        assert len(setting.roots) == 0
        await asyncio.sleep(31)
        assert len(setting.engine) == 0


@in_virtual_time
async def test_reasons_merge():
    async with Setting().running() as setting:
        listening = Listening(setting.roots)
        setting.feed("a", "2", "service")
        setting.feed("z", "2", ENDPOINT_REASON)
        await asyncio.sleep(1)
    assert listening.pushes[0][1].reasons == {"service", ENDPOINT_REASON}
    older = Push(since=1.0, reasons=frozenset({"proxy"}))
    merged = listening.pushes[0][1].merge(older)
    assert (merged.since, merged.reasons) == (0.0, {"service", ENDPOINT_REASON, "proxy"})


@in_virtual_time
async def test_a_push_knows_what_was_changed_how_and_nothing_besides():
    async with Setting().running() as setting:
        listening = Listening(setting.roots)
        setting.feed("a", "2")
        setting.feed("new", "1")
        setting.feed("ns/other/b", "1")
        await asyncio.sleep(1)
        setting.feed("new", None)
        await asyncio.sleep(1)
        setting.feed("a", "2")
        await asyncio.sleep(1)
    made = [[(change.object[-1], change.how) for change in push.causes[0].weights] for _, push in listening.pushes]
    assert made == [[("a", "updated"), ("new", "added")], [("new", "removed")]]
    assert [push.changes for push in setting.pusher.history.latest] == [2, 1], "an equal value is no push"


def test_pushes_that_merge_keep_the_latest_of_their_causes():
    costs = Costs()
    pushes = [Push(since=float(n), reasons=frozenset(), causes=(costs.open([], float(n)),)) for n in range(40)]
    merged = pushes[0]
    for push in pushes[1:]:
        merged = push.merge(merged)
    assert [cause.at for cause in merged.causes] == [float(n) for n in range(24, 40)]
    assert merged.merge(merged).causes == merged.causes


# -- throttle ---------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_so_many_at_once():
    throttle = Throttle(2, patience=100)
    active = most = 0

    async def push():
        nonlocal active, most
        async with throttle.place():
            active += 1
            most = max(most, active)
            await asyncio.sleep(1)
            active -= 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(6):
            tasks.create_task(push())
    assert most == 2
    assert now() == pytest.approx(3)


@in_virtual_time
async def test_nobody_waits_longer_than_patience_for_each_before():
    throttle = Throttle(1, patience=0.5)

    async def push(seconds):
        async with throttle.place():
            began = now()
            await asyncio.sleep(seconds)
        return began

    async with asyncio.TaskGroup() as tasks:
        pushes = [tasks.create_task(push(seconds)) for seconds in (0.1, 60, 60, 60)]
        await asyncio.sleep(0.2)
        pushes.append(tasks.create_task(push(60)))
    assert [push.result() for push in pushes] == pytest.approx([0, 0.1, 0.6, 1.1, 1.6])


@in_virtual_time
async def test_a_place_is_not_lost_with_who_waited_for_it():
    throttle = Throttle(1, patience=100)

    async def push(seconds):
        async with throttle.place():
            await asyncio.sleep(seconds)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(push(1))
        waiting = [tasks.create_task(push(1)) for _ in range(3)]
        await asyncio.sleep(0.5)
        waiting[1].cancel()
        await asyncio.sleep(0.5)
        waiting[0].cancel()
    assert waiting[2].done()
    async with asyncio.timeout(0.1), throttle.place():
        pass


@in_virtual_time
async def test_a_slow_one_gives_its_place_away_once():
    throttle = Throttle(1, patience=0.5)

    async def slow():
        async with throttle.place():
            await asyncio.sleep(60)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(slow())
        await asyncio.sleep(0)
        for _ in range(3):
            async with throttle.place():
                assert now() == pytest.approx(0.5)
    async with throttle.place():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), throttle.place():
                pass


# -- history ----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_push_is_remembered_with_its_objects_and_whom_it_told():
    everybodys, others = mesh_of_resources.key(CLUSTER, "a"), mesh_of_resources.key(CLUSTER, "ns/other/b")
    async with Setting().running() as setting:
        listening = [Listening(setting.roots), Listening(setting.roots, "other")]
        setting.feed("a", "2")
        await asyncio.sleep(1)
        setting.feed("ns/other/b", "2")
        await asyncio.sleep(1)
    first, second = setting.pusher.history.latest
    assert [len(each.pushes) for each in listening] == [1, 2]
    assert (first.objects, first.told, first.reasons) == ((everybodys,), 2, ("config",))
    assert (second.objects, second.told, second.changes) == ((others,), 1, 1)
    assert first.seconds == pytest.approx(0.1)
