"""Objects of a kind: all, or of one namespace, sorted; what is asked depends on no more than was asked."""

from mizzen.api.meta import Key
from mizzen.incremental import Engine, query
from mizzen.model import objects


def test_keys_are_sorted_and_of_the_kind_and_namespace_alone():
    db = Engine()
    for key in (Key("A", "y", "1"), Key("A", "x", "2"), Key("B", "x", "1"), Key("A", "x", "1")):
        db.set(key, key.name)
    assert objects.of_kind(db, "A") == (Key("A", "x", "1"), Key("A", "x", "2"), Key("A", "y", "1"))
    assert objects.in_namespace(db, "A", "x") == (Key("A", "x", "1"), Key("A", "x", "2"))
    assert objects.in_namespace(db, "A", "z") == ()


def test_another_namespace_and_another_value_reach_nobody():
    db = Engine()
    runs = []

    @query
    def names(db: Engine, namespace: str) -> tuple[str, ...]:
        runs.append(namespace)
        return tuple(key.name for key in objects.in_namespace(db, "A", namespace))

    assert names(db, "x") == ()
    db.set(Key("A", "y", "1"), 1)
    db.set(Key("B", "x", "1"), 1)
    assert names(db, "x") == ()
    assert runs == ["x"]
    db.set(Key("A", "x", "1"), 1)
    assert names(db, "x") == ("1",)
    db.set(Key("A", "x", "1"), 2)
    assert names(db, "x") == ("1",)
    assert runs == ["x", "x"]
