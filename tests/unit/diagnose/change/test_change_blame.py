from collections.abc import Mapping

from mizzen.api.meta import Key
from mizzen.compile.resource import CLUSTER, Resource, ResourceSet
from mizzen.diagnose.change import blame

ONE, TWO = Key("VirtualService", "a", "one"), Key("VirtualService", "a", "two")


def sets(data: bytes) -> dict[str, ResourceSet]:
    return {CLUSTER: ResourceSet(CLUSTER, [Resource("c", data)])}


def test_the_edit_without_which_a_class_would_be_told_something_else_is_to_blame() -> None:
    def without(key: Key) -> Mapping[str, Mapping[str, ResourceSet]]:
        return {"web": sets(b"old" if key == ONE else b"new"), "db": sets(b"db" if key == ONE else b"old")}

    found = blame.assign((ONE, TWO), {"web": sets(b"new"), "db": sets(b"db")}, without)

    assert found == {"web": (ONE,), "db": (TWO,)}


def test_edits_that_come_to_the_same_are_all_named() -> None:
    found = blame.assign((ONE, TWO), {"web": sets(b"new")}, lambda _key: {"web": sets(b"new")})

    assert found == {"web": (ONE, TWO)}


def test_a_single_edit_needs_no_asking() -> None:
    def without(key: Key) -> Mapping[str, Mapping[str, ResourceSet]]:
        raise AssertionError(key)

    assert blame.assign((ONE,), {"web": sets(b"new")}, without) == {"web": (ONE,)}
