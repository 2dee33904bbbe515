"""Remarks are told once, and told again when they no longer hold."""

from mizzen.local.remarks import News, Remarks, describe_emptiness


def test_a_remark_is_new_once_and_gone_once() -> None:
    remarks = Remarks()

    assert remarks.update(["error: a.yaml:3: bad"]) == News(("error: a.yaml:3: bad",), ())
    assert remarks.update(["error: a.yaml:3: bad"]) == News((), ())
    assert remarks.update([]) == News((), ("error: a.yaml:3: bad",))
    assert remarks.update([]) == News((), ())


def test_a_remark_that_comes_back_is_new_again() -> None:
    remarks = Remarks()
    remarks.update(["warning: x"])
    remarks.update([])

    assert remarks.update(["warning: x"]).new == ("warning: x",)


def test_a_place_that_moves_is_the_same_place() -> None:
    remarks = Remarks()
    remarks.update(["error: a.yaml:3: bad"])

    assert remarks.update(["error: a.yaml:9: bad"]) == News((), ())
    assert remarks.update([]).gone == ("error: a.yaml:9: bad",)


def test_an_empty_mesh_is_told_what_makes_pods() -> None:
    assert describe_emptiness(["/m"]).startswith("there are no pods: nothing in /m makes one (a Deployment")
