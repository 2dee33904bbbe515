"""The bounded memory of what was pushed."""

from mizzen.xds.history import History, Pushed, shown


def pushed(history: History, number: int) -> Pushed:
    return Pushed(
        number=number,
        reasons=("config",),
        objects=(),
        changes=1,
        reached=1,
        told=1,
        seconds=0.1,
        cause=history.costs.open([], float(number)),
    )


def test_the_latest_pushes_are_kept_and_no_more() -> None:
    history = History()
    for number in range(80):
        history.latest.append(pushed(history, number))
    assert [push.number for push in history.latest] == list(range(30, 80))


def test_a_push_is_remembered_with_few_of_its_objects() -> None:
    assert shown(("Service", "a", str(number)) for number in range(9)) == tuple(
        ("Service", "a", str(number)) for number in range(5)
    )
