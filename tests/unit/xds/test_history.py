"""The bounded memory of what has caused pushes."""

from mizzen.xds.history import Account, History, Pushed, shown

CART, FRONT = ("VirtualService", "shop", "cart"), ("VirtualService", "shop", "front")


def pushed(told: int, number: int = 1) -> Pushed:
    return Pushed(
        number=number,
        at=float(number),
        reasons=("config",),
        objects=(),
        changes=1,
        reached=told,
        told=told,
        seconds=0.1,
    )


def test_objects_that_told_most_proxies_come_first() -> None:
    history = History()
    history.record(pushed(3, 1), [CART])
    history.record(pushed(5, 2), [FRONT])
    history.record(pushed(4, 3), [CART])
    assert history.top(5) == [
        Account(object=CART, pushes=2, told=7, last=3.0),
        Account(object=FRONT, pushes=1, told=5, last=2.0),
    ]
    assert [account.object for account in history.top(1)] == [CART]


def test_objects_that_told_nobody_anything_have_caused_nothing() -> None:
    history = History()
    history.record(pushed(0), [CART])
    assert history.top(5) == []
    assert len(history.latest) == 1


def test_objects_that_changed_together_share_the_push() -> None:
    history = History()
    history.record(pushed(2), [CART, FRONT])
    assert [(account.object, account.told) for account in history.top(5)] == [(CART, 2), (FRONT, 2)]


def test_a_batch_of_many_objects_is_charged_to_none() -> None:
    history = History()
    history.record(pushed(9), [("Service", "shop", str(number)) for number in range(51)])
    assert history.top(5) == []
    assert history.latest[0].told == 9


def test_objects_that_changed_longest_ago_are_forgotten_first() -> None:
    history = History(accounts=2)
    history.record(pushed(9, 1), [CART])
    history.record(pushed(1, 2), [FRONT])
    history.record(pushed(1, 3), [CART])
    history.record(pushed(1, 4), [("Service", "shop", "new")])
    assert {account.object for account in history.top(5)} == {CART, ("Service", "shop", "new")}


def test_the_latest_pushes_are_kept_and_no_more() -> None:
    history = History()
    for number in range(80):
        history.record(pushed(1, number), [CART])
    assert [push.number for push in history.latest] == list(range(30, 80))


def test_a_push_is_remembered_with_few_of_its_objects() -> None:
    assert shown(("Service", "a", str(number)) for number in range(9)) == tuple(
        ("Service", "a", str(number)) for number in range(5)
    )
