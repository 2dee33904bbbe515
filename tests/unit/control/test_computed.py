"""Values by key that follow the engine: computed when something changed, told when they are others."""

import golden
import pytest

from mizzen.api.meta import Key
from mizzen.control.computed import Computed
from mizzen.incremental import Engine, query
from mizzen.model.entry_addresses import Wish, address_wish, entry_keys


def entry(name: str, *hosts: str, **metadata: object) -> dict:
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "ServiceEntry",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"hosts": list(hosts or (f"{name}.example",)), "resolution": "DNS"},
    }


def key(name: str) -> Key:
    return Key("ServiceEntry", "default", name)


@pytest.fixture
def db() -> Engine:
    return Engine()


async def test_what_comes_changes_and_goes_is_told_once(db):
    told: list[Key] = []
    computed: Computed[Wish] = Computed(db, entry_keys, address_wish, told.append)
    golden.set_object(db, entry("a"))
    golden.set_object(db, entry("b"))
    await computed.look()
    assert told == [key("a"), key("b")]
    runs = db.runs
    await computed.look()
    assert (len(told), db.runs) == (2, runs)
    golden.set_object(db, entry("b", "other.example"))
    await computed.look()
    assert told[2:] == [key("b")]
    golden.remove_object(db, entry("a"))
    await computed.look()
    assert told[3:] == [key("a")]
    assert list(computed.values) == [key("b")]


async def test_an_object_that_is_another_is_told_even_if_its_value_is_not(db):
    told: list[Key] = []
    computed: Computed[Wish] = Computed(db, entry_keys, address_wish, told.append)
    golden.set_object(db, entry("a", generation=1))
    await computed.look()
    golden.set_object(db, entry("a", generation=2))
    await computed.look()
    assert told == [key("a")] * 2
    found, wish = computed.values[key("a")]
    assert (found.metadata.generation, wish) == (2, Wish(hosts=("a.example",)))


async def test_one_that_raises_has_no_value_and_the_others_do(db):
    def value(db: Engine, one: Key) -> Wish | None:
        if one.name == "bad":
            raise ValueError("a fault of ours")
        return address_wish(db, one)

    computed: Computed[Wish] = Computed(db, entry_keys, query(value), lambda _: None)
    for name in ("bad", "good"):
        golden.set_object(db, entry(name))
    await computed.look()
    assert computed.values[key("bad")][1] is None
    assert computed.values[key("good")][1] == Wish(hosts=("good.example",))


async def test_nothing_is_remembered_for_it_after_its_end(db):
    computed: Computed[Wish] = Computed(db, entry_keys, address_wish, lambda _: None)
    golden.set_object(db, entry("a"))
    await computed.look()
    computed.release()
    db.collect()
    golden.set_object(db, entry("a", "other.example"))
    assert db.take_stale_roots() == []
