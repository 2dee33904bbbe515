"""Inputs and indexes: what stands where, and which entries a change makes another."""

from mizzen.tables import Index, Tables

COLOURS = Index("fruit", "colour", lambda _key, value: value)
APPLE, PLUM = ("fruit", "apple"), ("fruit", "plum")


def test_values_are_put_and_taken_and_an_equal_one_is_no_change():
    tables = Tables()
    assert tables.put(APPLE, ("red",)) == []
    assert tables.put(APPLE, ("red",)) is None
    assert tables.get(APPLE) == ("red",)
    assert tables.take(APPLE) == []
    assert tables.take(APPLE) is None
    assert tables.get(APPLE) is None


def test_a_change_names_the_entries_that_are_others_and_no_more():
    tables = Tables()
    tables.put(APPLE, ("red", "green"))
    assert tables.entry((COLOURS, "red")) == (APPLE,)
    assert tables.put(PLUM, ("blue", "red")) == [(COLOURS, "blue"), (COLOURS, "red")]
    assert tables.put(APPLE, ("green", "yellow")) == [(COLOURS, "red"), (COLOURS, "yellow")]
    assert tables.entry((COLOURS, "red")) == (PLUM,)
    assert tables.take(PLUM) == [(COLOURS, "blue"), (COLOURS, "red")]
    assert tables.entry((COLOURS, "red")) == ()
