"""What the planner does next, from what is wanted and what runs."""

import msgspec
from local_objects import deployment, stateful_set, template

from mizzen.local import plan as planner
from mizzen.local.plan import RunningPod, Start, Stop
from mizzen.local.workloads import PlannedPod, expand

NEW = ("python3", "new.py")


def running(planned: PlannedPod, ready: bool = True, stopping: bool = False) -> RunningPod:
    return RunningPod(
        key=planned.key,
        owner=planned.owner,
        ordinal=planned.ordinal,
        revision=planned.revision,
        ready=ready,
        stopping=stopping,
    )


def names(actions: tuple[planner.Action, ...]) -> list[str]:
    return [
        f"start {action.planned.key.name}" if isinstance(action, Start) else f"stop {action.key.name}"
        for action in actions
    ]


def test_everything_starts_in_an_empty_mesh():
    pods = expand([deployment("cart", replicas=2), stateful_set("ledger")])
    assert planner.plan(pods, []) == tuple(Start(pod) for pod in pods)


def test_nothing_is_done_when_all_is_as_wanted():
    pods = expand([deployment("cart", replicas=2), stateful_set("ledger")])
    assert planner.plan(pods, [running(pod, ready=False) for pod in pods]) == ()


def test_a_pod_of_an_object_that_is_gone_stops_at_once():
    (pod,) = expand([deployment("cart")])
    assert planner.plan([], [running(pod, ready=False)]) == (Stop(pod.key, "Deployment shop/cart is gone"),)


def test_scaling_down_stops_the_surplus_only():
    three, two = expand([deployment("cart", replicas=3)]), expand([deployment("cart", replicas=2)])
    surplus = ({pod.key for pod in three} - {pod.key for pod in two}).pop()
    assert planner.plan(two, [running(pod) for pod in three]) == (Stop(surplus, "no longer wanted"),)


def test_a_new_generation_starts_beside_the_old_one():
    old = expand([deployment("cart", replicas=2)])
    new = expand([deployment("cart", template("cart", NEW), replicas=2)])
    assert planner.plan(new, [running(pod) for pod in old]) == tuple(Start(pod) for pod in new)


def test_the_old_generation_stops_when_all_of_the_new_one_is_ready():
    old = expand([deployment("cart", replicas=2)])
    new = expand([deployment("cart", template("cart", NEW), replicas=2)])
    half = [*map(running, old), running(new[0]), running(new[1], ready=False)]
    assert planner.plan(new, half) == ()
    whole = [running(pod) for pod in (*old, *new)]
    assert {action.key for action in planner.plan(new, whole)} == {pod.key for pod in old}


def test_a_stateful_set_changes_one_pod_at_a_time_from_the_top():
    old = expand([stateful_set("ledger", replicas=3)])
    new = expand([stateful_set("ledger", template("ledger", NEW), replicas=3)])
    assert names(planner.plan(new, [running(pod) for pod in old])) == ["stop ledger-2"]
    stopping = [*map(running, old[:2]), running(old[2], stopping=True)]
    assert planner.plan(new, stopping) == ()
    gone = [running(pod) for pod in old[:2]]
    assert names(planner.plan(new, gone)) == ["start ledger-2"]
    starting = [*gone, running(new[2], ready=False)]
    assert planner.plan(new, starting) == ()
    assert names(planner.plan(new, [*gone, running(new[2])])) == ["stop ledger-1"]


def test_a_pod_that_does_not_work_is_replaced_although_others_are_not_ready():
    old = expand([stateful_set("ledger", replicas=2)])
    new = expand([stateful_set("ledger", template("ledger", NEW), replicas=2)])
    broken = [running(pod, ready=False) for pod in old]
    assert names(planner.plan(new, broken)) == ["stop ledger-1"]


def test_a_pod_that_is_stopping_is_left_alone_and_comes_again_when_it_is_gone():
    (pod,) = expand([stateful_set("ledger", replicas=1)])
    assert planner.plan([], [running(pod, stopping=True)]) == ()
    assert planner.plan([pod], [running(pod, stopping=True)]) == ()
    assert planner.plan([pod], []) == (Start(pod),)


def test_going_back_to_the_old_template_keeps_the_old_pods_and_stops_the_new():
    old = expand([deployment("cart")])
    new = expand([deployment("cart", template("cart", NEW))])
    both = [running(old[0]), running(new[0], ready=False)]
    assert names(planner.plan(old, both)) == [f"stop {new[0].key.name}"]


def test_repeated_planning_reaches_what_is_wanted_and_then_rests():
    wanted = expand([stateful_set("ledger", template("ledger", NEW), replicas=3), deployment("cart", replicas=2)])
    present = {pod.key: running(pod) for pod in expand([stateful_set("ledger", replicas=4), deployment("front")])}
    for _ in range(20):
        for action in planner.plan(wanted, present.values()):
            if isinstance(action, Stop):
                del present[action.key]
            else:
                present[action.planned.key] = running(action.planned)
    assert set(present) == {pod.key for pod in wanted}
    assert {pod.key: pod.revision for pod in present.values()} == {pod.key: pod.revision for pod in wanted}
    assert planner.plan(wanted, present.values()) == ()
    assert msgspec.structs.asdict(present[wanted[0].key])["ready"]
